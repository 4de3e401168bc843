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
from types import FrameType, ModuleType
from typing import Any, TypeVar

from playhead.capture import answering, hooks, queues
from playhead.capture.patches import Patches

WAITED, NOTIFIED, JOINED = "threading.wait", "threading.notified", "threading.join"
# What waits in the name of whoever calls it.
_THROUGH = frozenset({"threading", "queue", "concurrent", "multiprocessing"})
_WAIT_FOR = threading.Condition.wait_for.__code__
_now = time.time_ns
_T = TypeVar("_T")


def patch(patches: Patches) -> None:
    """Put ourselves where threads wait for each other."""
    patches.replace(threading.Condition, "wait", _wait)
    patches.replace(threading.Condition, "wait_for", _wait_for)
    patches.replace(threading.Event, "wait", _wait_for_event)
    patches.replace(threading.Semaphore, "acquire", _acquire)
    patches.replace(threading.Thread, "join", _join)


def patch_futures(module: ModuleType, patches: Patches) -> None:
    """Put ourselves where they wait for the result of a piece of work."""
    wait = module.Future.exception

    def is_done(future: Any, timeout: float) -> bool:
        with contextlib.suppress(module.CancelledError, module.TimeoutError):
            wait(future, timeout)
        return bool(future.done())

    def with_outcome(original: Any) -> Any:
        @functools.wraps(original)
        def outcome(self: Any, timeout: float | None = None) -> Any:
            place = None if timeout is None else _place(WAITED, sys._getframe().f_back)
            if place is None:
                return original(self, timeout)
            if not comes_in_time(place, functools.partial(is_done, self), timeout):
                raise module.TimeoutError
            return original(self, 0)

        return outcome

    for name in ("result", "exception"):
        patches.replace(module.Future, name, with_outcome)


def _place(of: str, frame: FrameType | None) -> Any:
    """Say where a wait is kept, by the first frame that is not of those who wait for others; None for nowhere."""
    if not hooks.watched or queues.is_inside():
        return None
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str) or name.partition(".")[0] not in _THROUGH:
            return hooks.here(of, frame)
        frame = frame.f_back
    return None


# What may be there already: that it was is kept as well, since in a replay it may come a little later.


def comes_in_time(place: Any, come: Callable[[Any], Any], timeout: float | None, condition: Any = None) -> Any:
    """Wait for something, and keep whether it came in time; return what `come` gives back, which waits for so long.

    None where it did not come when that was recorded.
    """
    of, by, pack, span = place
    player = answering.player
    told = None if player is None else player.waited(of, by, pack.lane)
    if player is None or told is None:
        found = come(timeout)
        pack.add(of, by, [bool(found), _now() // 1000], 24, span)
        return found
    turn = functools.partial(player.turn, told[1])
    _let_others(condition, turn) if condition is not None else turn()
    if not told[0]:
        return None
    return come(None) if timeout is None else player.comes(of, pack.lane, come, told[1], timeout)


def _wait_for_event(original: Any) -> Any:
    @functools.wraps(original)
    def wait(self: Any, timeout: float | None = None) -> Any:
        # Without a timeout only of the agent's own: that others wait is a matter of how they are made.
        find = hooks.here if timeout is None else _place
        place = find(WAITED, sys._getframe().f_back) if hooks.watched else None
        if place is None:
            return original(self, timeout)
        return bool(comes_in_time(place, functools.partial(original, self), timeout))

    return wait


def _acquire(original: Any) -> Any:
    @functools.wraps(original)
    def acquire(self: Any, blocking: bool = True, timeout: float | None = None) -> Any:
        place = _place(WAITED, sys._getframe().f_back) if blocking and timeout is not None else None
        if place is None:
            return original(self, blocking, timeout)
        return bool(comes_in_time(place, functools.partial(original, self, True), timeout))

    return acquire


def _wait_for(original: Any) -> Any:
    @functools.wraps(original)
    def wait_for(self: Any, predicate: Any, timeout: float | None = None) -> Any:
        place = None if timeout is None else _place(WAITED, sys._getframe().f_back)
        if place is None:
            return original(self, predicate, timeout)
        found = comes_in_time(place, functools.partial(original, self, predicate), timeout, self)
        if found is None:
            found = predicate()
            return False if found else found
        return found

    return wait_for


# Conditions.


def _wait(original: Any) -> Any:
    @functools.wraps(original)
    def wait(self: Any, timeout: float | None = None) -> Any:
        if timeout is None:
            return _wait_for_notice(original, self, sys._getframe().f_back)
        place = _place(WAITED, sys._getframe().f_back)
        if place is None:
            return original(self, timeout)
        of, by, pack, span = place
        told = None if answering.player is None else answering.player.waited(of, by, pack.lane)
        if told is not None:
            notified = bool(told[0]) and _is_notified(self, place, told[1], timeout)
            _let_others(self, functools.partial(_player().turn, told[1]))
            return notified
        notified = original(self, timeout)
        pack.add(of, by, [bool(notified), _now() // 1000], 24, span)
        return notified

    return wait


def _wait_for_notice(original: Any, condition: Any, frame: FrameType | None) -> Any:
    """Wait without a timeout: of several that were notified, the one that has the lock first is chance.

    Only for a condition of the agent's own. How often those of `threading` wait for theirs is chance as well.
    """
    if frame is not None and frame.f_code is _WAIT_FOR and frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals is globals() and frame.f_back is not None:
            frame = frame.f_back  # ours, around it
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


def _is_notified(condition: Any, place: Any, wall_us: int, timeout: float) -> bool:
    """Wait as a condition does, and until nobody can notify us any more.

    Not again and again with a timeout: whoever is notified just after that would not know.
    """
    of, _, pack, _ = place
    waiter = threading.Lock()
    waiter.acquire()
    condition._waiters.append(waiter)
    try:
        come = lambda seconds: waiter.acquire(timeout=seconds)  # noqa: E731
        return bool(_let_others(condition, lambda: _player().comes(of, pack.lane, come, wall_us, timeout)))
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


# Threads.


def _join(original: Any) -> Any:
    @functools.wraps(original)
    def join(self: Any, timeout: float | None = None) -> None:
        place = None if timeout is None else _place(JOINED, sys._getframe().f_back)
        if place is None:
            original(self, timeout)
        else:
            comes_in_time(place, functools.partial(_ends, original, self), timeout)

    return join


def _ends(join: Any, thread: Any, seconds: float) -> bool:
    join(thread, seconds)
    return not thread.is_alive()
