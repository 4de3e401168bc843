"""Keep a timeline in a file, and write what belongs together with one call: a batch is there whole, or not at all.

For whoever answers only when a batch was written. Until a batch ends the file is locked, and nothing of it is in
there; a process that dies before leaves nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playhead.store import layout
from playhead.store.disk import Disk, identity
from playhead.store.file_ledger import FileLedger
from playhead.store.file_log import FileLog
from playhead.store.files import FileStore


class PlainDisk(Disk):
    """Open files under whatever numbers come: in a process of our own nobody else counts on low ones."""

    def open(self, path: str | os.PathLike[str], flags: int, mode: int = 0o600, dir_fd: int | None = None) -> int:
        """Open a file that no child process inherits."""
        return os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=dir_fd)


class BatchLog(FileLog):
    """Hold back what is appended until the batch ends."""

    def __init__(self, path: Path, disk: Disk, *, create: bool, before_sync: Callable[[], None] | None = None) -> None:
        super().__init__(path, disk, create=create, before_sync=before_sync)
        self._waiting: list[bytes] = []
        self._in_batch = False
        self._whole = 0  # bytes, with what is held back

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Lock the file, and hold back what is appended inside; at the end write it, and let go of the file."""
        if self._in_batch:
            yield
            return
        self._whole = super().acquire()
        self._in_batch = True
        try:
            yield
            self.write_out()
        finally:
            self._in_batch = False
            self._waiting = []
            super().release()

    def goes_on_at(self, end: int) -> bool:
        """Say whether we are inside of a batch, and the timeline has so many bytes."""
        return self._in_batch and self._whole == end

    def end(self) -> int:
        """Return how long the timeline is, with what is held back."""
        return self._whole if self._in_batch else super().end()

    def acquire(self) -> int:
        return self._whole if self._in_batch else super().acquire()

    def release(self) -> None:
        if not self._in_batch:
            super().release()

    def append(self, data: bytes) -> None:
        if not self._in_batch:
            super().append(data)
            return
        self._waiting.append(data)
        self._whole += len(data)

    def read(self, start: int, count: int) -> bytes:
        self.write_out()  # what is read may be what is held back
        return super().read(start, count)

    def truncate(self, size: int) -> None:
        self.write_out()
        super().truncate(size)
        self._whole = size

    def write_out(self) -> None:
        """Write what is held back: somebody is about to read it."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            super().append(b"".join(waiting))


class BatchLedger(FileLedger):
    """Append to a run whose log writes in batches."""

    def go_on(
        self,
        kind: str,
        data: bytes,
        span: str | None,
        parent: str | None,
        key: str | None,
        time_us: int,
        elapsed_us: int,
        cuts: int,
    ) -> tuple[int, int] | None:
        """Seal one event in the middle of a batch; return its seq and where it begins. None where `append` has to.

        Inside of a batch both locks are held, and nobody else can have written: what is left to do is to seal.
        """
        end = self._end
        usual = isinstance(self._log, BatchLog) and self._log.goes_on_at(end) and cuts == self.cuts
        if not usual or self._busy or self._lost or self._losses:
            return None
        return self._write(kind, data, span, parent, "0", key, time_us, elapsed_us), end


class BatchStore(FileStore):
    """Write to runs in batches, and flush them when whoever asked for it is about to be answered."""

    flushes_soon = False

    def __init__(self, root: Path) -> None:
        super().__init__(root, disk=PlainDisk())
        self._journal: tuple[int, tuple[int, int] | None] = -1, None  # the journal, open, and which file it is
        self._noting = threading.Lock()
        self._journal_path = os.fspath(layout.journal(self.root))
        self._version_file = os.fspath(layout.version_file(self.root))
        self._version: tuple[tuple[int, int], int] = (0, 0), 0  # which file it was read from

    def version(self) -> int:
        try:
            found = os.stat(self._version_file)
        except OSError:
            return super().version()
        file = found.st_ino, found.st_mtime_ns
        if self._version[0] != file:
            self._version = file, super().version()
        return self._version[1]

    def note(self, run: str, what: str, *, sync: bool = False) -> None:
        """Write to the journal that is open already, where it still is the one at its place."""
        if not sync:
            with self._noting, contextlib.suppress(OSError):
                found = os.stat(self._journal_path)
                if self._journal[1] != (found.st_dev, found.st_ino):
                    self._open_journal()
                line = f"{run} {what}\n".encode()
                if self._disk.write(self._journal[0], line) == len(line):
                    return
        super().note(run, what, sync=sync)  # which says what is wrong

    def _open_journal(self) -> None:
        self.close()
        descriptor = self._disk.open(self._journal_path, os.O_WRONLY | os.O_APPEND)
        self._journal = descriptor, identity(descriptor)

    def close(self) -> None:
        """Let go of the journal."""
        descriptor, self._journal = self._journal[0], (-1, None)
        if descriptor >= 0:
            os.close(descriptor)

    def _fill(self, folder: Path) -> None:
        """Make nothing: a run that comes from outside has no artifacts and no packs, until somebody adds one."""

    def _log(self, timeline: Path, create: bool) -> FileLog:
        return BatchLog(timeline, self._disk, create=create, before_sync=self.sync_files)

    def _ledger(self, log: FileLog, run: str) -> FileLedger:
        return BatchLedger(log, run, self._clock, self)
