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
        self._join, self._lefts, self._rights, self._lane = join, lefts, rights, lane
        self._several = any(node.lane != lefts[0].lane for nodes in (lefts, rights) for node in nodes)
        self.divide()

    def divide(self) -> None:
        """Find the places between what is paired by now."""
        pairs = self.firm()
        gone = {id(pair[0]) for pair in order.moved(pairs, self._lane)}
        firm = _dividing([pair for pair in pairs if id(pair[0]) not in gone], self._lefts, self._rights)
        left, right = (
            _between(nodes, {id(pair[side]): number for number, pair in enumerate(firm)})
            for side, nodes in enumerate((self._lefts, self._rights))
        )
        places = [*left, *(place for place in right if place not in left)]
        self._gaps = [(left.get(at, []), right.get(at, []), type(at) is str and at != self._lane) for at in places]

    def unsure(self) -> tuple[list[Node], list[Node]]:
        """Return what has no mate, where its place does not say which belong together.

        There are others on one side than on the other, or the name of a lane that begins is all that they share.
        """
        found: tuple[list[Node], list[Node]] = ([], [])
        for ones, others, begins in self._gaps:
            left, right = ([node for node in side if node.mate is None] for side in (ones, others))
            if begins or _names(left) != _names(right):
                found[0].extend(left)
                found[1].extend(right)
        return found

    def left_over(self) -> tuple[list[Node], list[Node]]:
        """Return what has no mate, of both sides."""
        left = [node for ones, _, _ in self._gaps for node in ones if node.mate is None]
        return left, [node for _, others, _ in self._gaps for node in others if node.mate is None]

    def firm(self) -> list[Pair]:
        """Return what is paired, of these siblings."""
        return [(node, node.mate) for node in self._lefts if node.mate is not None]

    def align(self, token: Callable[[Node], Hashable], why: str = "") -> None:
        """Pair what has the same token, in order and within its gap; then what is left of different lanes."""
        self.align_by(lambda ones, others: _aligned(ones, others, token), why)

    def align_attempts(self, token: Callable[[Node], Hashable]) -> None:
        """Pair what has the same token, where several attempts at one question are one thing with the last of them."""
        self.align_by(lambda ones, others: _by_attempts(ones, others, token))

    def align_by(self, find: Callable[[list[Node], list[Node]], list[Pair]], why: str = "") -> None:
        """Pair what is found in a gap, in order; what is paired divides it. Then what is left of different lanes."""
        gaps = []
        for lefts, rights, begins in self._gaps:
            ones, others = ([node for node in side if node.mate is None] for side in (lefts, rights))
            pairs = find(ones, others) if ones and others else []
            for one, other in pairs:
                self._join(one, other, why)
            if pairs:
                between = _divided(ones, others, _dividing(pairs, ones, others))
                gaps += [(left, right, begins and len(between) == 1) for left, right in between]
            elif ones or others:
                gaps.append((ones, others, begins))
        self._gaps = gaps
        if self._several:
            for one, other in find(*self.left_over()):
                if one.lane != other.lane:
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


def _by_attempts(ones: list[Node], others: list[Node], token: Callable[[Node], Hashable]) -> list[Pair]:
    """Pair as `_aligned`; of attempts at two questions that belong together those that ended alike, else the last."""
    lefts, rights = ({id(found[-1]): found for found in _attempts(nodes)} for nodes in (ones, others))
    left_last, right_last = ([found[-1] for found in side.values()] for side in (lefts, rights))
    pairs: list[Pair] = []
    for one, other in _aligned(left_last, right_last, token):
        left, right = lefts[id(one)], rights[id(other)]
        alike = _aligned(left, right, lambda node: node.status) if len(left) + len(right) > 2 else []
        pairs += alike or [(one, other)]
    return pairs


def _attempts(nodes: list[Node]) -> list[list[Node]]:
    """Return nodes with those before them that asked the same and failed."""
    found: list[list[Node]] = []
    for node in nodes:
        before = found[-1][-1] if found else None
        if before is not None and before.status == "error" and before.question == node.question:
            found[-1].append(node)
        else:
            found.append([node])
    return found


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


def _dividing(pairs: list[Pair], lefts: Sequence[Node], rights: Sequence[Node]) -> list[Pair]:
    """Return the pairs that all others of their lane are before or after; not those that overlapped with some."""
    for side, nodes in enumerate((lefts, rights)):
        lanes: dict[str, list[Node]] = {}
        for node in nodes:
            lanes.setdefault(node.lane, []).append(node)
        crowded: set[int] = set()
        for inner in lanes.values():
            if _overlap(inner):
                groups = _groups(inner)
                sizes = Counter(groups)
                crowded |= {id(node) for node, group in zip(inner, groups, strict=True) if sizes[group] > 1}
        pairs = [pair for pair in pairs if id(pair[side]) not in crowded] if crowded else pairs
    return pairs


def _between(nodes: Sequence[Node], firm: dict[int, int]) -> dict[int | str, list[Node]]:
    """Return what has no mate, by the last firm one before it in its lane; by the lane where that begins."""
    found: dict[int | str, list[Node]] = {}
    last: dict[str, int | str] = {}
    for node in nodes:
        if node.mate is None:
            found.setdefault(last.get(node.lane, node.lane), []).append(node)
        elif (place := firm.get(id(node))) is not None:
            last[node.lane] = place
    return found


def _names(nodes: list[Node]) -> Counter[Hashable]:
    return Counter((node.kind, node.name) for node in nodes)


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
