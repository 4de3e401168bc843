"""Keep a timeline in a file: append-only, one lock across processes, one write for each line."""

from __future__ import annotations

import fcntl
import os
import time
from _thread import get_ident
from collections.abc import Callable
from pathlib import Path

from playhead import _limits
from playhead.errors import WriteFailed
from playhead.store.disk import Disk, identity

_EXCLUSIVE = fcntl.LOCK_EX | fcntl.LOCK_NB
_FLAGS = os.O_RDWR | os.O_APPEND


class FileLog:
    """Append bytes to one file. `before_sync` brings what the lines refer to (blobs) to the disk first."""

    def __init__(self, path: Path, disk: Disk, *, create: bool, before_sync: Callable[[], None] | None = None) -> None:
        self._path = path
        self._disk = disk
        self._before_sync = before_sync
        try:
            self._descriptor = disk.open(path, _FLAGS | (os.O_CREAT | os.O_EXCL if create else 0))
        except OSError as problem:
            raise WriteFailed(f"cannot open {path}: {problem.strerror}") from problem
        self._file = identity(self._descriptor)
        self._size = -1  # as it was when we looked last: where it is not, somebody else wrote, or it is another file
        # A subclass of Disk may fail any call; the real one is called without an extra Python frame.
        self._flock = fcntl.flock if type(disk) is Disk else disk.lock
        self._write = os.write if type(disk) is Disk else disk.write
        self._lock = self._flock
        self._borrowed = False  # the descriptor is that of the process we were forked from
        self._holder = 0  # the thread that is between `acquire` and `release`
        self._patience: float | None = None  # in a child whose parent may hold the lock until the child has ended

    def acquire(self) -> int:
        for _ in range(2):
            self._holder = get_ident()
            try:
                self._lock(self._descriptor, _EXCLUSIVE)
            except BlockingIOError:
                self._wait(_limits.LOCK_WAIT_S if self._patience is None else self._patience)
            except OSError as problem:
                if identity(self._descriptor) is not None:
                    raise WriteFailed(f"cannot lock {self._path}: {problem.strerror}") from problem
                self._open_again()
                continue
            self._patience = None
            size = os.lseek(self._descriptor, 0, os.SEEK_END)
            if size == self._size or identity(self._descriptor) == self._file:
                self._size = size
                return size
            self.release()  # the program closed ours and opened a file of its own that got the number
            self._open_again()
        raise WriteFailed(f"cannot lock {self._path}: its descriptor is closed again and again")

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        pause = 0.0
        while True:
            time.sleep(pause)
            try:
                self._lock(self._descriptor, _EXCLUSIVE)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    if self._patience is not None:
                        self._patience = 0.0  # it was waited for once
                    raise WriteFailed(
                        f"another process has held the lock of {self._path} for {seconds:g} s",
                        hint="A process that was stopped (SIGSTOP, a debugger) in the middle of a write holds it.",
                    ) from None
                pause = min(0.002, pause + 0.0001)

    def release(self) -> None:
        if not self._borrowed:  # else what is held there is our parent's
            try:
                self._flock(self._descriptor, fcntl.LOCK_UN)
            except OSError:
                self._renew()  # closing the old descriptor lets go of the lock
        self._holder = 0  # last: whoever forks before it must know

    def end(self) -> int:
        return os.lseek(self._descriptor, 0, os.SEEK_END)

    def read(self, start: int, count: int) -> bytes:
        return os.pread(self._descriptor, count, start)

    def append(self, data: bytes) -> None:
        try:
            if not self._holder:  # right before the write: a signal handler that forks may come until then
                raise WriteFailed(f"forked in the middle of a line of {self._path}, which the parent writes")
            written = self._write(self._descriptor, data)
        except OSError as problem:
            raise WriteFailed(f"cannot write to {self._path}: {problem.strerror}") from problem
        if written != len(data):
            self._finish(data, written)
        self._size += len(data)

    def _finish(self, data: bytes, written: int) -> None:
        """Complete a short write, or take back what it left."""
        start = self.end() - written
        try:
            self._disk.write_all(self._descriptor, data[written:])
        except OSError as problem:
            self.truncate(start)
            raise WriteFailed(f"cannot write to {self._path}: {problem.strerror}") from problem

    def truncate(self, size: int) -> None:
        try:
            self._disk.truncate(self._descriptor, size)
        except OSError as problem:
            raise WriteFailed(f"cannot cut a torn line off {self._path}: {problem.strerror}") from problem

    def sync(self) -> None:
        if identity(self._descriptor) != self._file:
            return  # closed by the program; what comes next opens it again
        try:
            if self._before_sync is not None:
                self._before_sync()
            self._disk.sync(self._descriptor)
        except OSError as problem:
            # After a failed fsync the kernel may have dropped the pages and will report success next time: a new
            # descriptor at least gets the errors of later writes. It is taken before the next line, not here, where
            # another thread may be in the middle of one.
            self._lock = self._renew_and_lock
            raise WriteFailed(f"cannot bring {self._path} to the disk: {problem.strerror}") from problem

    def reopen(self) -> None:
        # A fork shares its parent's lock until it has a descriptor of its own: without one, nothing is written.
        if self._holder == get_ident():  # a signal handler forked in the middle of a line, and may wait for us
            self._patience = _limits.FORKED_LOCK_WAIT_S
        self._holder = 0
        self._lock = self._renew_and_lock
        self._borrowed = True
        self._renew()

    def _renew_and_lock(self, descriptor: int, operation: int) -> None:
        self._renew()
        self._flock(descriptor, operation)

    def _open_again(self) -> None:
        """Take a new descriptor where the program closed ours; the number may be that of a file of its own by now."""
        self._size = -1
        self._descriptor = self._disk.open(self._path, _FLAGS)
        self._file = identity(self._descriptor)
        self._lock = self._flock
        self._borrowed = False

    def _renew(self) -> None:
        if identity(self._descriptor) != self._file:
            self._open_again()
            return
        fresh = self._disk.open(self._path, _FLAGS)
        # Same number, new open file: whoever is about to use the old one in this process gets the new one.
        os.dup2(fresh, self._descriptor, inheritable=False)
        os.close(fresh)
        self._lock = self._flock
        self._borrowed = False

    def close(self) -> None:
        if identity(self._descriptor) == self._file:
            os.close(self._descriptor)
