"""Keep others out for a while: a lock on a folder, which the operating system lets go of however the process ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playhead.store.disk import CLOEXEC, FOLDER

if sys.platform != "win32":
    import fcntl

_LOOK_S = 0.005  # between two tries

_sleep, _monotonic = time.sleep, time.monotonic  # bound once: the agent's own clock may be replaced later


@contextmanager
def alone(folder: Path, wait_s: float, busy: Callable[[Exception], Exception]) -> Iterator[None]:
    """Hold a folder alone; what `busy` returns is raised where another process keeps it for too long."""
    if sys.platform == "win32":
        yield
        return
    fd = os.open(folder, FOLDER | CLOEXEC)
    try:
        until = _monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if _monotonic() > until:
                    raise busy(error) from error
                _sleep(_LOOK_S)
        yield
    finally:
        os.close(fd)


@contextmanager
def unserved(serving: Path, busy: Callable[[], Exception]) -> Iterator[None]:
    """Keep servers away from a store, by the file that each holds; what `busy` returns is raised where one does."""
    if sys.platform == "win32":
        yield
        return
    fd = os.open(serving, os.O_RDWR | os.O_CREAT | CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise busy() from error
        yield
    finally:
        os.close(fd)
