"""Keep when the timers of the agent fired: `asyncio.sleep`, timeouts, `call_later`; by their number in the lane.

A timer that was given up is not kept. A replay lets each fire when it is its turn, and the others never.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from typing import Any

from playhead.capture import answering, hooks, lanes, spawning
from playhead.capture.scope import Lane, ambient, current, muted

OF = "asyncio.timer"
_now = time.time_ns


class _Local(threading.local):
    inside = False


_local = _Local()


def _lane() -> tuple[Lane, str | None] | None:
    """Return the lane in which a timer is set, if what it reads is kept, and the span."""
    if not hooks.watched or muted.get():
        return None
    scope, process = current.get(), ambient()
    if scope is not None:
        return None if scope.lane.reads is None else (scope.lane, scope.span)
    lane = None if process is None else process.lane_here()
    return None if lane is None or lane.reads is None else (lane, None)


class _Fired:
    """What a timer calls, and where to keep that it did."""

    def __init__(self, callback: Any, lane: Lane, span: str | None, number: int) -> None:
        self._callback, self._lane, self._span, self._number = callback, lane, span, number

    def __call__(self, *args: Any) -> Any:
        reads = self._lane.reads
        if reads is not None:
            reads.add(OF, "", [self._number, _now() // 1000], 24, self._span)
        return self._callback(*args)

    def __repr__(self) -> str:
        return repr(self._callback)


def set_plainly(loop: Any, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
    """Set a timer as a loop does without us."""
    _local.inside = True
    try:
        return loop.call_at(when, callback, *args, context=context)
    finally:
        _local.inside = False


def call_at(original: Any) -> Any:
    """Wrap the method of an event loop that sets a timer for a time."""
    return _timing(original, replays=True)


def call_later(original: Any) -> Any:
    """Wrap the one that sets it for a time from now on, of a loop that does not use the other."""
    return _timing(original, replays=False)


def _timing(original: Any, *, replays: bool) -> Any:
    made = lanes.era()

    @functools.wraps(original)
    def set_timer(self: Any, when: Any, callback: Any, *args: Any, **options: Any) -> Any:
        place = None if made != lanes.era() or _local.inside else _lane()
        if place is None or spawning.asked(sys._getframe().f_back) != spawning.OWN:
            return original(self, when, callback, *args, **options)
        lane, span = place
        lane.timers += 1
        fired = _Fired(callback, lane, span, lane.timers)
        if replays and answering.player is not None:
            return answering.player.set_timer(self, when, fired, args, lane.path, lane.timers, **options)
        _local.inside = True
        try:
            return original(self, when, fired, *args, **options)
        finally:
            _local.inside = False

    return set_timer
