"""Keep every recording usable on both sides of a fork."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from playhead.event import kinds
from playhead.store import forking

if TYPE_CHECKING:
    from mmap import mmap

    from playhead.capture.recording import Recording

_recordings: weakref.WeakSet[Recording] = weakref.WeakSet()
# By run, memory that is shared with children which may end before they can write: how many events they have lost.
_from_children: dict[str, mmap] = {}
_to_parent: dict[str, mmap] = {}
_SIZE = 8


def watch(recording: Recording) -> None:
    """Take a recording through every fork from now on."""
    forking.hand_over()  # by now everything of ours is loaded, and what it needs
    _recordings.add(recording)


def forget(recording: Recording) -> None:
    """Stop doing so."""
    _recordings.discard(recording)
    _from_children.pop(recording.id, None)


def recordings() -> list[Recording]:
    """Return the recordings of this process that are open."""
    return list(_recordings)


def tell_parent(recording: Recording) -> bool:
    """Say what this process has lost and could not declare, where its parent looks; False where nobody does."""
    lost = sum(recording.ledger.pending_losses.values())
    shared = _to_parent.get(recording.id)
    if lost and shared is not None:
        shared[:_SIZE] = (int.from_bytes(shared[:_SIZE], "big") + lost).to_bytes(_SIZE, "big")
    return shared is not None


def hear_children(recording: Recording) -> None:
    """Declare what children have lost."""
    shared = _from_children.get(recording.id)
    if shared is not None and (lost := int.from_bytes(shared[:_SIZE], "big")):
        shared[:_SIZE] = bytes(_SIZE)
        recording.emit(kinds.GapNoted(reason="write_failed", count=lost))


def _before() -> None:
    for recording in list(_recordings):
        if recording.id not in _from_children and recording.ledger.in_hand:
            # A signal handler forks in the middle of a line, whose lock it holds, and may wait for the child to end.
            from mmap import mmap

            _from_children[recording.id] = mmap(-1, _SIZE)


def _after_in_child() -> None:
    _to_parent.update(_from_children)
    _from_children.clear()
    for recording in list(_recordings):
        recording.after_fork()
        recording.redacted = {}  # the parent tells its own


forking.register(before=_before, after_in_child=_after_in_child)
