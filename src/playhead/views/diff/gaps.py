"""Find what has no mate yet between siblings that are paired, and pair it there: in each lane by itself, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise

from playhead.views.alignment import aligned, balanced
from playhead.views.diff import order
from playhead.views.diff.nodes import Node
from playhead.views.diff.order import Pair


class Gaps:
    """What has no mate yet, in the places between siblings of a lane that are paired and in order."""

    def __init__(self, lefts: Sequence[Node], rights: Sequence[Node], lane: str, join: Callable[..., None]) -> None:
        self._join, self._lefts = join, lefts
        self._gaps: list[tuple[list[Node], list[Node]]] = []
        lanes: dict[str, tuple[list[Node], list[Node]]] = {}
        for side, nodes in enumerate((lefts, rights)):
            for node in nodes:
                lanes.setdefault(node.lane, ([], []))[side].append(node)
        self._several = len(lanes) > 1
        for ones, others in lanes.values():
            pairs = [(node, node.mate) for node in ones if node.mate is not None and node.mate.lane == node.lane]
            gone = {id(pair[0]) for pair in order.moved(pairs, lane)}
            firm = _dividing([pair for pair in pairs if id(pair[0]) not in gone], ones, others)
            left, right = (
                _between(nodes, {id(pair[side]): number for number, pair in enumerate(firm)})
                for side, nodes in enumerate((ones, others))
            )
            self._gaps += [(nodes, right.get(place, [])) for place, nodes in left.items()]
            self._gaps += [([], nodes) for place, nodes in right.items() if place not in left]

    def left_over(self) -> tuple[list[Node], list[Node]]:
        """Return what has no mate, of both sides."""
        left, right = ([node for gap in self._gaps for node in gap[side] if node.mate is None] for side in (0, 1))
        return left, right

    def firm(self) -> list[Pair]:
        """Return what is paired, of these siblings."""
        return [(node, node.mate) for node in self._lefts if node.mate is not None]

    def align(self, token: Callable[[Node], Hashable], why: str = "") -> None:
        """Pair what has the same token, in order and within its gap; then what is left of different lanes."""
        self.align_by(lambda ones, others: _aligned(ones, others, token), why)

    def align_by(self, find: Callable[[list[Node], list[Node]], list[Pair]], why: str = "") -> None:
        """Pair what is found in a gap, in order; what is paired divides it. Then what is left of different lanes."""
        gaps = []
        for gap in self._gaps:
            ones, others = ([node for node in side if node.mate is None] for side in gap)
            pairs = find(ones, others) if ones and others else []
            if not pairs:
                gaps.append((ones, others))
                continue
            for one, other in pairs:
                self._join(one, other, why)
            gaps += _divided(ones, others, _dividing(pairs, ones, others))
        self._gaps = gaps
        if self._several:
            for one, other in find(*self.left_over()):
                self._join(one, other, why)


def _aligned(ones: list[Node], others: list[Node], token: Callable[[Node], Hashable]) -> list[Pair]:
    """Pair what has the same token, in order; None is nobody's.

    Of equal ones those are paired that leave as many unpaired on both sides of them: these are then paired in turn.
    """
    tokens = [token(node) for node in ones], [token(node) for node in others]
    common = {*tokens[0]}.intersection(tokens[1]) - {None}
    if not common:
        return []
    if any(_overlap(nodes) for nodes in (ones, others)):
        rank: dict[Hashable, int] = {}
        for found in (*tokens[0], *tokens[1]):
            rank.setdefault(found, len(rank))
        ones, others = (_ranked(nodes, side, rank) for nodes, side in zip((ones, others), tokens, strict=True))
        tokens = [token(node) for node in ones], [token(node) for node in others]
    lefts, rights = ([at for at, found in enumerate(side) if found in common] for side in tokens)
    pairs: list[tuple[int, int]] = []
    for block in aligned([tokens[0][at] for at in lefts], [tokens[1][at] for at in rights]):
        if block.same:
            pairs += zip(lefts[block.left : block.left_end], rights[block.right : block.right_end], strict=True)
    return [(ones[x], others[y]) for x, y in balanced(tokens, pairs)]


def _overlap(nodes: list[Node]) -> bool:
    return any(other.start <= one.end for one, other in pairwise(nodes))


def _groups(nodes: list[Node]) -> list[int]:
    """Number those that overlapped, each with one that began before it, alike."""
    end, group, found = -1, 0, []
    for node in nodes:
        group += node.start > end
        end = max(end, node.end)
        found.append(group)
    return found


def _ranked(nodes: list[Node], tokens: list[Hashable], rank: dict[Hashable, int]) -> list[Node]:
    """Put those that overlapped, which have no order, into one that is the same on both sides."""
    groups = _groups(nodes)
    order = sorted(range(len(nodes)), key=lambda at: (groups[at], rank[tokens[at]]))
    return [nodes[at] for at in order]


def _dividing(pairs: list[Pair], lefts: list[Node], rights: list[Node]) -> list[Pair]:
    """Return the pairs that all others are before or after; not those that overlapped with some."""
    for side, nodes in enumerate((lefts, rights)):
        if _overlap(nodes):
            groups = _groups(nodes)
            sizes = Counter(groups)
            alone = {id(node) for node, group in zip(nodes, groups, strict=True) if sizes[group] == 1}
            pairs = [pair for pair in pairs if id(pair[side]) in alone]
    return pairs


def _between(nodes: Sequence[Node], firm: dict[int, int]) -> dict[int, list[Node]]:
    """Return what has no mate, by the last firm one before it."""
    found: dict[int, list[Node]] = {}
    place = -1
    for node in nodes:
        place = firm.get(id(node), place)
        if node.mate is None:
            found.setdefault(place, []).append(node)
    return found


def _divided(ones: list[Node], others: list[Node], pairs: list[Pair]) -> list[tuple[list[Node], list[Node]]]:
    """Return what lies between pairs, which are in order on both sides."""
    found: list[tuple[list[Node], list[Node]]] = [([], [])]
    for side, nodes in enumerate((ones, others)):
        firm = {id(pair[side]): number for number, pair in enumerate(pairs, 1)}
        place = 0
        for node in nodes:
            place = firm.get(id(node), place)
            while place >= len(found):
                found.append(([], []))
            if id(node) not in firm:
                found[place][side].append(node)
    return found
