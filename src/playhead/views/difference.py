"""Say in which fields two questions differ, like for like: an inserted message is one change, not a cascade."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from playhead import _limits
from playhead.event.keys import canonical
from playhead.views import text
from playhead.views.alignment import Block, aligned
from playhead.views.marks import around, inside, is_marked
from playhead.views.words import in_one_line, is_patch, lines, words


class _Absent:
    """The type of `ABSENT`."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


_Paths = tuple[str, str]  # JSON pointers into both values
SHOWN_WIDTH: Final = 60  # of a value, beside another one in a line
ABSENT: Final = _Absent()  # the side of a change that has nothing there, which is not the same as null


@dataclass(frozen=True, slots=True)
class Change:
    """One place where two values differ.

    `path` is a JSON pointer into the left value; only the last number of an item that was added to a list is its place
    in the list on the right.
    """

    path: str
    left: Any = ABSENT
    right: Any = ABSENT
    right_path: str = field(default="", compare=False, repr=False)  # the same the other way round

    def mirrored(self) -> Change:
        """Return it from the point of view of the right value."""
        return Change(self.right_path, self.right, self.left, self.path)

    @property
    def texts(self) -> tuple[str, str] | None:
        """Return two texts that differ, or two values that look alike where they are cut, written out; else None."""
        if type(self.left) is str and type(self.right) is str:
            return self.left, self.right
        if self.left is ABSENT or self.right is ABSENT:
            return None
        if text.short(self.left, SHOWN_WIDTH) != text.short(self.right, SHOWN_WIDTH):
            return None
        left, right = (json.dumps(one, ensure_ascii=False) for one in (self.left, self.right))
        return left, right

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON, without a side that is not there; texts also by words that differ, patches by lines."""
        found: dict[str, Any] = {"path": self.path}
        if self.left is not ABSENT:
            found["left"] = self.left
        if self.right is not ABSENT:
            found["right"] = self.right
        if (texts := self.texts) is not None:
            if any(map(is_patch, texts)):
                found["lines"] = lines(*texts)
            else:
                found["words"] = in_one_line(words(*texts))
        return found


def changes(left: Any, right: Any, *, marks: bool = False) -> list[Change]:
    """Return what must change for the left value to become the right one; nothing where they are the same question.

    A container with more changes than can be read is one change itself, so that the list stays short and complete.
    `marks` looks into marked values too: paths then have the names of what is in them, and lead through no mark.
    """
    return _changes(("", ""), left, right, 0, marks)


def equal(left: Any, right: Any) -> bool:
    """Say whether two plain values are one in RFC 8785, which keys are made of: 1 and 1.0 are, 1 and true are not."""
    if left is right:
        return True
    if type(left) is not type(right) or type(left) in (dict, list):
        return bool(left == right) and encoded(left) == encoded(right)  # the quick look first
    return bool(left == right)


def encoded(value: Any) -> bytes:
    """Return the bytes that say whether two values are the same question; also of what no key can be made of."""
    try:
        return canonical(value)
    except (TypeError, ValueError):  # a number beyond 64 bits, half of a letter: not in what we recorded
        return json.dumps(value, sort_keys=True, default=repr).encode()


def pointer(path: str, key: str | int) -> str:
    """Return the JSON pointer of something inside a container."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def spelled(path: str) -> str:
    """Return a JSON pointer as people read it: the name of a file is written as it is."""
    return path.replace("~1", "/").replace("~0", "~")


def _change(path: _Paths, left: Any = ABSENT, right: Any = ABSENT) -> Change:
    return Change(path[0], left, right, path[1])


def _inside(path: _Paths, key: str | int, right_key: str | int | None = None) -> _Paths:
    return pointer(path[0], key), pointer(path[1], key if right_key is None else right_key)


def _changes(path: _Paths, left: Any, right: Any, depth: int, marks: bool) -> list[Change]:
    if equal(left, right):
        return []
    found: list[Change] | None = None
    if depth < _limits.DEPTH_MAX and type(left) is type(right):
        if is_marked(left) or is_marked(right):
            found = _in_marked(path, left, right, depth) if marks else None
        elif type(left) is dict:
            found = _in_objects(path, left, right, depth, marks)
        elif type(left) is list:
            found = _in_arrays(path, left, right, depth, marks)
    if found is None or len(found) > _limits.DIFFERENCE_CHANGES_MAX:
        return [_change(path, left, right)]
    return found


def _in_marked(path: _Paths, left: dict[str, Any], right: dict[str, Any], depth: int) -> list[Change] | None:
    """Look into two values of one sort; None where that says nothing, as where only the order of a dict is another."""
    one, other = (inside(side) if is_marked(side) else side for side in (left, right))
    if one is None or other is None or around(left) != around(right):
        return None
    found = _changes(path, one, other, depth + 1, True)
    return None if not found or found[0].path == path[0] else found


def _in_objects(path: _Paths, left: dict[str, Any], right: dict[str, Any], depth: int, marks: bool) -> list[Change]:
    found: list[Change] = []
    for key in [*left, *(key for key in right if key not in left)]:
        where = _inside(path, key)
        if key not in right:
            found.append(_change(where, left[key]))
        elif key not in left:
            found.append(_change(where, right=right[key]))
        else:
            found += _changes(where, left[key], right[key], depth + 1, marks)
    return found


def _in_arrays(path: _Paths, left: list[Any], right: list[Any], depth: int, marks: bool) -> list[Change]:
    found: list[Change] = []
    for block in aligned([_identity(item) for item in left], [_identity(item) for item in right]):
        if not block.same:
            found += _replaced(path, left, right, block, depth, marks)
    return found


def _replaced(path: _Paths, left: list[Any], right: list[Any], block: Block, depth: int, marks: bool) -> list[Change]:
    """Pair what was replaced like for like: a message by its role, a tool by its name; the rest came or went."""
    lefts, rights = left[block.left : block.left_end], right[block.right : block.right_end]
    if len(lefts) == len(rights):
        pairs = [(at, at) for at in range(len(lefts))]
    else:
        pairs = _pairs([_likeness(item) for item in lefts], [_likeness(item) for item in rights])
    at_right = dict(pairs)
    taken = set(at_right.values())
    found: list[Change] = []
    for at, item in enumerate(lefts):
        if at in at_right:
            where = _inside(path, block.left + at, block.right + at_right[at])
            found += _changes(where, item, rights[at_right[at]], depth + 1, marks)
        else:
            found.append(_change(_inside(path, block.left + at), item))
    found += [_change(_inside(path, block.right + at), right=item) for at, item in enumerate(rights) if at not in taken]
    return found


def _pairs(lefts: Sequence[Hashable], rights: Sequence[Hashable]) -> list[tuple[int, int]]:
    return [
        (block.left + step, block.right + step)
        for block in aligned(lefts, rights)
        if block.same
        for step in range(block.left_end - block.left)
    ]


def _identity(item: Any) -> Hashable:
    """Return what is the same for items that are the same, and cheap to compare."""
    if type(item) in (dict, list):
        return hashlib.blake2b(encoded(item), digest_size=16).digest()
    return (type(item) in (int, float) and "number") or type(item).__name__, item


def _likeness(item: Any) -> Hashable:
    """Return what two versions of one item have in common."""
    if type(item) is not dict:
        return type(item).__name__
    function = item.get("function")
    inner = function if type(function) is dict else {}
    return tuple(
        name if type(name) is str else None
        for name in (
            item.get("role"), item.get("type"), item.get("name"), inner.get("name"),
            item.get("tool_call_id"), item.get("call_id"), item.get("tool_use_id"),
        )
    )  # fmt: skip
