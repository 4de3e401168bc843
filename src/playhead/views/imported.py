"""Put the events of a run that came from outside into the order of their times: they arrive in any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead.event.envelope import Event
from playhead.event.kinds import OPENING_TO_CLOSING
from playhead.views.points import mapping


def is_imported(started: dict[str, Any]) -> bool:
    """Say from the data of `run.started` whether a run came from outside, and its events in the order of arrival."""
    return started.get("external_id") is not None or mapping(started.get("origin")).get("mode") == "import"


def in_time(events: Iterable[Event]) -> list[Event]:
    """Return events in the order of their times; of one moment the outer ones begin first and end last."""
    events = list(events)
    parents = {event.span: event.parent for event in events if event.span and event.kind in OPENING_TO_CLOSING}
    depths: dict[str | None, int] = {None: 0}
    for span in parents:
        way: dict[str, None] = {}
        at: str | None = span
        while at is not None and at not in depths and at not in way:
            way[at] = None
            at = parents.get(at)
        depth = depths.get(at, 0)
        for outer in reversed(way):
            depth += 1
            depths[outer] = depth

    def when(event: Event) -> tuple[int, int, int]:
        depth = depths.get(event.span or event.parent, 0)
        ends = event.span is not None and event.kind not in OPENING_TO_CLOSING
        return event.elapsed_us, -depth if ends else depth, event.seq

    return sorted(events, key=when)
