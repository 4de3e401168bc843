"""Run the event loops of asyncio in recorded time: when a loop has nothing to do, whoever is next goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.capture.patches import Patches
from playhead.replay.order import UNRECORDED_US, Order, Turn, call_in

_BASE_S = 1_000_000.0  # what a loop's clock says when the run begins: only differences matter


def patch(module: ModuleType, patches: Patches, order: Order) -> None:
    """Put ourselves between the loops of asyncio and the system."""
    kind = module.BaseEventLoop
    patches.replace(kind, "run_forever", functools.partial(_run_forever, order))
    patches.replace(kind, "time", functools.partial(_time, order))


def instead_of_uvloop(module: ModuleType) -> None:
    """Let a program that asks for a loop of uvloop have one of asyncio, in which turns can be taken."""
    import asyncio

    class Loop(asyncio.SelectorEventLoop):
        """What is replayed in place of the loop of uvloop."""

    module.Loop = Loop  # type: ignore[attr-defined]


def _time(order: Order, original: Any) -> Any:
    @functools.wraps(original)
    def time(self: Any) -> float:
        return _BASE_S + order.now_us / 1e6

    return time


def _run_forever(order: Order, original: Any) -> Any:
    @functools.wraps(original)
    def run_forever(self: Any) -> Any:
        inner = getattr(self, "_selector", None)
        if inner is None or isinstance(inner, _Idle):
            return original(self)
        self._selector = _Idle(inner, self, order)
        try:
            return original(self)
        finally:
            self._selector = inner

    return run_forever


class _Idle:
    """What a loop waits with: a selector, and the turns of the replay."""

    def __init__(self, inner: Any, loop: Any, order: Order) -> None:
        self._inner, self._loop, self._order = inner, loop, order

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def select(self, timeout: float | None = None) -> Any:
        """Return what is ready; where nothing is, and nothing else moves, let the next one go on."""
        events, order = self._inner.select(0), self._order
        if events or (timeout is not None and timeout <= 0):
            if order.is_overdue() and order.alone() and (turn := order.take_next(busy=True)) is not None:
                order.release(turn)  # the loop is never idle: somebody polls for what waits for its turn
            return events
        if order.closed:
            return self._inner.select(timeout)
        timer = None
        if timeout is not None:
            due = order.now_us + max(1, round(timeout * 1e6))
            timer = order.add(due, "timer", "", self._loop._write_to_self, after_s=timeout)
        try:
            turn = order.take_next() if order.alone() else None
            if turn is not None:
                order.release(turn)
                return []
            if order.waiting():
                order.ring()
            return self._inner.select(None)
        finally:
            if timer is not None:
                timer.gone = True


def set_timer(
    order: Order,
    loop: Any,
    when: float,
    callback: Any,
    args: Any,
    context: Any,
    at_us: int | None,
    lane: str,
    unrecorded: Callable[[], None],
) -> Any:
    """Set a timer that fires at a recorded time; it can be cancelled as any other.

    Where that is None it was given up then, or is new: it fires when nothing else can happen, and `unrecorded` is told.
    """
    handle = _timer_class()(when, callback, args, loop, context)
    due_us = round((when - _BASE_S) * 1e6)

    def fire() -> None:
        if not handle.cancelled():
            if at_us is None:
                order.reach(due_us)
                unrecorded()
            loop._ready.append(handle)

    turn_us = UNRECORDED_US + max(due_us, 0) if at_us is None else at_us
    after_s = max(0.0, when - loop.time()) if at_us is None else None
    handle.turn = order.add(turn_us, "timer", lane, lambda: call_in(loop, fire), after_s=after_s)
    order.ring_if_needed()
    return handle


@functools.cache
def _timer_class() -> Any:
    import asyncio  # which the program has loaded by now

    class Timer(asyncio.TimerHandle):
        """A timer that takes its turn with it when it is cancelled."""

        turn: Turn | None = None

        def cancel(self) -> None:
            super().cancel()
            if self.turn is not None:
                self.turn.gone = True

    return Timer
