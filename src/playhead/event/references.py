"""Write repeated content once: `$same`, `$extends` and blobs.

`Held.shape` visits the large containers of a plain value, from the top, and replaces what this writer has written
before. An event that repeats nothing is recognised as such and encoded by one call, and a conversation of n turns costs
n, not n². Content is compared as encoded bytes or as text, never by Python's `==`, for which 1, 1.0 and True are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from playhead import _limits
from playhead.event.plain import Mark
from playhead.event.plainer import Plainer

dumps = orjson.dumps

_MIN = _limits.REFERENCE_BYTES_MIN
_MAX = _limits.INLINE_BYTES_MAX
_HEAD = 96  # first bytes of an array's first item, by which one that it may extend is found
_BRANCHES = 4  # arrays with the same first bytes that are remembered: sub-agents, edited histories
_COMMA, _BRACKET = b",]"

Where = tuple[Any, "str | int"] | None  # a JSON pointer, as a chain: (parent, last part)
_SOMEWHERE: Where = (None, "?")  # in that line, at a place not looked for yet
Place = tuple[int, Where]


class News(NamedTuple):
    """Content that a line will hold once it is written."""

    texts: list[tuple[str, Where]]
    values: list[tuple[bytes, Where]]
    arrays: list[tuple[bytes, bytes, int, Where]]  # head, encoded, count, where
    unplaced: list[str]  # texts whose place is found out only if they come again


class _Array(NamedTuple):
    stem: bytes  # the encoded array without its last bracket; empty while its place is not known
    count: int
    seq: int
    where: Where


class Held:
    """Remember what one writer wrote to one run, and replace it when it comes again."""

    __slots__ = ("_read_data", "arrays", "generation", "held_bytes", "texts", "values")
    texts: dict[str, Place]
    values: dict[bytes, Place]
    arrays: dict[bytes, list[_Array]]
    held_bytes: int

    def __init__(self, read_data: Callable[[int], Any]) -> None:
        self.generation = 0
        self._read_data = read_data  # gives the data of a line that this writer wrote, by seq
        self.forget()

    def forget(self) -> None:
        """Start anew; what comes again is then written in full once more."""
        self.texts = {}
        self.values = {}
        self.arrays = {}
        self.held_bytes = 0

    def shape(self, value: Any, plainer: Plainer) -> tuple[Any, News | None]:
        """Replace what this run already holds, and spill what is too large for a line.

        Returns what to encode, and what to `remember` once it is written.
        """
        size = plainer.big.get(id(value))
        if size is None:
            return value, None
        if size * 4 <= _MAX and (news := self._all_new(value, plainer)) is not None:
            return value, news
        news = News([], [], [], [])
        return self._dict(value, None, plainer, news, root=True), news

    def _all_new(self, value: Any, plainer: Plainer) -> News | None:
        """Tell quickly whether nothing in this value was held before; None if something may have been.

        Where exactly in its line each part stands is found out only if it ever comes again.
        """
        if not self.texts.keys().isdisjoint(plainer.long):
            return None
        news = News([], [], [], plainer.long)
        for item in plainer.lists:
            head = dumps(item[0])[:_HEAD]
            if head in self.arrays:
                return None
            news.arrays.append((head, b"", len(item), _SOMEWHERE))
        for item in plainer.dense.values():
            if item is not value:
                encoded = dumps(item)
                if encoded in self.values:
                    return None
                news.values.append((encoded, _SOMEWHERE))
        return news

    def remember(self, seq: int, news: News) -> None:
        """Note content that line `seq` now holds."""
        if news.unplaced:
            self.texts.update(dict.fromkeys(news.unplaced, (seq, _SOMEWHERE)))
            self.held_bytes += sum(map(len, news.unplaced))
        for text, where in news.texts:
            self.texts[text] = (seq, where)
            self.held_bytes += len(text)
        for encoded, where in news.values:
            self.values[encoded] = (seq, where)
            self.held_bytes += len(encoded)
        for head, encoded, count, where in news.arrays:
            self._remember_array(head, _Array(encoded[:-1], count, seq, where))
        if self.held_bytes > _limits.HELD_BYTES_MAX:
            self.forget()

    def _remember_array(self, head: bytes, array: _Array) -> None:
        branches = self.arrays.get(head)
        if branches is None:
            if len(self.arrays) >= _limits.HELD_ARRAYS_MAX:
                for dropped in self.arrays.pop(next(iter(self.arrays))):  # the oldest
                    self.held_bytes -= len(dropped.stem)
            self.arrays[head] = [array]
        else:
            if branches and branches[0].stem and array.stem.startswith(branches[0].stem):
                self.held_bytes -= len(branches.pop(0).stem)  # the longer one stands for both
            elif len(branches) == _BRANCHES:
                self.held_bytes -= len(branches.pop().stem)
            branches.insert(0, array)
        self.held_bytes += len(array.stem)

    def _dict(self, value: Any, where: Where, plainer: Plainer, news: News, root: bool = False) -> Any:
        big = plainer.big
        ident = id(value)
        if ident in plainer.dense and not root and big[ident] <= _MAX:
            encoded = dumps(value)
            held = self.values.get(encoded)
            if held is not None and (place := self._placed(held, self.values, encoded)) is not None:
                return _same(place)
            if len(encoded) > _MIN:
                news.values.append((encoded, where))
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

    def _container(self, item: Any, kind: type, where: Where, plainer: Plainer, news: News) -> Any:
        if kind is list:
            return self._list(item, where, plainer, news)
        if kind is Mark and "$blob" in item:
            return item
        return self._dict(item, where, plainer, news)

    def _list(self, value: list[Any], where: Where, plainer: Plainer, news: News) -> Any:
        encoded = dumps(value)
        if len(encoded) <= _MIN:
            return value
        keep = 0
        best: _Array | None = None
        head = dumps(value[0])[:_HEAD]
        candidates = self._candidates(head)
        for held in candidates:
            size = len(held.stem)
            if len(encoded) > size and encoded.startswith(held.stem):
                if encoded[size] == _BRACKET and len(encoded) == size + 1:
                    return _same((held.seq, held.where))
                if encoded[size] == _COMMA and held.count > keep:
                    keep, best = held.count, held
        if best is None:
            keep, best = _longest_common(candidates, value, encoded)
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
        return orjson.Fragment(encoded) if then is None else then  # encoded already: need not be again

    def _candidates(self, head: bytes) -> list[_Array]:
        """Return the held arrays with these first bytes, each with its exact place."""
        found = self.arrays.get(head)
        if found is None:
            return []
        for held in list(found):
            if held.where is _SOMEWHERE:
                self._place(held.seq)
        placed = self.arrays[head] = [held for held in self.arrays[head] if held.where is not _SOMEWHERE]
        return placed

    def _placed(self, held: Place, table: dict[Any, Any], content: Any) -> Place | None:
        """Return the exact place of a text or dict that is held, finding it out if need be."""
        if held[1] is not _SOMEWHERE:
            return held
        self._place(held[0])
        held = table[content]
        if held[1] is not _SOMEWHERE:
            return held
        del table[content]  # it was spilled, or the line cannot be read: it is written in full once more
        return None

    def _place(self, seq: int) -> None:
        """Find out where in line `seq` the content stands that is held from it."""
        todo: list[tuple[Any, Where]] = [(self._read_data(seq), None)]
        while todo:
            node, where = todo.pop()
            kind = type(node)
            if kind is str:
                if len(node) > _MIN and self.texts.get(node) == (seq, _SOMEWHERE):
                    self.texts[node] = (seq, where)
                continue
            if kind is dict:
                if where is not None and self.values.get(encoded := dumps(node)) == (seq, _SOMEWHERE):
                    self.values[encoded] = (seq, where)
                todo.extend((item, (where, key)) for key, item in node.items())
            elif kind is list:
                branches = self.arrays.get(dumps(node[0])[:_HEAD], []) if node else []
                for number, held in enumerate(branches):
                    if held.seq == seq and held.where is _SOMEWHERE and held.count == len(node):
                        branches[number] = _Array(dumps(node)[:-1], held.count, seq, where)
                        self.held_bytes += len(branches[number].stem)
                        break
                todo.extend((item, (where, position)) for position, item in enumerate(node))

    def _text(self, value: str, where: Where, plainer: Plainer, news: News) -> Any:
        held = self.texts.get(value)
        if held is not None and (place := self._placed(held, self.texts, value)) is not None:
            return _same(place)
        if len(value) > _MAX or (len(value) * 4 > _MAX and len(value.encode()) > _MAX):
            return plainer.spill(value.encode(), "text")
        news.texts.append((value, where))
        return value

    def _spill_if_large(self, value: Any, plainer: Plainer) -> Any:
        encoded = dumps(value)
        return plainer.spill(encoded, "json") if len(encoded) > _MAX else value


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
