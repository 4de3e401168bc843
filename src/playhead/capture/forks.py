"""Keep every recording usable on both sides of a fork."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.capture.recording import Recording
    from playhead.ledger.writer import Ledger

_recordings: weakref.WeakSet[Recording] = weakref.WeakSet()
# By thread, what it holds while it forks: a run may end, or begin, in another thread meanwhile.
_held: dict[int, list[Ledger]] = {}


def watch(recording: Recording) -> None:
    """Take a recording through every fork from now on."""
    _recordings.add(recording)


def forget(recording: Recording) -> None:
    """Stop doing so."""
    _recordings.discard(recording)


def recordings() -> list[Recording]:
    """Return the recordings of this process that are open."""
    return list(_recordings)


def _before() -> None:
    """Wait until no other thread is in the middle of a line: its lock would be copied and never released."""
    if _recordings:
        from playhead.store import syncer  # loaded by whoever opened them

        syncer.pause()  # it may be about to write a line, and would wait for us, as we for it
    ledgers = _held[threading.get_ident()] = [recording.ledger for recording in list(_recordings)]
    for ledger in ledgers:
        ledger.hold()


def _after_in_parent() -> None:
    for ledger in _held.pop(threading.get_ident(), []):
        ledger.let_go()


def _after_in_child() -> None:
    _held.clear()
    for recording in list(_recordings):
        recording.after_fork()
        recording.redacted = {}  # the parent tells its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
