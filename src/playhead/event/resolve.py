"""Read references back: give every value as it was, whatever it was written as.

References are absolute (`<seq>#<pointer into that event's data>`), so each is followed on its own. A conversation of n
turns is a chain of n `$extends`: it is followed in a loop, never by recursion, and recent ends are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from playhead import _limits
from playhead.errors import BadName, EventNotFound, MissingContent
from playhead.event.plain import mark

_REFERENCES = ("$same", "$extends", "$blob", "$commit")
_NAMES = tuple(f'{name}"'.encode() for name in _REFERENCES)
_FEW = 16


class Resolver:
    """Resolve the values of one run.

    `fetch` gives the unresolved data of an event by seq; `blob` the bytes of a digest; `private` the bytes behind a
    commitment, or None where they were erased.
    """

    def __init__(
        self,
        fetch: Callable[[int], Any],
        blob: Callable[[str], bytes],
        private: Callable[[str], bytes | None] | None = None,
    ) -> None:
        self._fetch = fetch
        self._blob = blob
        self._private = private
        self._known: OrderedDict[str, Any] = OrderedDict()
        self._underway: set[str] = set()
        self._weights: dict[str, int] = {}  # containers behind a reference, all expanded
        self._containers = 0

    def resolve(self, value: Any) -> Any:
        """Return the value with every reference replaced; parts without any are returned as they are."""
        self._containers = 0
        return self._value(value)

    def _value(self, value: Any) -> Any:
        """Resolve what stands in a value. Only containers are looked into: a call for each leaf is what would cost."""
        kind = type(value)
        if kind is dict:
            if (first := next(iter(value), "")) in _REFERENCES:
                return self._reference(first, value)
            parts: Iterable[tuple[Any, Any]] = value.items()
        elif kind is list:
            parts = enumerate(value)
        else:
            return value
        self._count(1)
        changed = []
        for place, item in parts:
            if type(item) is dict or type(item) is list:
                new = self._value(item)
                if new is not item:
                    changed.append((place, new))
        if changed:
            value = kind(value)
            for place, new in changed:
                value[place] = new
        return value

    def _reference(self, name: str, value: dict[str, Any]) -> Any:
        try:
            match name:
                case "$same":
                    return self._target(value["$same"])
                case "$extends":
                    return self._array(value)
                case "$blob":
                    return self._value(self._load(value))
                case _:
                    return self._committed(value)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError, BadName) as problem:
            # No Playhead wrote that.
            raise MissingContent(f"a {name} cannot be read: {problem!r}") from problem

    def _committed(self, value: dict[str, Any]) -> Any:
        data = self._private(value["$commit"]) if self._private else None
        return value if data is None else self._value(orjson.loads(data))

    def _target(self, reference: str) -> Any:
        if reference in self._known:
            self._known.move_to_end(reference)
            self._count(self._weights[reference])
            return self._known[reference]
        if reference in self._underway:
            raise MissingContent(f"{reference} refers to itself")
        self._underway.add(reference)
        before = self._containers
        try:
            out = self._value(self._locate(reference))
        finally:
            self._underway.discard(reference)
        self._keep(reference, out, self._containers - before)
        return out

    def _count(self, containers: int) -> None:
        self._containers += containers
        if self._containers > _limits.RESOLVED_CONTAINERS_MAX:
            raise MissingContent(
                f"a value has more than {_limits.RESOLVED_CONTAINERS_MAX} parts: references multiply it"
            )

    def _keep(self, reference: str, value: Any, weight: int) -> None:
        self._known[reference] = value
        self._weights[reference] = weight
        if len(self._known) > _limits.RESOLVED_LINES_CACHED_MAX:
            dropped, _ = self._known.popitem(last=False)
            del self._weights[dropped]

    def _array(self, node: dict[str, Any]) -> list[Any]:
        tails: list[tuple[int, list[Any]]] = []
        base: Any = node
        items: list[Any] | None = None
        reference = node["$extends"]
        seq = None
        while type(base) is dict and "$extends" in base:
            tails.append((base["keep"], base["then"]))
            reference = base["$extends"]
            seq = _earlier(reference, seq)
            items = self._known.get(reference)
            base = self._locate(reference) if items is None else None
        before = self._containers
        if items is None:
            items = self._value(base)
        else:
            self._count(self._weights[reference])
        if type(items) is not list:
            raise MissingContent(f"{reference} is not an array, though another event extends it")
        for left in range(len(tails) - 1, -1, -1):
            if not left:
                # The next turn extends this one, and finds its beginning here.
                self._keep(node["$extends"], items, self._containers - before)
            keep, then = tails[left]
            if keep > len(items):
                raise MissingContent(f"{reference} has {len(items)} items, {keep} are referred to")
            items = [*items[:keep], *(self._value(item) for item in then)]
        return items

    def _locate(self, reference: str) -> Any:
        """Follow a pointer through unresolved data."""
        seq, _, pointer = reference.partition("#")
        try:
            node = self._fetch(int(seq))
            for part in pointer.split("/")[1:]:
                node = self._step(node, part.replace("~1", "/").replace("~0", "~"))
        except (KeyError, IndexError, ValueError, TypeError, RecursionError, BadName, EventNotFound) as problem:
            raise MissingContent(f"nothing is at {reference}, though another event refers to it") from problem
        return node

    def _step(self, node: Any, part: str) -> Any:
        seq = None
        while type(node) is dict and (first := next(iter(node), "")) in _REFERENCES:
            if first == "$extends" and int(part) >= node["keep"]:
                return node["then"][int(part) - node["keep"]]
            if first == "$same" or first == "$extends":
                seq = _earlier(node[first], seq)
                node = self._locate(node[first])
            elif first == "$blob":
                node = self._load(node)
            else:
                node = self._committed(node)
        return node[int(part)] if type(node) is list else node[part]

    def _load(self, node: dict[str, Any]) -> Any:
        data = self._blob(node["$blob"])
        match node.get("as"):
            case "json":
                return orjson.loads(data)
            case "text":
                return data.decode()
            case "bytearray":
                return dict(mark(bytearray(data)))
            case _:
                return dict(mark(data))


def _earlier(reference: str, than: int | None) -> int:
    """Return the seq that a reference names; each in a chain must be earlier than the one before, so that it ends."""
    seq = int(reference.partition("#")[0])
    if than is not None and seq >= than:
        raise MissingContent(f"{reference} is part of a circle of references")
    return seq


def has_references(line: bytes) -> bool:
    """Say cheaply whether a line may hold a reference."""
    dollars = line.count(b"$")  # much faster than to look for a word
    if dollars > _FEW:
        return any(b'"' + name in line for name in _NAMES)
    at = 0
    for _ in range(dollars):
        at = line.find(b"$", at) + 1
        if line.startswith(_NAMES, at - 1) and line[at - 2 : at - 1] == b'"':
            return True
    return False
