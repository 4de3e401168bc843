"""Bring written lines to the disk soon, from one background thread for each process."""

from __future__ import annotations

import os
import threading
import time
import weakref

from playhead import _limits
from playhead.errors import PlayheadError
from playhead.ledger.writer import Ledger

_wake = threading.Event()
_ledgers: weakref.WeakSet[Ledger] = weakref.WeakSet()
_guard = threading.Lock()
_thread: threading.Thread | None = None


def watch(ledger: Ledger) -> None:
    """Flush this ledger whenever it was written to, at most `SYNC_INTERVAL_S` later."""
    global _thread
    with _guard:
        _ledgers.add(ledger)
        ledger.on_dirty = _wake.set
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_work, name="playhead-sync", daemon=True)
            _thread.start()


def forget(ledger: Ledger) -> None:
    """Stop flushing it."""
    with _guard:
        ledger.on_dirty = None
        _ledgers.discard(ledger)


def _work() -> None:
    while True:
        _wake.wait()
        time.sleep(_limits.SYNC_INTERVAL_S)
        _wake.clear()
        with _guard:
            dirty = [ledger for ledger in _ledgers if ledger.dirty]
        for ledger in dirty:
            try:
                ledger.sync()
            except (PlayheadError, OSError):
                if not ledger.closed:
                    ledger.lose("sync_failed", 0)


def _after_fork() -> None:
    global _thread, _guard, _wake
    _guard = threading.Lock()
    _wake = threading.Event()
    _thread = None
    for ledger in list(_ledgers):
        watch(ledger)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
