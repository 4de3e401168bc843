"""Say which line of the agent's code does something, and what sort of source it asks."""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType

from playhead.capture import callers

ORDER, CODE = "order", "code"  # in which threads and tasks went on; the files of the program itself
# By the beginning of a source's name, the function of the standard library included that was called: the first counts.
_SORTS = (
    ("uuid", "uuid"),
    ("secrets.", "secrets"),
    ("tempfile.", "temporary names"),
    ("random.", "random"),
    ("numpy.", "random"),
    ("torch.", "random"),
    ("os.urandom", "random"),
    ("os.getrandom", "random"),
    ("time.sleep", "sleeps"),
    ("time.", "clock"),
    ("datetime.", "clock"),
    ("asyncio.loop.time", "clock"),
    ("asyncio.timer", ORDER),
    ("os.environ", "environment"),
    ("sys.stdin", "stdin"),
    ("open", "files"),
    ("sqlite3", "sqlite"),
    ("os.listdir", "listings"),
    ("os.scandir", "listings"),
    ("os.getpid", "process ids"),
    ("os.getppid", "process ids"),
    ("os.stat", "files"),
    ("os.lstat", "files"),
    ("os.access", "files"),
    ("os.readlink", "files"),
    ("os.DirEntry", "listings"),
    ("lane.ended", ORDER),
    ("threading.", ORDER),
    ("queue.", ORDER),
    ("futures.", ORDER),
    ("asyncio.wait", ORDER),
    ("import", CODE),
)


def sort_of(name: str) -> str:
    """Return the sort of a source: `clock`, `random`, `files`, …."""
    source = name.rpartition(":")[2]
    for beginning, sort in _SORTS:
        if name.startswith(beginning) or source.startswith(beginning):
            return sort
    return "system"


def agents_line(frame: FrameType | None = None) -> str:
    """Return file and line of the agent's own code that led here; of a library that it uses where it has none."""
    frame, first = frame or sys._getframe(1), ""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if not isinstance(module, str) or callers.sort_of(module) == callers.AGENT:
            file, installed = _shown(frame.f_code.co_filename)
            if not installed:
                return f"{file}:{frame.f_lineno}"
            first = first or f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return first


def at_line(line: str) -> str:
    """Return it as the end of a sentence; nothing where it is not known."""
    return f" (at {line})" if line else ""


@functools.lru_cache(maxsize=1024)
def _shown(name: str) -> tuple[str, bool]:
    """Return the path of a file as people would write it here, and whether it was installed."""
    shown = os.path.relpath(name) if os.path.exists(name) else name
    return shown, any(folder in name for folder in ("site-packages", "dist-packages"))
