"""Bring written lines to the disk soon, from one background thread for each process.

A recorded program must not notice it: it is none of `threading`'s threads, and it is gone while the process forks,
since Python warns of a fork beside any other thread.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from _thread import allocate_lock, get_native_id, start_new_thread
from collections.abc import Callable

from playhead import _limits
from playhead.errors import PlayheadError
from playhead.ledger.writer import Ledger
from playhead.store import forking

_ENDING_S, _TRY_S = 2.0, 0.001  # a disk that takes longer holds up no fork: then the child is forked beside the thread


class _Signal:
    """Wake one who waits. Set in one step, so that a signal handler may do it that interrupted another who does."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()

    def set(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it is set already

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is set, and take it back."""
        return self._lock.acquire(timeout=-1 if seconds is None else min(max(0.0, seconds), threading.TIMEOUT_MAX))


class _Worker:
    """One life of the thread: it ends when it is told to, or when it is no longer the one."""

    def __init__(self) -> None:
        self.stopped = self.ended = False
        self.stop, self.end = _Signal(), _Signal()
        self.native = 0  # what the kernel calls the thread

    def told_to_stop(self) -> bool:
        return self.stopped or _worker is not self


_wake = _Signal()
_ledgers: weakref.WeakSet[Ledger] = weakref.WeakSet()
_guard = threading.RLock()
_worker: _Worker | None = None
_chore: Callable[[], None] | None = None  # to be done in the background, when it is due
_due = 0.0


def watch(ledger: Ledger) -> None:
    """Flush this ledger whenever it was written to, at most `SYNC_INTERVAL_S` later."""
    with _guard:
        _ledgers.add(ledger)
        ledger.on_dirty = _written


def forget(ledger: Ledger) -> None:
    """Stop flushing it."""
    with _guard:
        ledger.on_dirty = None
        _ledgers.discard(ledger)


def _written() -> None:
    _wake.set()
    worker = _worker
    if worker is None or worker.stopped:
        _begin()


def _begin() -> None:
    global _worker
    with _guard:
        if _worker is not None and not _worker.stopped:
            return
        worker = _worker = _Worker()
        try:
            _start(worker)
        except RuntimeError:
            _worker = None  # no more threads, or the interpreter ends: closing the ledger brings its lines to the disk
        except BaseException:  # a signal handler raised: it may have been started, and ends then
            _worker = None
            raise


def _start(worker: _Worker) -> None:
    """Start the thread as one that gets no signals: the program may block them in all of its own, and count on that."""
    import _signal  # type: ignore[import-not-found]  # what `signal` is made of, which a program may not have loaded

    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())  # apart: the next one blocks them even where it raises
    try:
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        start_new_thread(_work, (worker,))
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def soon(chore: Callable[[], None]) -> None:
    """Have something done in the background, `READS_WAIT_S` from now; asked for again meanwhile, it is done once."""
    global _chore, _due
    if _chore is None:
        _due = time.monotonic() + _limits.READS_WAIT_S
        _chore = chore
        _written()


def _work(worker: _Worker) -> None:
    worker.native = get_native_id()
    while not worker.told_to_stop():
        _do_what_is_due(worker)
    worker.ended = True
    worker.end.set()


def _do_what_is_due(worker: _Worker) -> None:
    global _chore
    chore = _chore
    woken = _wake.wait(None if chore is None else _due - time.monotonic())
    if chore is not None and time.monotonic() >= _due and not worker.told_to_stop():
        _chore = None
        chore()
    if not woken:
        return
    worker.stop.wait(_limits.SYNC_INTERVAL_S)
    with _guard:
        dirty = [ledger for ledger in _ledgers if ledger.dirty]
    for ledger in dirty:
        try:
            ledger.sync()
        except (PlayheadError, OSError):
            if not ledger.closed:
                ledger.lose("sync_failed", 0)


def pause() -> None:
    """Be gone until there is something to do again: the process is about to fork, in this thread or in several."""
    worker = _worker
    if worker is None:
        return
    worker.stopped = True
    worker.stop.set()
    _wake.set()
    if _guard._is_owned() or any(ledger.in_hand for ledger in list(_ledgers)):  # type: ignore[attr-defined]
        return  # we are in a signal handler, in the middle of what it may be waiting for
    deadline = time.monotonic() + _ENDING_S
    while not worker.ended and time.monotonic() < deadline:
        worker.end.wait(deadline - time.monotonic())
        worker.end.set()  # for others who wait
    while os.path.exists(f"/proc/self/task/{worker.native}") and time.monotonic() < deadline:
        time.sleep(_TRY_S)  # it has said its last word, and is a thread of the process for a moment longer


def _after_fork() -> None:
    global _worker, _guard, _wake, _chore
    _chore = _worker = None
    _guard = threading.RLock()
    _wake = _Signal()


forking.register(before=pause, after_in_child=_after_fork)
