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
from playhead.event.fingerprint import fingerprint
from playhead.event.plain import Mark, mark, text_mark
from playhead.event.survey import NotPlain, TextKey, first_text, survey, survey_compiled, text_key

dumps = orjson.dumps

_MIN = _limits.REFERENCE_BYTES_MIN
_EXACT = _limits.INTEGER_EXACT_MAX
_TRACKED_FROM = 5  # cycles are looked for from this depth on: most values never get there
_SHARED_TIMES = 10  # that the parts of a value may be written out, beside what PARTS_MAX allows
_USUAL_KEYS_MAX = 4096

BinaryGate = Callable[[bytes], bytes]


class Keys:
    """Remember keys that were looked at and need no mark: most keys come again and again."""

    def __init__(self, is_secret: Callable[[str], bool] | None = None) -> None:
        self.usual: set[str] = set()
        self.is_secret = is_secret


_KEYS = Keys()


class _Cyclic(Exception):
    """A value contains itself."""


class _TooMany(Exception):
    """A value has parts that are shared so often that it cannot be written out."""


class Plainer:
    """Check and mark one value. Use once per value; `plain()` is the short form."""

    marked = False  # the value is plain already: its `$` keys are marks
    careful = False  # look at every text and key for what the encoder refuses: lone surrogates, subclasses of str
    unusual_keys = False  # found keys that sort differently in UTF-16 and in UTF-8
    depth_max = _limits.DEPTH_MAX
    tracked_from = _TRACKED_FROM
    room = _limits.PARTS_MAX  # parts of containers met before that are still looked at
    cutting = False  # what is too much is cut off: the value was looked at before
    cut = False  # something was cut off
    field: Any = None  # what is being looked at then
    field_digest = ""
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
        self.long: list[TextKey] = []  # keys of the texts over it
        self.blobs: list[tuple[str, bytes]] = []
        self.floats: list[float] = []
        self.met: set[int] = set()  # ids of containers
        self.fresh: set[int] = set()  # of those that marks are made of
        self.digests: dict[int, str] = {}  # of what was cut off for its depth
        self.kept: list[Any] = []  # what was made on the way, so that no id is used twice
        self.path: list[int] = []  # ids of the containers we are in, below the first few levels
        self.gate = gate
        if marked:
            self.marked = True
        if careful:
            self.careful = True

    @classmethod
    def surveyed_as(cls, seen: speed.Surveyed) -> Plainer:
        """Return one that knows what the compiled walk has found in a value with nothing unusual."""
        plainer = cls()
        plainer.long, plainer.lists, dense, plainer.floats, _ = seen
        plainer.dense = {id(node): node for node in dense}
        plainer.surveyed = True
        return plainer

    def value(self, value: Any) -> Any:
        """Return the plain form: the value itself where nothing had to change."""
        if type(value) is dict and not self.marked and not self.careful:
            try:
                if speed.survey is None:
                    survey(self, value)
                else:
                    survey_compiled(self, value, speed.survey)
                self.surveyed = True
                return value
            except NotPlain:
                self._start_again()
        return self._measured(value)

    def _measured(self, value: Any) -> Any:
        try:
            return self._any(value, 0)
        except (_Cyclic, _TooMany) as stop:
            self._start_again()
            self.tracked_from, self.cutting = 0, True  # from the top, where a cycle that branches is cheap
            room = _limits.CYCLIC_PARTS_MAX if isinstance(stop, _Cyclic) else _limits.PARTS_MAX
        if type(value) is not dict or not all(self.key_is_plain(key, value) for key in value):
            self.room, self.field = room, value
            return self._any(value, 0)
        out: dict[str, Any] = {}
        total = 0
        self.path.append(id(value))
        for key, item in value.items():  # a digest of what was cut off is that of the field, wherever the field stands
            self.met.clear()
            self.room, self.field, self.field_digest = room, item, ""
            out[key] = self._any(item, 1)
            total += self.size
        self.big[id(out)] = total
        return out

    def measure(self, value: Any) -> None:
        """Note the size of every container, which the fast walk leaves out."""
        if self.surveyed:
            self.surveyed = False
            if speed.sizes is not None:
                self.big = speed.sizes(value, _MIN, self.depth_max + 1)  # levels, the first included
                return
            self._start_again()
            self._measured(value)

    def _start_again(self) -> None:
        for found in (self.big, self.dense, self.lists, self.long, self.floats, self.blobs, self.path, self.met):
            found.clear()
        self.room = _limits.PARTS_MAX

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
                self.long.append(text_key(value))
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
        if (stop := self._meet(value, len(value))) is not None:
            return stop
        tracked = depth >= self.tracked_from and type(value) is not Mark  # a mark stands for what is tracked already
        if tracked and (stop := self._enter(value, depth)) is not None:
            return stop
        depth += 1
        # A subclass of str may be equal to a usual key: the encoder refuses it, and then every key is looked at.
        usual = not self.careful and value.keys() <= self.keys.usual
        if not usual and not all(self.key_is_plain(key, value) for key in value):
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
                    self.long.append(text_key(item))
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
        pairs = Mark({"$dict": [[key, item] for key, item in value.items()]})
        self._made(pairs)
        return pairs

    def _made(self, marked: Any) -> None:
        """Note containers that stand for a value and are not part of it: they are met once, and give no room."""
        self.kept.append(marked)
        for inner in (marked, *marked.values()) if type(marked) is Mark else ():
            self.fresh.add(id(inner))
            if type(inner) is list:
                self.fresh.update(id(pair) for pair in inner if type(pair) is list)

    def key_is_plain(self, key: Any, owner: dict[Any, Any]) -> bool:
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
        if (stop := self._meet(value, len(value))) is not None:
            return stop
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
                    self.long.append(text_key(item))
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
        if (stop := self._meet(value, 2)) is not None:
            return stop
        tracked = depth >= self.tracked_from
        # Its mark takes two levels: what is too deep is cut off here, as a whole, and not within the mark.
        if tracked and (stop := self._enter(value, depth + 2)) is not None:
            return stop
        marked = mark(value)
        self._made(marked)
        self.kept.append(value)
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
            self.cut = True
            if id(value) not in self.digests:
                self.digests[id(value)] = fingerprint(value)
                self.kept.append(value)
            told = f"<nested more than {self.depth_max} levels>"
            return Mark({"$repr": told, "type": type(value).__name__, "digest": self.digests[id(value)]})
        self.path.append(id(value))
        return None

    def _meet(self, value: Any, parts: int) -> Mark | None:
        """Say why a container that was met before is not gone into once more.

        One that is shared often and one level deep is only long; what explodes is shared on many levels.
        """
        if id(value) not in self.met:
            self.met.add(id(value))
            if id(value) not in self.fresh:
                self.room += _SHARED_TIMES * (1 + parts)
            return None
        self.room -= 1 + parts
        if self.room >= 0:
            return None
        if not self.cutting:
            raise _TooMany
        self.cut, self.size = True, 100
        self.field_digest = self.field_digest or fingerprint(self.field)
        told = "<more of a value whose parts are shared too often>"
        return Mark({"$repr": told, "type": type(value).__name__, "digest": self.field_digest})


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
