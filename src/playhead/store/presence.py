"""Tell whether a writer holds a run.

A writer keeps a shared lock on the run's directory for as long as it lives; the operating system lets go of it when
the process ends, however it ends. A run without `run.finished` that nobody holds has crashed.

A writer takes the lock **before** it notes the run in the journal: whoever reads the note then finds the run held.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from playhead.store.disk import CLOEXEC, FOLDER, out_of_the_way

if sys.platform != "win32":
    import fcntl

_PROBE_S = 0.0005  # a probe holds its lock for microseconds; this is long enough to outlast one
_HOLD_TRIES = 200

_sleep = time.sleep  # bound once: the agent's own clock may be replaced later

_vouched: dict[tuple[int, str], Callable[[], int]] = {}  # by process and directory, how long the timeline is


def hold(run_dir: Path, *, aside: bool = True) -> int:
    """Take the shared lock on a run's directory and return its descriptor; closing it lets go.

    `aside` gives it a number that is in nobody's way.

    The lock belongs to the open descriptor: a fork shares it, an exec'd program does not get it. Only a probe can be in
    the way, and only for an instant; an error that lasts is the file system's and is raised.
    """
    if sys.platform == "win32":
        raise OSError("a run cannot be held on this platform")
    fd = os.open(run_dir, FOLDER | CLOEXEC)
    fd = out_of_the_way(fd) if aside else fd
    try:
        for left in range(_HOLD_TRIES, -1, -1):
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                if not left:
                    raise
                _sleep(_PROBE_S)
    except BaseException:
        os.close(fd)
        raise
    raise AssertionError("unreachable")


def vouch(run_dir: Path, size: Callable[[], int]) -> None:
    """Say that this process holds a run, alone writes to it, and lets nobody else close the descriptor.

    So a server knows of a thousand runs, and how long their timelines are, without a question to the system.
    """
    _vouched[os.getpid(), os.fspath(run_dir)] = size


def let_go(run_dir: Path) -> None:
    """Take that back, before the descriptor is closed."""
    _vouched.pop((os.getpid(), os.fspath(run_dir)), None)


def vouched_size(run_dir: str) -> int | None:
    """Return how long the timeline is of a run that this process vouches for; None for any other."""
    size = _vouched.get((os.getpid(), run_dir))
    return None if size is None else size()


def is_written(store: Any, run: str) -> bool:
    """Say whether somebody writes a run just now; nobody does where a store only hands out what it has."""
    asked = getattr(store, "is_held", None)
    if asked is not None:
        return bool(asked(run))
    folder = getattr(store, "folder", None)
    return folder is not None and is_held(folder(run))


def held_among(run_dirs: Iterable[Path]) -> set[Path]:
    """Return those that any writer holds, with one wait for all of them.

    Each is asked twice, because the first refusal may come from another reader's probe.
    """
    seem = [run_dir for run_dir in run_dirs if _seems_held(run_dir)]
    certain = {run_dir for run_dir in seem if sys.platform == "win32" or _is_vouched(run_dir)}
    if len(certain) == len(seem):
        return certain
    _sleep(_PROBE_S)
    return {run_dir for run_dir in seem if run_dir in certain or _seems_held(run_dir)}


def _is_vouched(run_dir: Path) -> bool:
    return (os.getpid(), os.fspath(run_dir)) in _vouched


def _seems_held(run_dir: Path) -> bool:
    if sys.platform == "win32":
        return run_dir.is_dir()
    if _is_vouched(run_dir):
        return True
    try:
        fd = os.open(run_dir, FOLDER | CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def is_held(run_dir: Path) -> bool:
    """Say whether any writer, of this process or another, holds the run.

    A directory that is gone, or that cannot be opened or locked, is held by nobody: `hold` fails there as well. On
    Windows nobody can tell, and a run that is recorded from WSL may be there: it counts as held.
    """
    return bool(held_among([run_dir]))
