"""Count what a policy denied in a run, or would have denied."""

from __future__ import annotations

from typing import Any

from playhead.event.envelope import Event
from playhead.views.points import mapping, words

_DENIED = ("deny", "ask")  # which stops as well


class Denials:
    """Take the decisions of a run in order."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, bool], int] = {}  # by capability, resource, and whether it was stopped
        self._totals: dict[tuple[str, ...], int] = {}  # of what was decided again and again in a place

    def take(self, event: Event) -> None:
        """Look at the next decision."""
        data = mapping(event.data)
        if data.get("decision") not in _DENIED:
            return
        capability, resource, times = words(data.get("capability")), words(data.get("resource")), data.get("times")
        more = 1
        if type(times) is int and times > 0:  # so many until now, of which not each was recorded
            place = (str(event.parent), event.lane, capability, resource, words(data.get("rule")))
            more = max(0, times - self._totals.get(place, 1))
            self._totals[place] = times
        what = (capability, resource, data.get("mode") == "enforce")
        self._counts[what] = self._counts.get(what, 0) + more

    @property
    def count(self) -> int:
        """Return how often something was denied."""
        return sum(self._counts.values())

    def listed(self) -> list[dict[str, Any]]:
        """List what was denied: capability, resource, enforced, times."""
        return [
            {"capability": capability, "resource": resource, "enforced": enforced, "times": times}
            for (capability, resource, enforced), times in self._counts.items()
        ]


def told(denied: list[dict[str, Any]], shown_max: int) -> str:
    """Say it in a line: `2 denied: fs.write a.md, net.connect host`; empty where nothing was."""
    parts = []
    for enforced, verb in ((True, "denied"), (False, "would be denied")):
        of_these = [one for one in denied if one["enforced"] is enforced]
        if of_these:
            named = [f"{one['capability']} {one['resource']}".strip() for one in of_these[:shown_max]]
            more = len(of_these) - len(named)
            count = sum(one["times"] for one in of_these)
            parts.append(f"{count:,} {verb}: {', '.join(named)}" + (f", and {more:,} more" if more else ""))
    return "; ".join(parts)
