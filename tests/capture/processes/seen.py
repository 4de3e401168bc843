"""Look at the processes that a run recorded."""

from __future__ import annotations

from typing import Any

import playhead
from playhead import Event
from playhead.event.plain import restore


def events(run: str = "@last") -> list[Event]:
    """Return all events, every value as it was."""
    return list(playhead.load(run).events())


def processes(run: str = "@last") -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Return what was asked and what came of it, for each process, in the order of their starts."""
    opened, closed = {}, {}
    for event in events(run):
        if event.kind == "process.started":
            opened[event.span] = event.data
        elif event.kind == "process.exited":
            assert event.span not in closed, "a span is closed once"
            closed[event.span] = {name: restore(value) for name, value in event.data.items()}
    return [(asked, closed.get(span)) for span, asked in opened.items()]


def only(run: str = "@last") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the one process."""
    ((asked, came),) = processes(run)
    assert came is not None, "it is closed"
    return asked, came


def gaps(run: str = "@last") -> list[tuple[str, Any]]:
    """Return the gaps, each with its detail."""
    return [(event.data["reason"], event.data.get("detail")) for event in events(run) if event.kind == "gap.noted"]
