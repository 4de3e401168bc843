"""Keep when threads went on that waited for others: what they waited for in vain, and when they were told.

Each is kept with its time, as a read of the lane. A replay lets each of them happen when it is its turn. Who was told
something in time waits until it is told again, however long that takes; but not when nobody is left who could do so.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from playhead.capture import answering, hooks, queues
from playhead.capture.patches import Patches

WAITED, NOTIFIED, JOINED = "threading.wait", "threading.notified", "threading.join"
# What waits in the name of whoever calls it.
_THROUGH = frozenset({"threading", "queue", "concurrent", "multiprocessing"})
_WAIT_FOR = threading.Condition.wait_for.__code__
_now = time.time_ns
_SKIPPED_S_MAX = 1e6  # what is longer than this is meant to be for ever
_T = TypeVar("_T")


def patch(patches: Patches) -> None:
    """Put ourselves where threads wait for each other."""
    patches.replace(threading.Condition, "wait", _wait)
    patches.replace(threading.Thread, "join", _join)


def _place(of: str, frame: FrameType | None) -> Any:
    """Say where a wait is kept, by the first frame that is not of those who wait for others; None for nowhere."""
    if not hooks.watched:
        return None
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str) or name.partition(".")[0] not in _THROUGH:
            return hooks.here(of, frame)
        frame = frame.f_back
    return None


def _wait(original: Any) -> Any:
    @functools.wraps(original)
    def wait(self: Any, timeout: float | None = None) -> Any:
        if timeout is None:
            return _wait_for_notice(original, self, sys._getframe(1))
        place = None if queues.is_inside() else _place(WAITED, sys._getframe(1))
        if place is None:
            return original(self, timeout)
        of, by, pack, span = place
        if answering.player is not None:
            told = answering.player.waited(of, by, pack.lane)
            if told is not None:
                return _wait_as_recorded(self, timeout, place, told)
        notified = original(self, timeout)
        pack.add(of, by, [bool(notified), _now() // 1000], 24, span)
        return notified

    return wait


def _wait_for_notice(original: Any, condition: Any, frame: FrameType) -> Any:
    """Wait without a timeout: of several that were notified, the one that has the lock first is chance.

    Only for a condition of the agent's own. How often those of `threading` wait for theirs is chance as well.
    """
    if frame.f_code is _WAIT_FOR and frame.f_back is not None:
        frame = frame.f_back
    place = hooks.here(NOTIFIED, frame) if hooks.watched and not queues.is_inside() else None
    notified = original(condition, None)
    if place is None:
        return notified
    of, by, pack, span = place
    told = None if answering.player is None else answering.player.waited(of, by, pack.lane)
    if told is not None:
        _let_others(condition, functools.partial(_player().turn, told[1]))
    pack.add(of, by, [True, _now() // 1000], 24, span)
    return notified


def _wait_as_recorded(condition: Any, timeout: float, place: Any, told: list[Any]) -> bool:
    notified, at_us = told
    if not notified:
        _let_others(condition, functools.partial(_player().turn, at_us))
    elif _is_notified(condition, timeout, place):
        return True
    else:
        hooks.skip(int(min(max(timeout, 0), _SKIPPED_S_MAX) * 1e9))
    return False


def _is_notified(condition: Any, timeout: float, place: Any) -> bool:
    """Wait as a condition does, and until nobody can notify us any more.

    Not again and again with a timeout: whoever is notified just after that would not know.
    """
    of, _, pack, _ = place
    waiter = threading.Lock()
    waiter.acquire()
    condition._waiters.append(waiter)
    try:
        come = lambda seconds: waiter.acquire(timeout=seconds)  # noqa: E731
        return _let_others(condition, functools.partial(_player().comes, of, pack.lane, come, timeout))
    finally:
        with contextlib.suppress(ValueError):  # whoever notifies takes it out
            condition._waiters.remove(waiter)


def _let_others(condition: Any, wait: Callable[[], _T]) -> _T:
    """Wait for something, with the lock that others may have until then."""
    saved = condition._release_save()
    try:
        return wait()
    finally:
        condition._acquire_restore(saved)


def _player() -> answering.Player:
    assert answering.player is not None
    return answering.player


def _join(original: Any) -> Any:
    @functools.wraps(original)
    def join(self: Any, timeout: float | None = None) -> None:
        place = None if timeout is None else _place(JOINED, sys._getframe(1))
        if place is None:
            original(self, timeout)
            return
        of, by, pack, span = place
        told = None if answering.player is None else answering.player.waited(of, by, pack.lane)
        if told is None:
            original(self, timeout)
            pack.add(of, by, [not self.is_alive(), _now() // 1000], 24, span)
        elif told[0]:
            _player().comes(of, pack.lane, functools.partial(_ends, original, self), timeout)
        else:
            _player().turn(told[1])

    return join


def _ends(join: Any, thread: Any, seconds: float) -> bool:
    join(thread, seconds)
    return not thread.is_alive()
