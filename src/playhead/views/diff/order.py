"""Find what changed its place among its siblings.

Two siblings of one lane have an order where one was over before the other began; those that overlapped have none. The
lanes of tasks and threads run beside each other, so what they do has no order between them, unless the lane itself is
another: then the program began it at another place. Where one more was begun, all after it have other numbers; those
are no others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from playhead.views.diff.nodes import Node

Pair = tuple[Node, Node]
_EACH = 1 << 32  # more than all that is in them together


class Placed(NamedTuple):
    """Where something stood in both runs, and how much it would say that it is this that was moved."""

    left: tuple[int, int]
    right: tuple[int, int]
    weight: int


def moved(pairs: Sequence[Pair], lane: str) -> list[Pair]:
    """Return the pairs that changed their place: as few as explain the difference, small things before large ones."""
    by_lane: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        by_lane.setdefault((pair[0].lane, pair[1].lane), []).append(pair)
    found = [pair for group in by_lane.values() for pair in _moved(group, _own)]
    if len(by_lane) > 1:
        gone = {id(pair[0]) for pair in found}
        extents = _Extents(pairs, lane)
        renumbered = extents.are_renumbered()
        across = [
            pair
            for pair in pairs
            if id(pair[0]) not in gone and (lane == pair[0].lane or (pair[0].lane != pair[1].lane and not renumbered))
        ]
        found += _moved(across, extents.of)
    return found


def crossing(firm: Sequence[Pair], pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that stand before something of their lane on one side, and after it on the other."""
    by_lane: dict[tuple[str, str], list[Placed]] = {}
    for pair in firm:
        by_lane.setdefault((pair[0].lane, pair[1].lane), []).append(_own(pair))
    barriers = {lanes: _Barrier(placed) for lanes, placed in by_lane.items()}
    return [
        pair
        for pair in pairs
        if (own := barriers.get((pair[0].lane, pair[1].lane))) is not None and own.against(_own(pair))
    ]


def checked_late(pairs: Sequence[Pair], parents: Pair) -> list[Pair]:
    """Return the policy checks that were made before an effect in one run, and after it in the other."""
    checks = [pair for pair in pairs if pair[0].kind == "policy.checked" and pair[0].lane == pair[1].lane]
    if not checks:
        return []
    lefts, rights = (_by_occurrence(parent) for parent in parents)
    by_lane: dict[str, list[Placed]] = {}
    for which, when in lefts.items():
        if (other := rights.get(which)) is not None:
            by_lane.setdefault(which[1], []).append(Placed((when, when), (other, other), 1))
    barriers = {lane: _Barrier(effects) for lane, effects in by_lane.items()}
    return [pair for pair in checks if (own := barriers.get(pair[0].lane)) is not None and own.against(_own(pair))]


def _by_occurrence(parent: Node) -> dict[tuple[str, str, int], int]:
    found: dict[tuple[str, str, int], int] = {}
    times: dict[tuple[str, str], int] = {}
    for which, lane, when in parent.effects:
        times[which, lane] = number = times.get((which, lane), 0) + 1
        found[which, lane, number] = when
    return found


def _own(pair: Pair) -> Placed:
    left, right = pair
    return Placed((left.start, left.end), (right.start, right.end), _weight(left))


def _weight(node: Node) -> int:
    """Say how much it takes to move something: each as much as any other, and of two the larger one stays."""
    small = node.kind in ("policy.checked", "note.added", "artifact.created")
    return _EACH + (1 if small else 2 + len(node.children))


class _Extents:
    """Take a lane that was begun inside as one thing, from its first event to its last."""

    def __init__(self, pairs: Sequence[Pair], base: str) -> None:
        self._base, self._pairs = base, pairs
        self._spans: list[dict[str, list[int]]] = [{}, {}]
        for pair in pairs:
            for spans, node in zip(self._spans, pair, strict=True):
                span = spans.setdefault(self._top(node.lane), [node.start, node.end])
                span[0], span[1] = min(span[0], node.start), max(span[1], node.end)

    def of(self, pair: Pair) -> Placed:
        places = []
        for spans, node in zip(self._spans, pair, strict=True):
            first, last = (node.start, node.end) if node.lane == self._base else spans[self._top(node.lane)]
            places.append((first, last))
        return Placed(places[0], places[1], _weight(pair[0]))

    def are_renumbered(self) -> bool:
        """Say whether the lanes were begun in one order on both sides: then one before them came or went, at most."""
        lanes = {(self._top(one.lane), self._top(other.lane)) for one, other in self._pairs}
        begun = sorted((_spawned(left), _spawned(right)) for left, right in lanes)
        return all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(begun))

    def _top(self, lane: str) -> str:
        """Return the lane that was begun by the base, of which this one comes."""
        if not lane.startswith(f"{self._base}."):
            return lane
        return f"{self._base}.{lane[len(self._base) + 1 :].partition('.')[0]}"


