"""Bring written lines to the disk soon, from one background thread for each process.

A recorded program must not notice it: it is none of `threading`'s threads, and it is gone while the process forks,
since Python warns of a fork beside any other thread.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from _thread import get_native_id, start_new_thread
from collections.abc import Callable

from playhead import _limits
from playhead.errors import PlayheadError
from playhead.ledger.writer import Ledger

_wake = threading.Event()
_stop = threading.Event()
_ended = threading.Event()
_ledgers: weakref.WeakSet[Ledger] = weakref.WeakSet()
_guard = threading.Lock()
_running = False
_native = 0  # what the kernel calls the thread
_TRIES, _TRY_S = 1000, 0.001
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
    global _running
    _wake.set()
    if _running:
        return
    with _guard:
        if not _running:
            try:
                start_new_thread(_work, ())
                _running = True
            except RuntimeError:
                pass  # no more threads, or the interpreter ends: closing the ledger brings its lines to the disk


def soon(chore: Callable[[], None]) -> None:
    """Have something done in the background, `READS_WAIT_S` from now; asked for again meanwhile, it is done once."""
    global _chore, _due
    if _chore is None:
        _due = time.monotonic() + _limits.READS_WAIT_S
        _chore = chore
        _written()


def _work() -> None:
    global _native, _chore
    _native = get_native_id()
    while not _stop.is_set():
        chore = _chore
        _wake.wait(None if chore is None else max(0.0, _due - time.monotonic()))
        if chore is not None and time.monotonic() >= _due and not _stop.is_set():
            _chore = None
            chore()
        if not _wake.is_set():
            continue
        _stop.wait(_limits.SYNC_INTERVAL_S)
        _wake.clear()
        with _guard:
            dirty = [ledger for ledger in _ledgers if ledger.dirty]
        for ledger in dirty:
            try:
                ledger.sync()
            except (PlayheadError, OSError):
                if not ledger.closed:
                    ledger.lose("sync_failed", 0)
    _ended.set()


def pause() -> None:
    """Be gone until there is something to do again: the process is about to fork."""
    global _running
    if _running:
        _ended.clear()
        _stop.set()
        _wake.set()
        _ended.wait()
        for _ in range(_TRIES):  # it has said its last word, and is a thread of the process for a moment longer
            if not os.path.exists(f"/proc/self/task/{_native}"):
                break
            time.sleep(_TRY_S)
        _running = False
        _stop.clear()


def _after_fork() -> None:
    global _running, _guard, _wake, _stop, _ended, _chore
    _chore = None
    _guard = threading.Lock()
    _wake, _stop, _ended = threading.Event(), threading.Event(), threading.Event()
    _running = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=pause, after_in_child=_after_fork)
