"""Keep when threads put something into queues and when they got something out, or did not: each with its time.

Which of the threads that wait for a queue is given the next item is a matter of chance. A replay lets each of them take
its item when it did; and whoever found a queue empty or full finds it so again.
"""

from __future__ import annotations

import collections
import functools
import sys
import threading
import time
from types import FrameType, ModuleType
from typing import Any

from playhead.capture import answering, hooks
from playhead.capture.patches import Patches

PUT, GOT = "queue.put", "queue.get"
_STAMP = "_playhead_at"  # where a queue keeps when something was put into it or got out of it last
_POLLED_US = 1000  # whoever looks again after less than this polls, and is only counted
_QUEUE = "queue"
_now = time.time_ns


class _Local(threading.local):
    at_us: int | None = None
    inside = False

    def __init__(self) -> None:
        self.failed: dict[tuple[str, str, str], list[int]] = {}  # by source, module, lane: since when, how often since


_local = _Local()


def patch(module: ModuleType, patches: Patches) -> None:
    """Put ourselves where threads hand things over."""
    patches.replace(module.Queue, "put", functools.partial(_put, module))
    patches.replace(module.Queue, "get", functools.partial(_get, module))
    for kind in (module.Queue, module.LifoQueue, module.PriorityQueue):
        patches.replace(kind, "_put", _stamping)
        patches.replace(kind, "_get", _stamping)
    if isinstance(getattr(module, "SimpleQueue", None), type):
        patches.replace(module, "SimpleQueue", functools.partial(_simple, module))


def is_inside() -> bool:
    """Say whether this thread waits in a queue: how that ends is kept there."""
    return _local.inside


def _put(module: ModuleType, original: Any) -> Any:
    @functools.wraps(original)
    def put(self: Any, item: Any, block: bool = True, timeout: float | None = None) -> None:
        place = _place(PUT, sys._getframe().f_back)
        if place is None:
            original(self, item, block, timeout)
        else:
            _hand_over(place, module.Full, functools.partial(original, self, item, block, timeout))

    return put


def _get(module: ModuleType, original: Any) -> Any:
    @functools.wraps(original)
    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        place = _place(GOT, sys._getframe().f_back)
        if place is None or (block and timeout is not None and timeout < 0):
            return original(self, block, timeout)
        return _hand_over(place, module.Empty, functools.partial(original, self, block, timeout))

    return get


def _simple(module: ModuleType, original: Any) -> Any:
    """Make a queue of C one that we see: it has no methods that could be replaced.

    Who of those who wait is given which item is decided in C, where nobody can take the time. So that queue only tells
    that there is one more, and the items are beside it.
    """

    class SimpleQueue(original):  # type: ignore[misc]
        __slots__ = ("_playhead_at", "_playhead_items", "_playhead_lock")

        def __new__(cls, *args: Any, **options: Any) -> Any:
            self = original.__new__(cls, *args, **options)
            self._playhead_items = collections.deque()
            self._playhead_lock = threading.RLock()  # a collected object may put something while we do
            return self

        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            place = _place(PUT, sys._getframe().f_back)
            act = functools.partial(_put_beside, original, self, item)
            if place is None:
                act()
            else:
                _hand_over(place, module.Full, act)

        def put_nowait(self, item: Any) -> None:
            self.put(item)

        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            place = _place(GOT, sys._getframe().f_back)
            act = functools.partial(_get_beside, original, self, block, timeout)
            if place is None or (block and timeout is not None and timeout < 0):
                return act()
            return _hand_over(place, module.Empty, act)

        def get_nowait(self) -> Any:
            return self.get(False)

    for name in ("__module__", "__qualname__", "__doc__"):
        setattr(SimpleQueue, name, getattr(original, name))
    return SimpleQueue


def _put_beside(original: Any, queue: Any, item: Any) -> None:
    with queue._playhead_lock:
        _stamp(queue)
        queue._playhead_items.append(item)
    original.put(queue, None)


def _get_beside(original: Any, queue: Any, block: bool, timeout: float | None) -> Any:
    original.get(queue, block, timeout)
    with queue._playhead_lock:
        _stamp(queue)
        return queue._playhead_items.popleft()


def _place(of: str, frame: FrameType | None) -> Any:
    """Say where a call is kept, by the first frame that is not of a queue itself; None for nowhere."""
    if not hooks.watched:
        return None
    while frame is not None and frame.f_globals.get("__name__") in (_QUEUE, __name__):
        frame = frame.f_back
    return None if frame is None else hooks.here(of, frame)


def _hand_over(place: Any, failure: type[Exception], act: Any) -> Any:
    """Put or get something when it is time, and keep when that was, or that there was no room or nothing there."""
    of, by, pack, _ = place
    if answering.player is not None and answering.player.handed(of, by, pack.lane) is False:
        keep_failed(place)
        raise failure
    before, _local.inside, _local.at_us = _local.inside, True, None
    try:
        found = act()
    except failure:
        keep_failed(place)
        raise
    except Exception:
        keep_done(place)  # it raises the same when it is its turn again: that it is shut down
        raise
    finally:
        _local.inside = before
    keep_done(place, _local.at_us)
    return found


def keep_done(place: Any, at_us: int | None = None) -> None:
    """Keep that it was not in vain."""
    of, by, pack, _ = place
    _, polled = _local.failed.pop((of, by, pack.lane), (0, 0))
    _keep(place, True, at_us or _now() // 1000, polled)


def _keep(place: Any, done: bool, at_us: int, polled: int) -> None:
    of, by, pack, span = place
    pack.add(of, by, [done, at_us, polled] if polled else [done, at_us], 24, span)


def keep_failed(place: Any) -> None:
    """Keep that it was in vain; of somebody who looks all the time only how often, with what he is told next."""
    of, by, pack, _ = place
    at_us = _now() // 1000
    since = _local.failed.get((of, by, pack.lane))
    if since is not None and at_us - since[0] < _POLLED_US:
        since[1] += 1
        return
    _local.failed[of, by, pack.lane] = [at_us, 0]
    _keep(place, False, at_us, 0 if since is None else since[1])


def _stamping(original: Any) -> Any:
    """Take the time while nobody else can put or get something: that decides who was first."""

    @functools.wraps(original)
    def change(self: Any, *item: Any) -> Any:
        _stamp(self)
        return original(self, *item)

    return change


def _stamp(queue: Any) -> None:
    _local.at_us = at_us = max(_now() // 1000, getattr(queue, _STAMP, 0) + 1)
    setattr(queue, _STAMP, at_us)
