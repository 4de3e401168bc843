"""Let what a program reads be the world's, where it is past the tape."""

from __future__ import annotations

import time
from typing import Any

from playhead.capture.hooks import What
from playhead.replay.course import Course
from playhead.replay.player import Player
from playhead.replay.tape import Tape
from playhead.replay.values import value_of

# Clocks that only ever go on: where the tape ends they do so from what they said last.
_STEADY = {
    "time.monotonic": time.monotonic_ns,
    "time.monotonic_ns": time.monotonic_ns,
    "time.perf_counter": time.perf_counter_ns,
    "time.perf_counter_ns": time.perf_counter_ns,
}


class PastPlayer(Player):
    """The part of a player that knows who is past the tape."""

    def __init__(self, tape: Tape, course: Course, **options: Any) -> None:
        super().__init__(tape, **options)
        self.course = course
        self._offsets: dict[str, int] = {}  # of clocks that only ever go on

    def read(
        self, of: str, by: str, pack: Any, what: int, owner: Any, args: tuple[Any, ...], named: dict[str, Any] | None
    ) -> Any:
        """Answer a read from the tape; past it, clocks that only go on do so, and everything else is the world's."""
        if not self.is_in_world(pack.lane):
            return self.served.answer(of, by, pack, what, owner, args, named)
        steady = _STEADY.get(of.rpartition(":")[2])
        if steady is None or what not in (What.SECONDS, What.NANOSECONDS):
            return NotImplemented
        source = steady.__name__
        if source not in self._offsets:
            last = self.served.told_last(source.removesuffix("_ns"))
            self._offsets[source] = 0 if last is None else last - steady()
        return value_of(what, steady() + self._offsets[source], owner, args, named)

    def variable(self, of: str, by: str, lane: str, name: str) -> tuple[bool, Any]:
        """Say what a module was told of a variable; what was redacted is what it is here."""
        if self.is_in_world(lane):
            return False, None
        known, value = super().variable(of, by, lane, name)
        hidden = known and self.course.live and isinstance(value, str) and value.startswith("[redacted:")
        return (False, None) if hidden else (known, value)

    def file(self, of: str, by: str, lane: str, path: str, *, sure: bool = True) -> dict[str, Any] | None:
        """Say what a file was when the agent opened it."""
        return None if self.is_in_world(lane) else super().file(of, by, lane, path, sure=sure)

    def handed(self, of: str, by: str, lane: str) -> bool | None:
        """Return when it is the turn of a thread to put or get something; at once, past the tape."""
        return None if self.is_in_world(lane) else super().handed(of, by, lane)

    def note_drift(self, source: str, where: str) -> None:
        """Count something that was answered from elsewhere; past the tape, everything is."""
        if not self.is_in_world():
            super().note_drift(source, where)