def _spawned(lane: str) -> list[tuple[int, str]]:
    """Return what is in the order in which lanes were begun."""
    return [(len(number), number) for number in lane.split(".")]


def _moved(pairs: Sequence[Pair], place: Callable[[Pair], Placed]) -> list[Pair]:
    found: list[Pair] = []
    for block in _blocks(pairs) if place is _own else [pairs]:
        if len(block) > 1:
            kept = unmoved([place(pair) for pair in block])
            found += [pair for at, pair in enumerate(block) if at not in kept]
    return found


def _blocks(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Split what stood one after the other on both sides, so that nothing of a block is out of order with another."""
    pairs = sorted(pairs, key=lambda pair: pair[0].start)
    begins = [pair[1].start for pair in pairs]
    for at in range(len(begins) - 2, -1, -1):
        if begins[at + 1] < begins[at]:
            begins[at] = begins[at + 1]  # the first of all that follow
    block: list[Pair] = []
    end = -1
    for pair, begin in zip(pairs, begins, strict=True):
        if block and end < begin:
            yield block
            block = []
        block.append(pair)
        if pair[1].end > end:
            end = pair[1].end
    if block:
        yield block


def unmoved(placed: Sequence[Placed]) -> set[int]:
    """Return what can stay where it is: a set of which no two were in one order on the left and the other one right."""
    barrier = _Barrier(placed)
    kept = {at for at, one in enumerate(placed) if not barrier.against(one)}
    left_over = [at for at in range(len(placed)) if at not in kept]
    left_over.sort(key=lambda at: (placed[at].left, placed[at].right))
    while left_over:
        run = _heaviest(placed, left_over)
        kept |= run
        barrier = _Barrier([placed[at] for at in kept])
        # What only overlaps with those that stay, stays too.
        left_over = [at for at in left_over if at not in run and not barrier.against(placed[at])]
    return kept


class _Barrier:
    """Things that stay, against which others are held."""

    def __init__(self, stay: Sequence[Placed]) -> None:
        ends = sorted((one.left[1], one.right[0]) for one in stay)
        self._ends = [end for end, _ in ends]
        self._latest: list[int] = []  # beginning on the right, of all that were over by then on the left
        for _, begin in ends:
            self._latest.append(max(begin, self._latest[-1]) if self._latest else begin)
        begins = sorted((one.left[0], one.right[1]) for one in stay)
        self._begins = [begin for begin, _ in begins]
        self._earliest: list[int] = []  # end on the right, of all that began by then or later on the left
        for _, end in reversed(begins):
            self._earliest.append(min(end, self._earliest[-1]) if self._earliest else end)
        self._earliest.reverse()

    def against(self, one: Placed) -> bool:
        """Say whether something is in another order than one of those that stay."""
        before = bisect_left(self._ends, one.left[0])
        if before and self._latest[before - 1] > one.right[1]:
            return True
        after = bisect_left(self._begins, one.left[1] + 1)
        return after < len(self._begins) and self._earliest[after] < one.right[0]


def _heaviest(placed: Sequence[Placed], order: Sequence[int]) -> set[int]:
    """Return the heaviest set whose beginnings are in one order on both sides."""
    rank = {at: number for number, at in enumerate(sorted(order, key=lambda at: (placed[at].right, placed[at].left)))}
    best: list[tuple[int, int]] = [(0, -1)] * (len(order) + 1)  # a tree of maxima over the ranks
    before: dict[int, int] = {}
    for at in order:
        weight, last = _most(best, rank[at])
        before[at] = last
        _raise(best, rank[at], (weight + placed[at].weight, at))
    at = _most(best, len(order))[1]
    found = set()
    while at >= 0:
        found.add(at)
        at = before[at]
    return found


def _most(tree: list[tuple[int, int]], until: int) -> tuple[int, int]:
    """Return the maximum over the ranks below `until`."""
    found = (0, -1)
    while until > 0:
        found = max(found, tree[until])
        until -= until & -until
    return found


def _raise(tree: list[tuple[int, int]], rank: int, value: tuple[int, int]) -> None:
    at = rank + 1
    while at < len(tree):
        tree[at] = max(tree[at], value)
        at += at & -at
