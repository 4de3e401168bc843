"""Write repeated content once: `$same`, `$extends` and blobs.

`Held.encode` visits the large containers of a plain value, from the top, and replaces what this writer has written
before. An event that repeats nothing is recognised as such and encoded by one call, and a conversation of n turns costs
n, not n². Content is compared as encoded bytes or as text, never by Python's `==`, for which 1, 1.0 and True are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson

from playhead import _limits
from playhead.event import speed
from playhead.event.plain import Mark
from playhead.event.plainer import Plainer
from playhead.event.survey import TextKey, first_text, text_key

dumps = orjson.dumps

_MIN = _limits.REFERENCE_BYTES_MIN
_MAX = _limits.INLINE_BYTES_MAX
_fragment: Any = getattr(orjson, "Fragment", None)  # missing before 3.9: a program may have one of its own


def _as_encoded(value: Any, encoded: bytes) -> Any:
    return value if _fragment is None else _fragment(encoded)  # encoded already: need not be again


_HEAD = 96  # first bytes of an array's first item, by which one that it may extend is found
_BRANCHES = 4  # arrays with the same first bytes that are remembered: sub-agents, edited histories
_FEW, _SMALL = 8, 64  # an array of a few items, the first of them small, is measured before it is remembered
_COMMA, _BRACKET, _BRACE = b",]{"

Where = tuple[Any, "str | int"] | None  # a JSON pointer, as a chain: (parent, last part)
Place = tuple[int, Where]
Key = TextKey | bytes
Known = dict[Key, Any]


class _Array(NamedTuple):
    stem: bytes  # the encoded array without its last bracket
    items: int
    seq: int
    where: Where


class Placed(NamedTuple):
    """Content that a line will hold once it is written, and where."""

    content: list[tuple[str | bytes, Where]]
    arrays: list[tuple[bytes, bytes, int, Where]]  # head, encoded, count, where


News = list[Key] | Placed  # a list: its places in the line are found out only if it comes again


class Held:
    """Remember what one writer wrote to one run, and replace it when it comes again.

    `known` maps content to where it stands. A text is known by its `text_key`; an object by its encoded form, which
    begins with `{`; an array by `[` and the first bytes of its first item, or, until its place is known, by the text
    that it begins with. The value is a seq as long as nobody had to know where in that line the content stands; then a
    Place, for a text the list of the texts with that key and their places, for an array the list of those that begin
    alike. A seq, a number from 0 on, is known by the offset of its line.
    """

    __slots__ = ("_read_data", "dense", "generation", "headers", "held_bytes", "known")
    known: Known
    dense: set[int]  # the lines of which an object is known whose place is not
    headers: dict[Any, tuple[int, list[bytes]]]  # by what they are: the line that holds such pairs, encoded
    held_bytes: int

    def __init__(self, read_data: Callable[[int], Any]) -> None:
        self.generation = 0
        self._read_data = read_data  # gives the data of a line that this writer wrote, by its offset
        self.forget()

    def forget(self) -> None:
        """Start anew; what comes again is then written in full once more."""
        self.known = {}
        self.dense = set()
        self.headers = {}
        self.held_bytes = 0

    def encode(self, value: Any, plainer: Plainer, large: bool = False) -> tuple[bytes, News | None]:
        """Encode a value, with what this run already holds replaced and what is too large for a line spilled.

        Returns the JSON, and what to `remember` once it is written. `large` says that something is sure to spill.
        """
        if not large:
            new = self.encode_new(value, plainer.long, plainer.lists, plainer.dense.values())
            if new is not None:
                return new
        return self.encode_again(value, plainer)

    def encode_again(self, value: Any, plainer: Plainer) -> tuple[bytes, Placed]:
        """Encode a value of which something was held before, or is too large."""
        plainer.measure(value)
        news = Placed([], [])
        if id(value) in plainer.big:
            value = self._dict(value, None, plainer, news, root=True)
        return dumps(value), news

    def encode_new(
        self, value: Any, long: list[TextKey], lists: list[list[Any]], dense: Iterable[Any]
    ) -> tuple[bytes, News | None] | None:
        """Encode a value of which nothing was held before and nothing is too large; None where that is not so."""
        held = self.known.keys()
        if not held.isdisjoint(long):
            return None
        encoded = dumps(value)
        if len(encoded) <= _MIN:
            return encoded, None
        if len(encoded) > _MAX:
            return None
        content: list[Key] = [*long]
        for array in lists:
            first = dumps(array[0])
            if len(first) > _SMALL or len(array) > _FEW or len(dumps(array)) > _MIN:
                content.append(b"[" + first[:_HEAD])
        for item in dense:
            if item is not value and len(known_as := dumps(item)) > _MIN:
                content.append(known_as)
        return (encoded, content) if len(content) == len(long) or held.isdisjoint(content) else None

    def remember(self, seq: int, news: News, offset: int, size: int, known: Known) -> None:
        """Note content that line `seq`, which begins at byte `offset` and has `size` bytes of data, now holds.

        `known` is what was known when the line was made: if all was forgotten since, so is this.
        """
        if isinstance(news, list):
            for content in news:
                known[content] = seq
                if type(content) is bytes and content[0] == _BRACE:
                    self.dense.add(seq)
            known[seq] = offset
            self.held_bytes += size
        else:
            self._remember_placed(seq, news, known)
        if self.held_bytes > _limits.HELD_BYTES_MAX:
            self.forget()

    def _remember_placed(self, seq: int, news: Placed, known: Known) -> None:
        for content, where in news.content:
            if isinstance(content, str):
                _add_text(known, content, (seq, where))
            else:
                known[content] = (seq, where)
            self.held_bytes += len(content)
        for head, encoded, count, where in news.arrays:
            self._remember_array(head, _Array(encoded[:-1], count, seq, where), known)
            self.held_bytes += len(encoded)

    def _remember_array(self, head: bytes, array: _Array, known: Known) -> None:
        branches = known.get(head)
        if type(branches) is not list:
            branches = []
        elif branches and array.stem.startswith(branches[0].stem):
            self.held_bytes -= len(branches[0].stem)  # the longer one stands for both
            branches = branches[1:]
        # A new list, never a changed one: other threads may be looking at the old one.
        known[head] = [array, *branches[: _BRANCHES - 1]]

    def _dict(self, value: Any, where: Where, plainer: Plainer, news: Placed, root: bool = False) -> Any:
        big = plainer.big
        ident = id(value)
        if ident in plainer.dense and not root and big[ident] <= _MAX:
            encoded = dumps(value)
            if type(place := self._found(encoded)) is tuple:
                return _same(place)
            if len(encoded) > _MIN:
                news.content.append((encoded, where))
        changed: Any = None
        for key, item in value.items():
            kind = type(item)
            if kind is str:
                if len(item) <= _MIN:
                    continue
                new = self._text(item, (where, key), plainer, news)
            elif (kind is dict or kind is list or kind is Mark) and id(item) in big:
                new = self._container(item, kind, (where, key), plainer, news)
            else:
                continue
            if new is not item:
                if changed is None:
                    changed = type(value)(value)
                changed[key] = new
        out = value if changed is None else changed
        if big[ident] > _MAX and not root:
            return self._spill_if_large(out, plainer)
        return out

    def _container(self, item: Any, kind: type, where: Where, plainer: Plainer, news: Placed) -> Any:
        if kind is list:
            return self._list(item, where, plainer, news)
        if kind is Mark and "$blob" in item:
            return item
        return self._dict(item, where, plainer, news)

    def _list(self, value: list[Any], where: Where, plainer: Plainer, news: Placed) -> Any:
        encoded = dumps(value)
        if len(encoded) <= _MIN:
            return value
        if type(value[0]) is int and type(value[-1]) is int and len(encoded) <= _MAX:
            return _as_encoded(value, encoded)  # sizes and times: they do not come again
        keep = 0
        best: _Array | None = None
        head = _head(value)
        candidates = self._candidates(head, value)
        for held in candidates:
            size = len(held.stem)
            if len(encoded) > size and encoded.startswith(held.stem):
                if encoded[size] == _BRACKET and len(encoded) == size + 1:
                    return _same((held.seq, held.where))
                if encoded[size] == _COMMA and held.items > keep:
                    keep, best = held.items, held
        if best is None:
            keep, best = _longest_common(candidates, value, encoded)
        if best is not None and keep < len(value) and _is_option(value[keep - 1]):
            keep -= 1  # an option of a command line and what it is given stay together: that may be a secret
            best = best if keep else None
        news.arrays.append((head, encoded, len(value), where))
        big = plainer.big
        then: list[Any] | None = None if best is None else value[keep:]
        for position in range(keep, len(value)):
            item = value[position]
            kind = type(item)
            if kind is str and len(item) > _MIN:
                new = self._text(item, (where, position), plainer, news)
            elif (kind is dict or kind is list or kind is Mark) and id(item) in big:
                new = self._container(item, kind, (where, position), plainer, news)
            else:
                continue
            if new is not item:
                if then is None:
                    then = value.copy()
                then[position - (keep if best else 0)] = new
        if best is not None:
            return Mark({"$extends": f"{best.seq}#{pointer(best.where)}", "keep": keep, "then": then})
        if len(encoded) > _MAX:
            return self._spill_if_large(value if then is None else then, plainer)
        return _as_encoded(value, encoded) if then is None else then

    def _candidates(self, head: bytes, value: list[Any]) -> list[_Array]:
        """Return the held arrays that begin with this head."""
        found = self._found(head)
        if found is None and (text := first_text(value)) is not None and self._found(text_key(text)) is not None:
            found = self._found(head)
        return found if type(found) is list else []

    def _found(self, key: Key) -> Any:
        """Return what is known under a key, with its place in the line, which is found out if need be."""
        found = self.known.get(key)
        if type(found) is int:
            self._place(found)
            found = self.known.get(key)
        return found

    def _text_place(self, text: str) -> Place | None:
        """Return where a text stands; None if it is not held."""
        found = self._found(text_key(text))
        return next((place for held, place in found if held == text), None) if type(found) is list else None

    def _place(self, seq: int) -> None:
        """Find out where in line `seq` the content stands that is held from it."""
        offset = self.known.get(seq)
        if offset is None:
            return  # another thread has forgotten everything meanwhile
        data = self._read_data(offset)
        if type(data) is not dict:
            return  # the line cannot be read any more: what it holds is written in full once more
        texts, arrays, objects = (speed.places or _places)(data, _MIN, _limits.DEPTH_MAX)
        known = self.known
        for text, where in reversed(texts):  # of one that stands there twice, the first place counts
            _add_text(known, text, (seq, where))
        if seq in self.dense:  # else no object of this line is known: none need be encoded to find out
            for node, where in reversed(objects):
                if known.get(encoded := dumps(node)) == seq:
                    known[encoded] = (seq, where)
        for array, where in reversed(arrays):
            self._place_array(array, seq, where)

    def _place_array(self, array: list[Any], seq: int, where: Where) -> None:
        branches = self.known.get(head := _head(array))
        if branches is None or branches == seq:
            branches = []
        if type(branches) is list and len(branches) < _BRANCHES:
            found = _Array(dumps(array)[:-1], len(array), seq, where)
            if found not in branches:
                self.known[head] = [*branches, found]

    def _text(self, value: str, where: Where, plainer: Plainer, news: Placed) -> Any:
        if (place := self._text_place(value)) is not None:
            return _same(place)
        if len(value) > _MAX or (len(value) * 4 > _MAX and len(value.encode()) > _MAX):
            return plainer.spill(value.encode(), "text")
        news.content.append((value, where))
        return value

    def _spill_if_large(self, value: Any, plainer: Plainer) -> Any:
        encoded = dumps(value)
        return plainer.spill(encoded, "json") if len(encoded) > _MAX else value


def _places(value: dict[str, Any], least: int, depth_max: int) -> speed.Placed:
    """Do what the compiled part does: say where in a value its large texts, arrays and objects stand."""
    texts: list[tuple[str, Any]] = []
    arrays: list[tuple[list[Any], Any]] = []
    objects: list[tuple[dict[str, Any], Any]] = []

    def look(node: Any, where: Where, room: int) -> int:
        is_dict = type(node) is dict
        size = 10 * len(node) if is_dict else 2 + len(node)
        for part, item in node.items() if is_dict else enumerate(node):
            kind = type(item)
            inner = len(item) if kind is str else 8
            if kind is str and inner > least:
                texts.append((item, (where, part)))
            elif (kind is dict or kind is list) and room:
                inner = look(item, here := (where, part), room - 1)
                if inner > least // 2:  # names of fields may be long
                    (objects if kind is dict else arrays).append((item, here))
            size += inner
        return size

    look(value, None, depth_max)
    return texts, arrays, objects


def _add_text(known: Known, text: str, place: Place) -> None:
    """Note the place of a text beside those of others with its key; of many, the last few."""
    key = text_key(text)
    found = known.get(key)
    others = [(held, at) for held, at in found if held != text] if type(found) is list else []
    known[key] = [(text, place), *others[: _BRANCHES - 1]]


def _is_option(item: Any) -> bool:
    return type(item) is str and item[:1] == "-"


def _head(value: list[Any]) -> bytes:
    return b"[" + dumps(value[0])[:_HEAD]


def _longest_common(candidates: list[_Array], value: list[Any], encoded: bytes) -> tuple[int, _Array | None]:
    """Find the array that shares the most whole leading items, where that saves more than it costs."""
    best, best_keep = None, 0
    for held in candidates:
        common = _common_prefix(held.stem, encoded)
        end = keep = saved = 0
        for item in value:
            end += len(dumps(item)) + 1
            # An item is whole in both when the byte after it is a comma, or where the held array ends.
            if end > common or (end < len(held.stem) and held.stem[end] != _COMMA):
                break
            keep += 1
            saved = end
        if keep > best_keep and saved > _MIN:
            best, best_keep = held, keep
    return best_keep, best


def _common_prefix(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same(held: Place) -> Mark:
    return Mark({"$same": f"{held[0]}#{pointer(held[1])}"})


def pointer(where: Where) -> str:
    """Write a chain as a JSON pointer (RFC 6901)."""
    parts: list[str] = []
    while where is not None:
        where, last = where
        parts.append(str(last).replace("~", "~0").replace("/", "~1"))
    return "".join("/" + part for part in reversed(parts))
