"""Pair calls that asked for something else by the values that they have in common, and nobody else has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

from playhead import _limits
from playhead.views.diff import order
from playhead.views.diff.likeness import says_much
from playhead.views.diff.nodes import Node
from playhead.views.diff.order import Pair

# Returns the single values of a question, by the names of their fields.
Values = Callable[[Node], Mapping[str, Hashable]]


def called(node: Node) -> Hashable:
    """Return what was called, whatever it was asked: any model, a resource without its query, a program."""
    match node.kind:
        case "model":
            return (node.kind,)
        case "http":
            return node.kind, node.name.partition("?")[0]
        case "process":
            return node.kind, node.name.partition(" ")[0].rpartition("/")[2]  # of whichever environment
        case _:
            return node.kind, node.name


class Kin:
    """Look at single values, as long as that is worth it: they have to be read again."""

    def __init__(self, values: tuple[Values, Values]) -> None:
        self._values = values
        self._left_over = _limits.DIFFERENCE_KIN_MAX

    def pairs(self, lefts: Sequence[Node], rights: Sequence[Node], firm: Sequence[Pair]) -> list[Pair]:
        """Return what belongs together, of what has no mate, without what would cross what has."""
        groups: dict[Hashable, tuple[list[Node], list[Node]]] = {}
        for side, nodes in enumerate((lefts, rights)):
            for node in nodes:
                groups.setdefault(called(node), ([], []))[side].append(node)
        found = [pair for group in groups.values() for pair in self._among(*group)]
        apart = {id(one) for one, _ in order.crossing([*firm, *found], found)} if found else set()
        return [pair for pair in found if id(pair[0]) not in apart]

    def _among(self, lefts: list[Node], rights: list[Node]) -> list[Pair]:
        """Pair those that have more in common with each other than with any other one."""
        size = len(lefts) + len(rights)
        if not lefts or not rights or size < 3 or size > self._left_over:
            return []
        self._left_over -= size
        known: list[dict[Hashable, Node | None]] = [{}, {}]  # by what only one has
        for held, nodes, values in zip(known, (lefts, rights), self._values, strict=True):
            for node in nodes:
                for value in (*values(node).items(), *([node.answer] if says_much(node) else ())):
                    held[value] = None if value in held else node
        votes: tuple[dict[int, Counter[int]], ...] = ({}, {})
        for value, one in known[0].items():
            other = known[1].get(value)
            if one is not None and other is not None:
                votes[0].setdefault(id(one), Counter())[id(other)] += 1
                votes[1].setdefault(id(other), Counter())[id(one)] += 1
        mates = {id(node): node for node in rights}
        best = [{at: _most(found) for at, found in side.items()} for side in votes]
        return [
            (node, mates[most])
            for node in lefts
            if (most := best[0].get(id(node))) is not None and best[1][most] == id(node)
        ]


def _most(votes: Counter[int]) -> int | None:
    """Return which has the most; None where two have."""
    first, *rest = votes.most_common(2)
    return None if rest and rest[0][1] == first[1] else first[0]
