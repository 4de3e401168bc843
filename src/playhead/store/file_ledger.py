"""Extend a run that lies in a directory, and hold that for as long as its writer lives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from playhead._clock import Clock
from playhead.ledger.log import Log
from playhead.ledger.writer import Ledger
from playhead.store import presence, syncer
from playhead.store.disk import identity

if TYPE_CHECKING:
    from playhead.store.files import FileStore


class FileLedger(Ledger):
    """A ledger in a run directory; closing it gives up the directory and notes the run in the journal."""

    def __init__(self, log: Log, run: str, clock: Clock, store: FileStore) -> None:
        super().__init__(log, run, clock, store.put_blob)
        self._store = store
        self._folder = store.folder(run)
        self._presence: int | None = presence.hold(self._folder, aside=store.flushes_soon)
        self._held = identity(self._presence)
        if store.flushes_soon:
            syncer.watch(self)
        else:
            presence.vouch(self._folder, lambda: self._end)

    @property
    def size(self) -> int:
        """Return how many bytes the timeline has, as far as this writer knows."""
        return self._end

    @property
    def log(self) -> Log:
        """Return what keeps the timeline."""
        return self._log

    def close(self) -> None:
        if self.abandon():
            self._store.note(self.run, "close")

    def abandon(self) -> bool:
        """Let go of the run without a note; False if that was done before."""
        syncer.forget(self)
        super().close()
        held, self._presence = self._presence, None
        if held is not None:
            presence.let_go(self._folder)
        if held is not None and identity(held) == self._held:  # else the program closed it
            os.close(held)
        return held is not None
