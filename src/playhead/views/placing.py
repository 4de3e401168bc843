"""Find the order of spans and points by their times and by what they are in, whatever order they came in.

Clocks of several machines disagree: what seems to begin before the span that it is in is placed right after its
beginning, and a span that seems to end before it began ends right there. Spans that would be in each other are cut
apart at the one that began first, which then stands at the top.
"""

from __future__ import annotations

_ENDS, _BEGINS, _ENDS_LAST, _TOLD = range(4)  # of one moment: what had begun before, what begins, what that ends

_Key = tuple[int, int, int, int, str, str, int]


class Placing:
    """Take spans and points, each with a place; `order` gives the places in order. Depth costs no depth of calls."""

    def __init__(self) -> None:
        self.cut: set[str] = set()  # spans that would be in themselves
        self._parents: dict[str, str | None] = {}
        self._begins: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._opened: dict[str, int] = {}  # of spans without an end so far, the place
        self._openings: dict[int, tuple[str, int]] = {}  # by place
        self._closings: list[tuple[str, int, int]] = []
        self._points: list[tuple[str | None, int, int, str]] = []
        self._revisions: list[tuple[str | None, str | None, int, int]] = []
        self._depths: dict[str, int] = {}
        self._since: dict[str, int] = {}  # from when on a span stands in the order

    def opens(self, span: str, parent: str | None, at_us: int, place: int) -> None:
        """Take the beginning of a span. One that came twice, and once without an end, was only half written then."""
        torn = self._opened.get(span)
        if torn is not None:
            del self._openings[torn]
        if torn is not None or span not in self._begins:
            self._parents[span], self._begins[span] = parent, at_us
        self._opened[span] = place
        self._openings[place] = span, at_us

    def closes(self, span: str, at_us: int, place: int) -> None:
        """Take the end of a span."""
        self._opened.pop(span, None)
        self._ends.setdefault(span, at_us)
        self._closings.append((span, at_us, place))

    def happens(self, parent: str | None, at_us: int, place: int, name: str = "") -> None:
        """Take a point; of those that are of one moment and in one span the order is that of their names."""
        self._points.append((parent, at_us, place, name))

    def revises(self, span: str | None, parent: str | None, at_us: int, place: int) -> None:
        """Take that a span was told anew: right after its end, where there is such a span."""
        self._revisions.append((span, parent, at_us, place))

    def order(self) -> list[int]:
        """Return the places in order."""
        self._sink()
        depths, since = self._depths, self._since
        ends = {span: max(self._ends[span], since[span]) for span in since if span in self._ends}
        late = {span for span, at_us in ends.items() if at_us == since[span]}  # end after what begins in that moment
        keys: list[_Key] = []
        for parent, at_us, place, name in self._points:
            around = parent or ""
            at_us = max(at_us, since.get(around, at_us))
            if ends.get(around) == at_us:
                late.add(around)
            keys.append((at_us, _BEGINS, depths.get(around, 0) + 1, at_us, around, name, place))
        for span in sorted(since, key=depths.__getitem__, reverse=True):
            around = self._parents[span] or ""
            if around in ends and ends[around] in (since[span], ends.get(span) if span in late else None):
                late.add(around)
        for place, (span, at_us) in self._openings.items():
            at_us = max(at_us, since[span])
            keys.append((at_us, _BEGINS, depths[span], ends.get(span, at_us), span, "", place))
        for span, at_us, place in self._closings:
            phase = _ENDS_LAST if span in late else _ENDS
            keys.append((max(at_us, since.get(span, at_us)), phase, -depths.get(span, 0), at_us, span, "", place))
        for revised, parent, at_us, place in self._revisions:
            span, around = revised or "", parent or ""
            at_us = max(ends.get(span, at_us), since.get(around, at_us))
            keys.append((at_us, _TOLD, depths.get(around, 0) + 1, at_us, span, "", place))
        keys.sort()
        return [key[-1] for key in keys]

    def _sink(self) -> None:
        """Say of every span how deep it is, and from when on it stands in the order: not before what it is in."""
        for span in self._parents:
            way = self._way_up(span)
            outer = self._parents[way[-1]] if way else None
            depth = self._depths.get(outer or "", 0)
            since = self._since.get(outer or "")
            for one in reversed(way):
                depth += 1
                since = self._begins[one] if since is None else max(since, self._begins[one])
                self._depths[one], self._since[one] = depth, since

    def _way_up(self, span: str) -> list[str]:
        """Return a span and all that it is in, up to what is known already."""
        while True:
            way: dict[str, None] = {}
            at: str | None = span
            while at is not None and at in self._parents and at not in self._depths and at not in way:
                way[at] = None
                at = self._parents[at]
            if at is None or at not in way:
                return list(way)
            ring = list(way)
            ring = ring[ring.index(at) :]
            top = min(ring, key=lambda one: (self._begins[one], one))
            self._parents[top] = None
            self.cut.add(top)
