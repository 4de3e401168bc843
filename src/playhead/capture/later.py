"""Write what a replay has answered a little later, many exchanges at once: whoever asked does not wait for that.

A replay can be run again, so that what it records need not survive the death of its process line by line. Everything
else that is recorded, and every look at what was, comes after what waits here.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from playhead import _limits
from playhead.capture import answering, reads

if TYPE_CHECKING:
    from playhead.capture.answering import Answer
    from playhead.capture.recording import Recording
    from playhead.capture.scope import Scope


class _Then(NamedTuple):
    """The clocks as they stood."""

    time_ns: int
    monotonic_ns: int

    def wall_us(self) -> int:
        return self.time_ns // 1000

    def monotonic_us(self) -> int:
        return self.monotonic_ns // 1000


class Later:
    """What one recording has yet to write, in order."""

    def __init__(self, recording: Recording, *, forked: bool = False) -> None:
        self._forked = forked
        self._recording = recording
        self.waiting: deque[tuple[int, int, Callable[[], None]]] = deque()
        self._settling = False

    def is_of_child(self) -> bool:
        """Say whether another process started this one to work for it: it may end it at any time."""
        return self._forked or getattr(sys.modules.get("multiprocessing.process"), "_parent_process", None) is not None

    def put(self, work: Callable[[], None]) -> None:
        """Have something recorded later, as of now. It must not raise."""
        self.waiting.append((_time_ns(), _monotonic_ns(), work))
        if len(self.waiting) == 1:
            reads.write_soon()
        elif len(self.waiting) >= _limits.WRITTEN_LATER_MAX:
            self.settle()

    def settle(self) -> None:
        """Record what waits."""
        ledger = self._recording.ledger
        # Of whoever holds the ledger or is in the midst of this, nothing is known that this could come before.
        if not self.waiting or ledger.in_hand:
            return
        with self._recording.turns_so_far.lock:
            if self._settling:
                return
            self._settling, clock = True, ledger.clock
            try:
                while self.waiting:
                    time_ns, monotonic_ns, work = self.waiting[0]
                    ledger.clock = _Then(time_ns, monotonic_ns)
                    try:
                        work()
                    finally:
                        self.waiting.popleft()
            finally:
                self._settling, ledger.clock = False, clock


def known_answer(scope: Scope, method: str, url: str, body: bytes) -> Answer | None:
    """Return the recorded answer to a question to a model, before it is recorded; None where it must be recorded first.

    That is so wherever it is not the next question on the tape, byte for byte, or its lane has read something since.
    """
    recording, player, pack = scope.recording, answering.player, scope.lane.reads
    if player is None or recording.unsealed or (pack is not None and pack.count) or b'{"$' in body:
        return None
    if scope.span in recording.turns_so_far.by_hand or recording.later.is_of_child():
        return None
    # As `exchange` writes it, where nothing was redacted, put aside or referred to.
    asked = b'"request":%b,"http":{"method":"%b","url":"%b","form":"json:compact"' % (
        body,
        method.encode(),
        url.encode(),
    )
    return player.ready(scope.lane.path, asked)


# Bound once: the recorder's own clocks, whatever a replay tells the program.
_time_ns, _monotonic_ns = time.time_ns, time.monotonic_ns
