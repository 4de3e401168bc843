"""Bring what many runs have new to the disk at once, before it is answered that it was taken in.

A request may touch a hundred runs, each with files and folders of its own. Linux flushes the whole file system in one
call, which costs less than a handful of files; elsewhere the runs are flushed one by one. Requests that wait at the
same time share a flush.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from playhead.errors import WriteFailed


class Flusher:
    """Flush the file system that a folder is on. Threads share one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._flushing = threading.Lock()
        self._begun = self._done = 0

    def flush(self, one_by_one: Iterable[Callable[[], object]]) -> None:
        """Return when everything that was written before this call is on the disk.

        `one_by_one` are the flushes of the runs that were written to, for where nothing flushes them all.
        """
        wanted = self._begun + 1  # one that is under way may have begun before our last write
        with self._flushing:
            if self._done >= wanted:
                return
            self._begun += 1
            if not flush_file_system(self._folder):
                for flush in one_by_one:
                    flush()
                return  # which was for ours alone
            self._done = self._begun


def flush_file_system(folder: Path) -> bool:
    """Flush the file system that a folder is on; False where that cannot be done in one call."""
    if sys.platform != "linux":
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        return False
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if call(descriptor) != 0:
            number = ctypes.get_errno()
            raise WriteFailed(f"cannot bring {folder} to the disk: {os.strerror(number)}")
    finally:
        os.close(descriptor)
    return True
