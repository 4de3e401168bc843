"""Let threads, tasks and timers of a program go on when they did, by what its tape says."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from playhead import _limits
from playhead.capture import answering, scope
from playhead.capture.queues import GOT
from playhead.capture.writing import WROTE
from playhead.replay import loops
from playhead.replay.lookup import Lookup
from playhead.replay.order import Order
from playhead.replay.tape import TIMER, Tape


class Turned:
    """The part of a player that knows of turns."""

    tape: Tape
    lookup: Lookup
    order: Order

    def note_drift(self, source: str, where: str) -> None:
        """Count something that was answered, and not in the place where it was recorded."""
        raise NotImplementedError

    def beginning(self, lane: str) -> None:
        """Return when it is the turn of a thread to begin: not before work is cancelled that was, and never begun."""
        if lane in self.lookup.cancelled:
            self.order.wait(self.lookup.ended[lane], "begin", lane)

    def was_done(self, lane: str) -> bool:
        """Say whether work was recorded as done."""
        return lane in self.lookup.ended and lane not in self.lookup.cancelled

    def ending(self, lane: str) -> None:
        """Return when it is the turn of a thread to end whose lane this is."""
        at_us = self.lookup.ended.get(lane)
        if at_us is not None:
            self.order.wait(at_us, "end", lane)

    async def ending_async(self, lane: str) -> None:
        """Return when it is the turn of a task to end whose lane this is; at once where it is cancelled before.

        Then it had ended in the recording, and could not be cancelled any more: one of several that failed at once.
        """
        import asyncio

        at_us = self.lookup.ended.get(lane)
        if at_us is None:
            return
        try:
            await self.order.wait_async(at_us, "end", lane)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or lane in self.lookup.cancelled or _is_shutting_down():
                raise
            task.uncancel()

    def expect(self, lane: str, is_over: Callable[[], bool]) -> None:
        """Let time not pass the recorded end of work in another process before that has ended."""
        at_us = self.lookup.ended.get(lane)
        if at_us is not None:
            self.order.expect(lane, at_us, is_over)

    def came(self, lane: str, settle: Callable[[], object]) -> bool:
        """Take in that it has ended, and settle that when it is its turn."""
        at_us = self.lookup.ended.get(lane)
        self.order.came(lane)
        if at_us is None:
            return False
        self.order.add(at_us, "end", lane, settle)
        self.order.ring()
        return True

    def looped(self, of: str, by: str, lane: str) -> float | None:
        """Return what the clock of an event loop told."""
        found = self.lookup.next(lane, of, by)
        return None if found is None else float(found.value)

    def set_timer(
        self, loop: Any, when: float, callback: Any, args: Any, lane: str, number: int, context: Any = None
    ) -> Any:
        """Set a timer of the agent's: it fires when it did; one that did not, when nothing else can happen."""
        at_us = self.lookup.numbered(lane, TIMER).get(number)

        def unrecorded() -> None:
            self.note_drift("asyncio.timer", f"lane {lane}: a timer fired that did not when it was recorded")

        return loops.set_timer(self.order, loop, when, callback, args, context, at_us, lane, unrecorded)

    def waited(self, of: str, by: str, lane: str) -> list[Any] | None:
        """Say how a wait of a thread ended: whether it had what it waited for, and when."""
        found = self.lookup.own(lane, of, by)
        return None if found is None else list(found)

    def looked(self, of: str, by: str, lane: str) -> tuple[bool, int | None] | None:
        """Say whether what a thread looked for had come, and when it saw that."""
        return self.lookup.handed(lane, of, by)

    def comes(self, of: str, lane: str, come: Callable[[float], Any], wall_us: int, timeout: float | None) -> Any:
        """Wait for what had come then; nothing where it does not, although nobody can move any more."""
        timeout = _limits.IN_VAIN_S if timeout is None else max(0.0, timeout)
        found = self.order.until(come, self.tape.elapsed(wall_us), timeout, of, lane)
        if not found:
            self.note_drift(of, f"lane {lane}: waited in vain for what had come when it was recorded")
        return found

    def handed(self, of: str, by: str, lane: str) -> bool | None:
        """Return when it is the turn of a thread to put or get something; False where that was in vain."""
        found = self.lookup.handed(lane, of, by)
        if found is None:
            if self.lookup.was_got and of.endswith(GOT) and not scope.is_in_loop():
                self.order.wait(answering.LAST_US, "queue", lane)
            return None
        done, at_us = found
        if at_us is not None:
            self.order.wait(self.tape.elapsed(at_us), "queue", lane)
        return done

    def writing(self, lane: str, number: int) -> None:
        """Return when it is the turn of a thread to write to an output; at once where nobody else wrote before."""
        at_us = self.lookup.numbered(lane, WROTE).get(number)
        if at_us is not None:
            self.order.wait(at_us, "write", lane)

    def turn(self, wall_us: int) -> None:
        """Return when it is the turn of something that was recorded at this time since the epoch."""
        self.order.wait(self.tape.elapsed(wall_us))


def _is_shutting_down() -> bool:
    """Say whether `asyncio.run` cancels what its program has left: that it had ended does not matter any more."""
    from asyncio import runners

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not runners._cancel_all_tasks.__code__:  # type: ignore[attr-defined]
        frame = frame.f_back
    return frame is not None
