"""Name every system call that writes, in one small object: the seam at which tests make the disk fail."""

from __future__ import annotations

import os
import sys

from playhead import _limits

if sys.platform != "win32":
    import fcntl

# Windows has none of these; runs are read there, not written.
CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0) | getattr(os, "O_BINARY", 0)
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def out_of_the_way(descriptor: int) -> int:
    """Give an open file a high number: the program we are in shall get the low ones that it gets without us.

    It may also close all low ones, as daemons do, while a thread of ours has one open, and then get the number itself.
    """
    if sys.platform == "win32":
        return descriptor
    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _limits.DESCRIPTOR_MIN)
    except OSError:
        return descriptor  # so many are not allowed here
    os.close(descriptor)
    return high


def identity(descriptor: int) -> tuple[int, int] | None:
    """Say which file has this number; None where none has. A program may close what it did not open, and go on."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Disk:
    """Call the operating system."""

    def open(self, path: str | os.PathLike[str], flags: int, mode: int = 0o600, dir_fd: int | None = None) -> int:
        """Open a file that no child process inherits, with a number that is in nobody's way."""
        return out_of_the_way(os.open(path, flags | CLOEXEC, mode, dir_fd=dir_fd))

    def mkdir(self, path: str | os.PathLike[str], mode: int = 0o700, dir_fd: int | None = None) -> None:
        """Make one folder."""
        os.mkdir(path, mode, dir_fd=dir_fd)

    def write(self, descriptor: int, data: bytes) -> int:
        """Write once; the operating system may take less than it was given."""
        return os.write(descriptor, data)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut a file."""
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Wait until the file's content is on the disk."""
        os.fdatasync(descriptor) if hasattr(os, "fdatasync") else os.fsync(descriptor)

    def sync_folder(self, path: str | os.PathLike[str]) -> None:
        """Wait until a folder's entries are on the disk."""
        descriptor = out_of_the_way(os.open(path, FOLDER | CLOEXEC))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def touch(self, path: str | os.PathLike[str]) -> None:
        """Make a file young."""
        os.utime(path)

    def replace(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        """Put a finished file in its place, atomically."""
        os.replace(source, target)

    def lock(self, descriptor: int, operation: int) -> None:
        """Take or release an advisory lock."""
        if sys.platform != "win32":
            fcntl.flock(descriptor, operation)

    def write_all(self, descriptor: int, data: bytes) -> None:
        """Write everything, however many calls it takes."""
        view = memoryview(data)
        while view:
            view = view[self.write(descriptor, bytes(view) if len(view) < len(data) else data) :]
