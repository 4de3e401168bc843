"""Know what of a run was done in the world. A replay does things in a scratch folder, and is answered from its tape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead.views.audit.around import Around, Spans

_REPLAYS = ("exact", "model", "step", "fork", "resume")  # modes of an origin; a child is no replay


class Reality:
    """Follow whether a replay has left its tape, and which calls it made in the world.

    Where that is not sure, because some of its threads were past the tape and others not, it counts as done.
    """

    def __init__(self) -> None:
        self._replays = False
        self._left_at: int | None = None
        self._live: set[str] = set()

    def began(self, origin: dict[str, Any] | None) -> None:
        """Take in what a run comes from."""
        self._replays = origin is not None and origin.get("mode") in _REPLAYS

    def left(self, seq: int, spans: Spans) -> None:
        """Take in that it is past the tape: what was under way then is done in the world, too."""
        if self._left_at is None:
            self._left_at = seq
            self._live |= spans.calls_under_way()

    @property
    def is_past_tape(self) -> bool:
        """Say whether what comes now is after the end of a tape."""
        return self._left_at is not None

    def reported(self, live_spans: Any) -> None:
        """Take in which calls were live, as the replay says at its end."""
        if isinstance(live_spans, list):
            self._live.update(span for span in live_spans if isinstance(span, str))

    def holds(self, seq: int, around: Around | None, own: Iterable[str] = ()) -> bool:
        """Say whether what an event tells of was done in the world; `own` are the spans of calls that it is about."""
        if not self._replays or (self._left_at is not None and seq > self._left_at):
            return True
        if not self._live.isdisjoint(own):
            return True
        run = around.run if around is not None else None
        return around is not None and any(one.run == run and one.span in self._live for one in around.chain())
