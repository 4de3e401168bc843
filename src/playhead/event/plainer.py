"""Walk a value once: check every node, mark what JSON has no form for, and note what is large.

Only what must change is copied. Most values are plain already; a fast walk finds that out and changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import orjson

from playhead import _limits
from playhead.event import speed
from playhead.event.plain import Mark, fingerprint, mark, text_mark

dumps = orjson.dumps

_MIN = _limits.REFERENCE_BYTES_MIN
_EXACT = _limits.INTEGER_EXACT_MAX
_TRACKED_FROM = 5  # cycles are looked for from this depth on: most values never get there
_USUAL_KEYS_MAX = 4096
SURVEYED_MAX = 100_000  # parts that the fast walk looks at

BinaryGate = Callable[[bytes], bytes]


class Keys:
    """Remember keys that were looked at and need no mark: most keys come again and again."""

    def __init__(self, is_secret: Callable[[str], bool] | None = None) -> None:
        self.usual: set[str] = set()
        self.is_secret = is_secret


_KEYS = Keys()


class _NotPlain(Exception):
    """The fast walk met something that it does not handle."""


class _Cyclic(Exception):
    """A value contains itself."""


class Plainer:
    """Check and mark one value. Use once per value; `plain()` is the short form."""

    marked = False  # the value is plain already: its `$` keys are marks
    careful = False  # look at every text and key for what the encoder refuses: lone surrogates, subclasses of str
    unusual_keys = False  # found keys that sort differently in UTF-16 and in UTF-8
    depth_max = _limits.DEPTH_MAX
    tracked_from = _TRACKED_FROM
    room = _limits.PARTS_MAX  # parts that are still looked at
    size = 0  # of the value looked at last, approximately
    surveyed = False  # by the fast walk: what is long is known, the size of each container is not

    secret_fields = False  # found a key that `keys` calls secret

    def __init__(
        self,
        gate: BinaryGate | None = None,
        keys: Keys | None = None,
        *,
        marked: bool = False,
        careful: bool = False,
    ) -> None:
        self.keys = keys or _KEYS
        self.big: dict[int, int] = {}  # id of a container → its approximate size, if over the reference limit
        self.dense: dict[int, Any] = {}  # id → dicts whose own small parts are over it
        self.lists: list[list[Any]] = []  # arrays over it that do not begin with such a text
        self.long: list[str] = []  # texts over it
        self.blobs: list[tuple[str, bytes]] = []
        self.floats: list[float] = []
        self.path: list[int] = []  # ids of the containers we are in, below the first few levels
        self.gate = gate
        if marked:
            self.marked = True
        if careful:
            self.careful = True

    def value(self, value: Any) -> Any:
        """Return the plain form: the value itself where nothing had to change."""
        if type(value) is dict and not self.marked and not self.careful:
            try:
                if speed.survey is None:
                    self._survey(value)
                else:
                    self._survey_compiled(value, speed.survey)
                self.surveyed = True
                return value
            except _NotPlain:
                self._start_again()
        return self._measured(value)

    def _measured(self, value: Any) -> Any:
        try:
            return self._any(value, 0)
        except _Cyclic:  # once more, and now from the top, where a cycle that branches is cheap
            self._start_again()
            self.tracked_from, self.room = 0, _limits.CYCLIC_PARTS_MAX
            return self._any(value, 0)

    def measure(self, value: Any) -> None:
        """Note the size of every container, which the fast walk leaves out."""
        if self.surveyed:
            self.surveyed = False
            self._start_again()
            self._measured(value)

    def _start_again(self) -> None:
        for found in (self.big, self.dense, self.lists, self.long, self.floats, self.blobs, self.path):
            found.clear()
        self.room = _limits.PARTS_MAX

    def _survey(self, value: dict[str, Any]) -> None:
        """Look through a value that is plain already, as most are; raise _NotPlain at the first thing that is not.

        One loop over a growing list, since in Python calls cost more than looking: this is half of recording.
        """
        todo: list[Any] = [value]
        parts = depth = 0
        level_end = 1
        long, usual = self.long, self.keys.usual
        for at, node in enumerate(todo):
            if at == level_end:
                depth, level_end = depth + 1, len(todo)
            before = len(todo) + len(long)
            items: Any = node
            if type(node) is dict:
                if not node.keys() <= usual:
                    self._look_at_keys(node)
                items = node.values()
            small = 10 * len(node)
            for item in items:
                kind = type(item)
                if kind is str:
                    size = len(item)
                    if size > _MIN:
                        long.append(item)
                    else:
                        small += size
                elif kind is dict or kind is list:
                    todo.append(item)
                elif item is None or kind is bool or (kind is int and -_EXACT <= item <= _EXACT):
                    continue
                elif kind is float and item - item == 0.0:
                    self.floats.append(item)
                else:
                    raise _NotPlain
            if type(node) is dict:
                if small > _MIN:
                    self.dense[id(node)] = node
            elif node and (small > _MIN or len(todo) + len(long) > before) and first_text(node) is None:
                self.lists.append(node)
            parts += len(node)
            if parts > SURVEYED_MAX or depth > self.depth_max:
                raise _NotPlain  # perhaps a cycle

    def _survey_compiled(self, value: dict[str, Any], survey: Callable[..., speed.Surveyed | None]) -> None:
        """Do the same in C."""
        seen = survey(value, self.keys.usual, _MIN, _EXACT, SURVEYED_MAX, self.depth_max)
        if seen is None:
            raise _NotPlain
        self.long, self.lists, dense, self.floats, unusual = seen
        for node in unusual:
            self._look_at_keys(node)
        self.dense = {id(node): node for node in dense}

    def _look_at_keys(self, value: dict[Any, Any]) -> None:
        for key in value:
            if key not in self.keys.usual and not self._key_is_plain(key, value):
                raise _NotPlain

    def _any(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is dict or kind is Mark:
            return self._dict(value, depth)
        if kind is list:
            return self._list(value, depth)
        self.size = 8
        if kind is str:
            self.size = len(value)
            if self.size > _MIN:
                self.long.append(value)
            return text_mark(value, self.gate) if self.careful else value
        if kind is float:
            if value - value == 0.0:
                self.floats.append(value)
                return value
            return mark(value)
        if kind is int:
            return value if -_EXACT <= value <= _EXACT else mark(value)
        if value is None or kind is bool:
            return value
        return self._odd(value, depth)

    def _dict(self, value: dict[str, Any], depth: int) -> Any:
        self.room -= 1 + len(value)
        if self.room < 0:
            return self._no_room(value)
        tracked = depth >= self.tracked_from and type(value) is not Mark  # a mark stands for what is tracked already
        if tracked and (stop := self._enter(value, depth)) is not None:
            return stop
        depth += 1
        # A subclass of str may be equal to a usual key: the encoder refuses it, and then every key is looked at.
        usual = not self.careful and value.keys() <= self.keys.usual
        if not usual and not all(self._key_is_plain(key, value) for key in value):
            out = self._any(self._pairs(value), depth)
            if tracked:
                self.path.pop()
            return out
        changes: dict[int, Any] | None = None
        small = 10 * len(value)  # approximate bytes in small parts, keys and punctuation
        large = 0
        for item in value.values():
            kind = type(item)
            if kind is str:
                length = len(item)
                if length > _MIN:
                    large += length
                    self.long.append(item)
                else:
                    small += length
                if not self.careful:
                    continue
                new: Any = text_mark(item, self.gate)
            elif item is None or kind is bool:
                continue
            elif kind is int:
                if -_EXACT <= item <= _EXACT:
                    continue
                new = mark(item)
            else:
                new = self._dict(item, depth) if kind is dict else self._any(item, depth)
                if self.size > _MIN:
                    large += self.size
                else:
                    small += self.size
            if new is not item:
                if changes is None:
                    changes = {}
                changes[id(item)] = new
        self.size = size = small + large
        if tracked:
            self.path.pop()
        if changes is not None:
            value = type(value)((key, changes.get(id(item), item)) for key, item in value.items())
        if size > _MIN:
            self.big[id(value)] = size
            if small > _MIN:
                self.dense[id(value)] = value
        return value

    def _pairs(self, value: dict[Any, Any]) -> Mark:
        self.secret_fields = True  # its keys are not looked at one by one: redaction does that
        return Mark({"$dict": [[key, item] for key, item in value.items()]})

    def _key_is_plain(self, key: Any, owner: dict[Any, Any]) -> bool:
        """Look at a key that is not among the usual ones."""
        if type(key) is not str:
            return False
        if key[:1] == "$":
            return self.marked or type(owner) is Mark
        secret = self.keys.is_secret is not None and self.keys.is_secret(key)
        if secret:
            self.secret_fields = True
        if not key.isascii():
            self.unusual_keys = True
            return not self.careful or text_mark(key) is key
        if not secret and not self.careful and len(self.keys.usual) < _USUAL_KEYS_MAX:
            self.keys.usual.add(key)
        return True

    def _list(self, value: list[Any], depth: int) -> Any:
        self.room -= 1 + len(value)
        if self.room < 0:
            return self._no_room(value)
        tracked = depth >= self.tracked_from
        if tracked and (stop := self._enter(value, depth)) is not None:
            return stop
        changed: list[Any] | None = None
        size = 2
        depth += 1
        for position, item in enumerate(value):
            kind = type(item)
            if kind is dict:
                new = self._dict(item, depth)
                size += self.size + 1
            elif kind is str and not self.careful:
                length = len(item)
                size += length + 3
                if length > _MIN:
                    self.long.append(item)
                continue
            else:
                new = self._any(item, depth)
                size += self.size + 1
            if new is not item:
                if changed is None:
                    changed = value.copy()
                changed[position] = new
        self.size = size
        if tracked:
            self.path.pop()
        out = value if changed is None else changed
        if size > _MIN:
            self.big[id(out)] = size
            if out and first_text(out) is None:
                self.lists.append(out)
        return out

    def _odd(self, value: Any, depth: int) -> Any:
        if type(value) in (bytes, bytearray, memoryview):
            return self._binary(value)
        tracked = depth >= self.tracked_from
        if tracked and (stop := self._enter(value, depth)) is not None:
            return stop
        marked = mark(value)
        name = next(iter(marked)) if type(marked) is Mark else ""
        out = self._any(marked, depth + 1)
        if name in ("$set", "$frozenset") and name in out:
            out[name] = sorted(out[name], key=dumps)
        if tracked:
            self.path.pop()
        return out

    def _binary(self, value: bytes | bytearray | memoryview) -> Any:
        try:
            data = bytes(value)
        except (ValueError, BufferError):  # a memoryview that was released
            return mark(value)
        if self.gate is not None:
            data = self.gate(data)
        if len(data) <= _MIN:
            self.size = len(data) * 4 // 3 + 12
            return mark(data if type(value) is memoryview else type(value)(data))
        self.size = 100
        kind = "bytearray" if type(value) is bytearray else "bytes"
        return self.spill(data, kind)

    def spill(self, data: bytes, kind: str) -> Mark:
        """Put bytes aside as a blob and return what stands for them."""
        digest = hashlib.sha256(data).hexdigest()
        self.blobs.append((digest, data))
        return Mark({"$blob": digest, "len": len(data), "as": kind})

    def _enter(self, value: Any, depth: int) -> Mark | None:
        """Put a container on the path, or say why it is not gone into."""
        self.size = 60
        if id(value) in self.path:
            if self.tracked_from:
                raise _Cyclic
            return Mark({"$cycle": len(self.path) - self.path.index(id(value))})
        if depth > self.depth_max:
            told = f"<nested more than {self.depth_max} levels, sha256 {fingerprint(value)}>"
            return Mark({"$repr": told, "type": type(value).__name__})
        self.path.append(id(value))
        return None

    def _no_room(self, value: Any) -> Mark:
        self.size = 60
        why = "a value with too many parts" if self.tracked_from else "a value that contains itself"
        return Mark({"$repr": f"<more of {why}>", "type": type(value).__name__})


def first_text(array: list[Any]) -> str | None:
    """Return the long text that an array begins with, alone or as a field of its first item; None if there is none."""
    first = array[0]
    for item in first.values() if type(first) is dict else (first,):
        if type(item) is str and len(item) > _MIN:
            return item
    return None


def plain(value: Any) -> Any:
    """Return the plain form of one value, with nothing replaced by references; large binaries stay inside."""
    plainer = Plainer()
    try:
        out = plainer.value(value)
        dumps(out)
    except TypeError:  # lone surrogates, keys of a subclass of str
        plainer = Plainer(careful=True)
        out = plainer.value(value)
    return inline_blobs(out, dict(plainer.blobs)) if plainer.blobs else out


def inline_blobs(value: Any, blobs: dict[str, bytes]) -> Any:
    """Put large binaries back inside a plain value."""
    if type(value) is list:
        return [inline_blobs(item, blobs) for item in value]
    if isinstance(value, dict):
        if type(value) is Mark and "$blob" in value:
            data = blobs[value["$blob"]]
            return mark(bytearray(data) if value["as"] == "bytearray" else data)
        return type(value)({key: inline_blobs(item, blobs) for key, item in value.items()})
    return value
