"""Say which differences follow from which, and where each branch of a run left the other one.

Everything is laid out on the time of the left run; what is only in the right one stands in the gap where it was put. A
difference comes before another where it was over when that began: in the same lane, or in a lane that had ended or was
not begun yet. Lanes that ran beside each other, and siblings that overlapped, are branches of their own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import inf

from playhead.views.diff.cancelled import Cancelled, Ends
from playhead.views.diff.differing import Difference, left_parent
from playhead.views.diff.nodes import Node
from playhead.views.diff.order import Pair
from playhead.views.diff.pairing import paired_children

Place = Callable[[Node], tuple[float, float]]  # when it began and ended
_NOTHING, _OTHER, _REASON = (
    0,
    1,
    2,
)  # what differs before something: nothing, what explains nothing, what may explain it


class Causes:
    """Lay differences out in time."""

    def __init__(self, root: Node, found: Sequence[Difference], ends: tuple[Ends, Ends]) -> None:
        """Take the run on the left, what differs, and how the lanes of both runs ended."""
        self._root = root
        self._by_node = {id(one.node): one for one in found}
        self._added: dict[int, list[Node]] = {}  # by the node of the left run that they would be in
        self._places: dict[int, tuple[float, float]] = {}  # of what is only on the right
        for one in found:
            if one.left is None:
                self._hang(one.node)
        self._mark(found)
        cancelled = Cancelled(found, ends).among(found)
        for one in cancelled:
            one.cause = "follows"
        self._cut_short = {id(one.node) for one in cancelled}

    def _hang(self, node: Node) -> None:
        parent = node.parent
        if parent is not None and parent.mate is not None:
            self._added.setdefault(id(parent.mate), []).append(node)

    def _mark(self, found: Iterable[Difference]) -> None:
        """Note for each node whether something differs in it."""
        known: dict[int, Node | None] = {}
        for one in found:
            at: Node | None = one.node
            while at is not None and not at.deviates:
                at.deviates = True
                at = at.parent if at is not one.node or one.left is not None else left_parent(at, known)

    def settle(self) -> None:
        """Set the cause of each difference, and whether its branch begins to differ there."""
        waiting: list[tuple[Node, int]] = [(self._root, _NOTHING)]
        while waiting:
            node, before = waiting.pop()
            children = [child for child in node.children if child.deviates] + self._added.get(id(node), [])
            self._judge(node, before, bool(children))
            one = self._by_node.get(id(node))
            if one is not None and one.left is None:
                self._places.update((id(child), self._place(node)) for child in children)
            self._lay_out(node)
            if before == _REASON or (one is not None and one.leads):
                waiting += [(child, _REASON) for child in children]
            else:
                least = max(before, _OTHER if node.moved == "name" else _NOTHING)
                waiting += [(child, max(least, found)) for child, found in self._tainted(children, node.lane)]

    def _judge(self, node: Node, before: int, inner: bool) -> None:
        one = self._by_node.get(id(node))
        if one is None:
            return
        start, end = self._place(node)
        moved, tainted = one.type == "moved", before == _REASON
        one.at = end if one.by_answer and inner and not moved else start
        led = one.by_answer and (inner or (tainted and node.is_made))  # to another answer
        if led and moved and one.cause != "follows":  # then only its place is left to explain
            one.cause = "follows" if node.moved == "wrapper" else None
        explained = one.cause == "follows" or (tainted if not one.by_answer or (moved and led) else led)
        one.point = not explained and before == _NOTHING
        if explained:
            one.cause = "follows"

    def _tainted(self, children: Sequence[Node], lane: str) -> list[tuple[Node, int]]:
        """Return for each of some siblings whether a difference in another one came before it, and a reason for it."""
        found: list[tuple[Node, int]] = []
        waiting: list[tuple[Sequence[Node], str, int]] = [(children, lane, _NOTHING)]
        while waiting:
            nodes, base, before = waiting.pop()
            here = [node for node in nodes if node.lane == base]
            lanes: dict[str, list[Node]] = {}
            for node in nodes:
                if node.lane != base:
                    lanes.setdefault(_top(node.lane, base), []).append(node)
            late = _late(here, lanes, lambda node: self._reach(node, *self._place(node)), self._explains)
            # What is only on the right has one place on the left, and an order of its own.
            ones = [node for node in here if self._is_added(node)]
            others = {top: inner for top, inner in lanes.items() if all(map(self._is_added, inner))}
            added = _late(ones, others, lambda node: self._reach(node, node.start, node.end), self._explains)
            found += [(node, max(before, late[id(node)], added.get(id(node), _NOTHING))) for node in here]
            waiting += [(inner, top, max(before, late[top], added.get(top, _NOTHING))) for top, inner in lanes.items()]
        return found

    def _explains(self, node: Node) -> bool:
        """Say whether others may follow from it: not from another name alone, or from a span that was put around it."""
        one = self._by_node.get(id(node))
        bare = one is not None and one.cause in (None, "follows") and node.moved in ("name", "wrapper")
        return not bare or any(child.deviates for child in node.children) or id(node) in self._added

    def _is_added(self, node: Node) -> bool:
        return node.mate is None and id(node) in self._places

    def _place(self, node: Node) -> tuple[float, float]:
        if id(node) in self._places:
            return self._places[id(node)]
        return node.start, inf if node.status == "open" else node.end

    def _reach(self, node: Node, start: float, end: float) -> tuple[float, float]:
        """Return when it was over for others: what something beside it cut short was not when that began."""
        return start, inf if id(node) in self._cut_short else end

    def _lay_out(self, parent: Node) -> None:
        """Give what is only on the right its place on the left, in the gap between what is on both and in its lane."""
        added = self._added.get(id(parent))
        if not added:
            return
        firm: dict[str, list[Pair]] = {}
        for one, other in paired_children(parent):
            if one.moved != "order":
                firm.setdefault(other.lane, []).append((one, other))
        gaps = {lane: _Gap(pairs) for lane, pairs in firm.items()}
        for node in added:
            lane = node.lane
            while lane and lane not in gaps:  # else in the lane that began it
                lane = lane.rpartition(".")[0]
            first, last = gaps[lane].around(node) if lane else (None, None)
            begin = (parent.start if first is None else first) + 0.5
            end = (self._place(parent)[1] if last is None else last) - 0.5
            self._places[id(node)] = begin, max(begin, end)


class _Gap:
    """Places on the left between pairs of a lane."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._ends = sorted((other.end, one.end) for one, other in pairs)
        self._begins = sorted((other.start, one.start) for one, other in pairs)
        self._latest = list(accumulate((end for _, end in self._ends), max))
        self._earliest = list(accumulate((start for _, start in reversed(self._begins)), min))[::-1]

    def around(self, node: Node) -> tuple[int | None, int | None]:
        """Return where on the left ended what is before something on the right, and where began what is after it."""
        before = bisect_left(self._ends, (node.start, -1))
        after = bisect_left(self._begins, (node.end + 1, -1))
        return (
            self._latest[before - 1] if before else None,
            self._earliest[after] if after < len(self._earliest) else None,
        )


def _late(
    here: Sequence[Node], lanes: dict[str, list[Node]], place: Place, explains: Callable[[Node], bool]
) -> dict[int | str, int]:
    """Say of each sibling (by its id) and each lane whether it began when another of them was over, and which."""
    units: dict[int | str, tuple[float, float, bool]] = {id(node): (*place(node), explains(node)) for node in here}
    for top, inner in lanes.items():
        places = [place(node) for node in inner]
        units[top] = min(start for start, _ in places), max(end for _, end in places), any(map(explains, inner))
    any_over = min((end for _, end, _ in units.values()), default=inf)
    over = min((end for _, end, reason in units.values() if reason), default=inf)
    return {
        one: _REASON if over < start else _OTHER if any_over < start else _NOTHING
        for one, (start, _, _) in units.items()
    }


def _top(lane: str, base: str) -> str:
    """Return the lane that the base began, of which another one comes; that one itself where it does not."""
    if not lane.startswith(f"{base}."):
        return lane
    return f"{base}.{lane[len(base) + 1 :].partition('.')[0]}"
