"""Know what was cut short in one of two runs, since a task beside it had failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

from playhead.views.diff.differing import Difference, left_parent
from playhead.views.diff.nodes import Node
from playhead.views.points import mapping

Ends = dict[str, tuple[int, str]]  # of the lanes of a run: when each ended, and how


def ends_in(reads: dict[str, Any]) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield which lanes ended, of the data of an `ambient.read`."""
    groups = reads.get("reads")
    for group in filter(None, map(mapping, groups if isinstance(groups, list) else ())):
        values = group.get("values") if group.get("of") == "lane.ended" else None
        for value in values if isinstance(values, list) else ():
            match value:
                case [str(lane), int(when), str(outcome), *_]:
                    yield lane, (when, outcome)


class Cancelled:
    """Hold what differs against what failed in one of the runs only."""

    def __init__(self, found: Sequence[Difference], ends: tuple[Ends, Ends]) -> None:
        self._failed = _failed(found)
        self._ends = ends
        self._mates: dict[int, Node | None] = {}  # what stands on the other side for what is only on one
        self._cut_short: dict[int, bool] = {}
        self._beside: dict[int, float] = {}
        self._around: dict[int, Node | None] = {}

    def among(self, found: Iterable[Difference]) -> list[Difference]:
        """Return what was cancelled in one of the runs for that reason, and what it was kept from doing."""
        return [one for one in found if self._was_cancelled(one) or self._was_kept(one)] if self._failed else []

    def _was_cancelled(self, one: Difference) -> bool:
        return any(
            node is not None and mate is not None and self._was_cut_short(node, mate)
            for node, mate in ((one.left, one.right), (one.right, one.left))
        )

    def _was_kept(self, one: Difference) -> bool:
        """Say whether it is missing in a span, or in a task, that was cancelled."""
        if one.left is not None and one.right is not None:
            return False
        around = left_parent(one.node, self._mates)
        if self._lane_was_cut_short(one.node.lane, around, self._ends[one.right is None]):
            return True
        return around is not None and self._is_in_cut_short(around)

    def _is_in_cut_short(self, node: Node) -> bool:
        """Say whether a span, or one around it, was cut short."""
        way: list[Node] = []
        at: Node | None = node
        found = False
        while at is not None and not found:
            if (known := self._cut_short.get(id(at))) is not None:
                found = known
                break
            way.append(at)
            found = at.mate is not None and self._was_cut_short(at, at.mate)
            at = at.parent
        self._cut_short.update((id(one), found) for one in way)
        return found

    def _was_cut_short(self, node: Node, mate: Node) -> bool:
        """Say whether it was cancelled, and not its mate, after a task beside it, or around it, had failed."""
        return node.status == "cancelled" != mate.status and self._failed_beside(node) < node.end

    def _failed_beside(self, node: Node) -> float:
        """Return when a task beside a span, or beside one around it, had failed first."""
        way: list[Node] = []
        at: Node | None = node
        while at is not None and id(at) not in self._beside:
            way.append(at)
            at = at.parent
        first = inf if at is None else self._beside[id(at)]
        for one in reversed(way):
            ends = [other.end for other in self._failed.get(id(one.parent), ()) if other.lane != one.lane]
            first = self._beside[id(one)] = min([first, *ends])
        return first

    def _lane_was_cut_short(self, lane: str, around: Node | None, ends: Ends) -> bool:
        """Say whether a lane, or one that it comes of, was cancelled after one beside it had ended with an error."""
        for own in _line(lane):
            when, how = ends.get(own, (0, ""))
            at = self._failed_around(around) if how == "cancelled" else None
            while at is not None:
                for other in self._failed.get(id(at), ()):
                    told = [
                        ends[beside] for beside in _line(other.lane) if beside in ends and beside not in _line(lane)
                    ]
                    if any(outcome == "error" and then <= when for then, outcome in told):
                        return True
                at = self._failed_around(at.parent)
        return False

    def _failed_around(self, node: Node | None) -> Node | None:
        """Return the first span, from this one outwards, right in which something failed."""
        way: list[Node] = []
        at = node
        while at is not None and id(at) not in self._failed and id(at) not in self._around:
            way.append(at)
            at = at.parent
        found = None if at is None else self._around.get(id(at), at)
        self._around.update((id(one), found) for one in way)
        return found


def _line(lane: str) -> list[str]:
    """Return a lane, and those that it comes of."""
    parts = lane.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]


def _failed(found: Iterable[Difference]) -> dict[int, list[Node]]:
    """Return what failed first in one of the runs only, in two lanes, by the node that it is in."""
    failed: dict[int, list[Node]] = {}
    for one in found:
        for node, mate in ((one.left, one.right), (one.right, one.left)):
            if node is not None and node.status == "error" and (mate is None or mate.status != "error"):
                failed.setdefault(id(node.parent), []).append(node)
    return {parent: _first_of_two_lanes(nodes) for parent, nodes in failed.items()}


def _first_of_two_lanes(nodes: Sequence[Node]) -> list[Node]:
    """Return what ended first, and first in any other lane: beside whatever lane, one of them was the first to end."""
    first = min(nodes, key=lambda node: node.end)
    others = [node for node in nodes if node.lane != first.lane]
    return [first, *([min(others, key=lambda node: node.end)] if others else [])]
