"""Hand out what is done in the order in which it was done, and as much of it at once as when it was recorded.

`wait` gives sets, through which Python goes by address; and how many are done by the time that somebody looks is a
matter of chance. A recording keeps the number, and a replay waits until as many are done: they are the same ones.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from playhead.capture import answering, hooks

NUMBER = "_playhead_number"  # where a task or future keeps that it was the n-th to be done
THREADS, TASKS = "futures.wait", "asyncio.wait"
_numbers = itertools.count(1)
_now = time.time_ns


def number(done: Any) -> None:
    """Note that this is the next one to be done."""
    setattr(done, NUMBER, next(_numbers))  # a task of C takes it, and has no `__dict__` to show


def position(done: Any) -> int:
    """Return where it stands among those that are done; what is not numbered comes last."""
    found: int = getattr(done, NUMBER, sys.maxsize)
    return found


class Done(set):  # type: ignore[type-arg]
    """A set that is gone through in a given order."""

    def __init__(self, items: Any, place: Callable[[Any], Any] = position) -> None:
        super().__init__(items)
        self._place = place

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=self._place))

    def pop(self) -> Any:
        """Take out the first."""
        for item in self:
            self.discard(item)
            return item
        return super().pop()  # which says that there is none


def wait_in_threads(original: Any) -> Any:
    """Wrap `concurrent.futures.wait`."""

    @functools.wraps(original)
    def wait(fs: Any, timeout: float | None = None, return_when: str = "ALL_COMPLETED") -> Any:
        place = hooks.here(THREADS, sys._getframe().f_back) if hooks.watched else None
        if place is None:
            found = original(fs, timeout, return_when)
            return type(found)(Done(found.done), found.not_done)
        of, by, pack, span = place
        player = answering.player
        told = None if player is None else player.waited(of, by, pack.lane)
        if player is None or told is None:
            found = original(fs, timeout, return_when)
        else:
            more = _More(original, original(fs, None if timeout is None else 0, return_when), told[0])
            player.comes(of, pack.lane, more.come, told[1], timeout)
            found = more.found
            if found.not_done:
                player.turn(told[1])
        done, left = _as_many(found.done, found.not_done, told, position)
        pack.add(of, by, [len(done), _now() // 1000], 24, span)
        return type(found)(Done(done), left)

    return wait


class _More:
    """What is done by and by, until it is as much as when it was recorded."""

    def __init__(self, wait: Any, found: Any, count: int) -> None:
        self.found = found
        self._wait, self._count = wait, count

    def come(self, seconds: float) -> bool:
        """Wait for the next one; say whether it is enough now."""
        if not self._is_enough():
            self._wait(self.found.not_done, seconds, "FIRST_COMPLETED")
            self.found = self._wait({*self.found.done, *self.found.not_done}, 0)
        return self._is_enough()

    def _is_enough(self) -> bool:
        return len(self.found.done) >= self._count or not self.found.not_done


def wait_in_loop(original: Any) -> Any:
    """Wrap `asyncio.wait`."""

    @functools.wraps(original)
    async def wait(fs: Any, **options: Any) -> Any:
        place = hooks.here(TASKS, sys._getframe().f_back) if hooks.watched else None
        done, pending = await original(fs, **options)
        if place is not None:
            of, by, pack, span = place
            told = None if answering.player is None else answering.player.waited(of, by, pack.lane)
            while told is not None and len(done) < told[0] and pending:
                more, pending = await _more_in_loop(original, pending)
                if not more:
                    break
                done = {*done, *more}
            done, pending = _as_many(done, pending, told, _in_loop(done))
            pack.add(of, by, [len(done), _now() // 1000], 24, span)
        return Done(done, _in_loop(done)), pending

    return wait


async def _more_in_loop(wait: Any, pending: Any) -> tuple[set[Any], set[Any]]:
    """Wait for the next one, or until nothing else can happen."""
    import asyncio

    assert answering.player is not None
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    answering.player.call_at(answering.LAST_US, loop, functools.partial(over.set_result, None))
    done, left = await wait({*pending, over}, return_when="FIRST_COMPLETED")
    return done - {over}, left - {over}


def _as_many(done: Any, left: Any, told: Any, place: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return as many as were seen to be done when it was recorded: the others were done a moment too late."""
    if told is None or len(done) <= told[0]:
        return done, left
    ordered = sorted(done, key=place)
    return set(ordered[: told[0]]), {*left, *ordered[told[0] :]}


def _in_loop(done: Any) -> Callable[[Any], tuple[int, int]]:
    """Return the order of tasks: of those that have just been done, the loop is yet to tell whoever waits for them."""
    if all(position(one) < sys.maxsize for one in done):
        return lambda one: (position(one), 0)
    import asyncio

    waiting = getattr(asyncio.get_running_loop(), "_ready", ())
    places: dict[int, int] = {}
    for at, handle in enumerate(list(waiting)):
        args = getattr(handle, "_args", None)
        if args:
            places.setdefault(id(args[0]), at)
    return lambda one: (position(one), places.get(id(one), 0))
