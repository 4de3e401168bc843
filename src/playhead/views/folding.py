"""Find which events of a timeline are told in one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from playhead.event.envelope import Event

if TYPE_CHECKING:
    from playhead.views.timeline import Row

_FOLDED = ("output.written", "mcp.notified", "run.reopened")


def same_before(rows: Sequence[Row], event: Event, data: dict[str, Any]) -> Row | None:
    """Return the last row, if it says the same of the same: one more piece of an output. None where it does not."""
    if event.kind not in _FOLDED or not rows:
        return None
    # What was read is written at any time, and so in between, too.
    last = rows[-2] if len(rows) > 1 and rows[-1].kind == "ambient.read" else rows[-1]
    same = last.name == str(data.get("stream") or data.get("method") or "")
    return last if last.kind == event.kind and last.lane == event.lane and same else None
