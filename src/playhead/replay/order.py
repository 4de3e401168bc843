"""Let things happen in the order in which they were recorded: answers come, sleeps end, timers fire, threads finish.

Whoever comes to such a point waits here for its turn. When nothing in the process moves any more, the one that was
recorded first goes on, alone, until nothing moves again. So nobody waits for a question that is never asked, and what
was a race in the recording has the same winner. Time is what was recorded: it jumps from turn to turn.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import os
import time
from _thread import _count as count_threads
from _thread import allocate_lock, get_native_id, start_new_thread
from collections.abc import Callable
from typing import Any

from playhead import _limits
from playhead.capture import answering, forks, guard, hooks, lanes
from playhead.capture.processes import inherited
from playhead.replay.quiet import Rest
from playhead.store import forking, syncer

UNRECORDED_US = answering.LAST_US - 2**52  # from here on: timers that nobody recorded, by when they are due
_ELSEWHERE_S = 0.001  # between looks at what happens in other processes
_FOR_EVER_S = 1e6  # a timeout that is longer is meant to be for ever
_LOOK_S = 0.1  # between looks of one who waits for something else than his turn
_BUSY_S = 0.0002  # between looks at a process that is at work


class Turn:
    """Somebody who waits: since when the recording knows of it, and how to let it go on."""

    __slots__ = ("at_us", "due", "gone", "lane", "let_go", "number", "what")

    def __init__(self, at_us: int, number: int, what: str, lane: str, let_go: Callable[[], object]) -> None:
        self.at_us, self.number, self.what, self.lane, self.let_go = at_us, number, what, lane, let_go
        self.gone = False  # it waits no longer, for another reason
        self.due: float | None = None  # of a timer that nobody recorded: when it would fire, in real time

    def __lt__(self, other: Turn) -> bool:
        return (self.at_us, self.number) < (other.at_us, other.number)


class Order:
    """The turns of one process."""

    def __init__(self, speed: float = 0.0) -> None:
        self.now_us = 0  # since the recorded run began
        self._speed = speed  # 1 for real time, 0 for none
        self._numbers = itertools.count()
        self._waiting: list[Turn] = []
        self._lock = allocate_lock()
        self._bell = allocate_lock()
        self._bell.acquire()
        self._conductor: int | None = None  # what the kernel calls the thread; 0 while it starts
        self._rest = Rest()
        self._elsewhere: dict[str, tuple[int, Callable[[], bool]]] = {}  # by lane: work in other processes, its end
        self._released_at = time.perf_counter()  # when somebody went on last, in real time
        self._moved_at = self._released_at  # when somebody did whose turn was recorded
        self._in_vain = 0.0  # the same, when somebody waited in vain last
        self.closed = False
        self.held = False  # nobody goes on: somebody looks around
        self.on_release: Callable[[Turn], None] | None = None
        self.on_stuck: Callable[[], None] | None = None  # called when nobody can go on any more; None for not watched
        self.on_fork: Callable[[], None] | None = None
        self.is_live: Callable[[], bool] | None = None  # whether something may happen that no turn knows of
        forking.register(before=lambda: None, after_in_child=self._after_fork)

    # For those who wait.

    def wait(self, at_us: int, what: str = "", lane: str = "", *, after_s: float | None = None) -> None:
        """Return when it is the turn of something that was recorded at this time; blocks the thread."""
        if self.passes(at_us):
            return
        gate = allocate_lock()
        gate.acquire()
        turn = self.add(at_us, what, lane, gate.release, after_s=after_s)
        self.ring()
        try:
            gate.acquire()
        except BaseException:
            turn.gone = True
            raise

    def until(self, come: Callable[[float], Any], at_us: int, timeout: float, what: str, lane: str) -> Any:
        """Wait for what had come by a recorded time; return what `come` gives back, which waits for so many seconds.

        Who waits has its timeout from then on in recorded time, which passes while nobody works; and after that in real
        time, in case that something goes on which cannot be seen from here.
        """
        if found := come(0):
            return found
        over = allocate_lock()
        over.acquire()
        at_us = max(at_us, self.now_us) + int(min(timeout, _FOR_EVER_S) * 1e6)
        longest_s = _limits.SLOWER_MAX * max(timeout, _limits.IN_VAIN_S)
        turn = self.add(at_us, what, lane, over.release, after_s=longest_s)
        self.ring()
        try:
            while not (self.closed or over.acquire(blocking=False)):
                if found := come(_LOOK_S):
                    return found
            if not (found := come(0.0 if self._in_vain == self._moved_at else min(timeout, _limits.IN_VAIN_S))):
                self._in_vain = self._moved_at
            return found
        finally:
            turn.gone = True

    def passes(self, at_us: int) -> bool:
        """Say whether nobody else can move, so that it is the turn of whoever asks; then it is that time."""
        if self.closed:
            return True
        if self._elsewhere or not self.alone():
            return False
        self.reach(at_us)
        return True

    async def wait_async(self, at_us: int, what: str = "", lane: str = "") -> None:
        """Return when it is its turn; the event loop goes on meanwhile."""
        if self.closed:
            return
        import asyncio

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            await self._wait_in_trio(at_us, what, lane)
            return
        future: asyncio.Future[None] = loop.create_future()

        def resolve() -> None:
            if not future.done():
                future.set_result(None)

        turn = self.add(at_us, what, lane, lambda: call_in(loop, resolve))
        if isinstance(loop, asyncio.BaseEventLoop):
            self.ring_if_needed()
        else:
            self.ring()  # one of C, which does not look by itself
        try:
            await future
        finally:
            turn.gone = True

    async def _wait_in_trio(self, at_us: int, what: str, lane: str) -> None:
        import trio  # type: ignore[import-not-found,unused-ignore]  # the program runs in it

        event, token = trio.Event(), trio.lowlevel.current_trio_token()
        turn = self.add(at_us, what, lane, lambda: token.run_sync_soon(event.set))
        self.ring()
        try:
            await event.wait()
        finally:
            turn.gone = True

    def add(
        self, at_us: int, what: str, lane: str, let_go: Callable[[], object], *, after_s: float | None = None
    ) -> Turn:
        """Wait without being held up: `let_go` is called when it is its turn, from whichever thread.

        `after_s` is for what nobody recorded: in how many seconds it would be its turn in the world.
        """
        turn = Turn(max(at_us, 0), next(self._numbers), what, lane, let_go)
        if after_s is not None:
            turn.due = time.perf_counter() + after_s
        with self._lock:
            self._drop_gone()
            if not self._waiting:
                self._released_at = time.perf_counter()  # nobody has waited before
            heapq.heappush(self._waiting, turn)
        return turn

    # For event loops, and for the thread that conducts.

    def alone(self) -> bool:
        """Say whether this is the only thread of the program."""
        worker = syncer._worker
        # Ours count only once they run: until then the interpreter does not count them either.
        ours = bool(self._conductor) + (worker is not None and worker.native != 0 and not worker.ended)
        return count_threads() <= ours

    def take_next(self, *, busy: bool = False) -> Turn | None:
        """Take out the one whose turn it is; None where nobody waits, or something else may come first."""
        with self._lock:
            self._drop_gone()
            if (
                self.held
                or not self._waiting
                or (self._elsewhere and self._is_earlier_elsewhere(self._waiting[0].at_us))
            ):
                return None
            return None if self._is_early(self._waiting[0], busy) else heapq.heappop(self._waiting)

    def _drop_gone(self) -> None:
        while self._waiting and self._waiting[0].gone:
            heapq.heappop(self._waiting)

    def _is_early(self, turn: Turn, busy: bool) -> bool:
        """Say whether time must not jump to a timer: what it is set for may be on its way, in its own time."""
        if turn.due is None or self.closed or time.perf_counter() >= turn.due:
            return False
        return busy or (self.is_live is not None and self.is_live())

    def expect(self, lane: str, at_us: int, is_over: Callable[[], bool]) -> None:
        """Let nobody go on past the recorded end of work in another process before that has ended again."""
        with self._lock:
            self._elsewhere[lane] = at_us, is_over

    def came(self, lane: str) -> None:
        """Take in that it has ended."""
        with self._lock:
            self._elsewhere.pop(lane, None)

    def _is_earlier_elsewhere(self, at_us: int) -> bool:
        for lane, (ends_us, is_over) in list(self._elsewhere.items()):
            if is_over():
                del self._elsewhere[lane]
            elif ends_us < at_us:
                return True
        return False

    def is_overdue(self) -> bool:
        """Say whether the program has been at work for so long that it may be waiting for one who waits here."""
        return time.perf_counter() - self._released_at > _limits.BUSY_S_MAX

    def release(self, turn: Turn) -> None:
        """Let somebody go on."""
        self._released_at = time.perf_counter()
        if turn.due is None:
            self._moved_at = self._released_at
        elif self.on_stuck is not None and self._released_at - self._moved_at > _limits.STUCK_S:
            on_stuck, self.on_stuck = self.on_stuck, None  # what only passes its time, over and over, does not move
            on_stuck()
        self.reach(turn.at_us)
        if self.on_release is not None:
            self.on_release(turn)
        turn.let_go()

    def ring(self) -> None:
        """Have it looked whether somebody can go on."""
        if self._conductor is None:
            self._begin()
        with contextlib.suppress(RuntimeError):  # it rings already
            self._bell.release()

    def ring_if_needed(self) -> None:
        """Do that where there are other threads: a loop that is alone looks by itself when it has nothing to do."""
        if not self.alone():
            self.ring()

    def waiting(self) -> list[Turn]:
        """Return those who wait, in the order of their turns."""
        with self._lock:
            return sorted(turn for turn in self._waiting if not turn.gone)

    def watch(self, on_stuck: Callable[[], None]) -> None:
        """Have it looked from now on whether anybody goes on: somebody may wait for what never comes."""
        if self.on_stuck is None and not self.closed:
            self.on_stuck = on_stuck
            self._moved_at = time.perf_counter()
            self.ring()

    def close(self) -> None:
        """Hold up nobody any more."""
        self.closed = True
        self._elsewhere.clear()
        while (turn := self.take_next()) is not None:
            turn.let_go()
        if self._conductor is not None:
            self.ring()  # it ends

    def reach(self, at_us: int) -> None:
        """Let it be that time, at the earliest."""
        if self.now_us < at_us < UNRECORDED_US:
            if self._speed > 0:
                time.sleep((at_us - self.now_us) / 1e6 / self._speed)
            else:
                hooks.skip((at_us - self.now_us) * 1000)
            self.now_us = at_us

    def _begin(self) -> None:
        self._conductor = 0
        quiet, lanes.local.quiet = lanes.local.quiet, True  # it is no thread of the program's
        try:
            start_new_thread(self._conduct, ())
        finally:
            lanes.local.quiet = quiet

    def _conduct(self) -> None:
        self._conductor = get_native_id()
        owner = os.getpid()
        while not self.closed and os.getpid() == owner:
            self._await_bell()
            while self._waiting and not self.closed:
                at_rest = self._is_at_rest()
                if at_rest or self.is_overdue():
                    if (turn := self.take_next(busy=not at_rest)) is not None:
                        guard.aside(functools.partial(self.release, turn), forks.recordings())
                        continue
                    time.sleep(_ELSEWHERE_S)
                else:
                    time.sleep(_BUSY_S)

    def _await_bell(self) -> None:
        """Return when it rings; while it is watched, look meanwhile whether anybody moves."""
        still = time.perf_counter()
        while not self._bell.acquire(timeout=-1 if self.on_stuck is None else _limits.STUCK_S / 10):
            if self._elsewhere or (self.is_live is not None and self.is_live()) or not self._is_at_rest():
                still = time.perf_counter()
            elif self.on_stuck is not None and time.perf_counter() - still > _limits.STUCK_S:
                on_stuck, self.on_stuck = self.on_stuck, None
                on_stuck()

    def _is_at_rest(self) -> bool:
        worker, begun = syncer._worker, inherited.begun
        if begun != inherited.done:
            return False  # somebody waits for the launcher, which answers at once
        at_rest = self._rest.is_here(set() if worker is None else {worker.native}) and begun == inherited.begun
        return at_rest and not _somebody_writes()

    def _after_fork(self) -> None:
        """Begin anew in a forked child: those who waited are threads of the parent's."""
        self._lock, self._bell = allocate_lock(), allocate_lock()
        self._bell.acquire()
        self._conductor = None
        self._waiting = []
        self._elsewhere = {}
        self._rest = Rest()
        if self.on_fork is not None:
            self.on_fork()


def _somebody_writes() -> bool:
    """Say whether a thread is recording something: it may wait for another process that writes the same run."""
    for recording in forks.recordings():
        lock = recording.ledger.lock
        if not lock.acquire(blocking=False):
            return True
        lock.release()
    return False


def call_in(loop: Any, function: Callable[[], None]) -> None:
    """Call something in an event loop, from its own thread or another one."""
    import asyncio

    if asyncio._get_running_loop() is loop:
        function()
    else:
        with contextlib.suppress(RuntimeError):  # it was closed meanwhile
            loop.call_soon_threadsafe(function)
