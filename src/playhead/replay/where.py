"""Say which line of the agent's code does something, and what sort of source it asks."""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType, TracebackType

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
    ("output.", ORDER),
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
        line, own = _line(frame)
        if own:
            return line
        first = first or line
        frame = frame.f_back
    return first


def _line(frame: FrameType) -> tuple[str, bool]:
    """Return file and line of a frame, and whether they are the agent's own; nothing where they are of Python or us."""
    module = frame.f_globals.get("__name__")
    if isinstance(module, str) and callers.sort_of(module) != callers.AGENT:
        return "", False
    file, installed = _shown(frame.f_code.co_filename)
    return f"{file}:{frame.f_lineno}", not installed


def is_own(frame: FrameType) -> bool:
    """Say whether a frame is of the agent's own code."""
    return _line(frame)[1]


def own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the lines of libraries; as it is where it has no others."""
    all_of_it, own = trace, []
    while trace is not None:
        if _line(trace.tb_frame)[1]:
            own.append(trace)
        trace = trace.tb_next
    shorter: TracebackType | None = None
    for one in reversed(own):
        shorter = TracebackType(shorter, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return shorter or all_of_it


def at_line(line: str) -> str:
    """Return it as the end of a sentence; nothing where it is not known."""
    return f" (at {line})" if line else ""


@functools.lru_cache(maxsize=1024)
def _shown(name: str) -> tuple[str, bool]:
    """Return the path of a file as people would write it here, and whether it was installed."""
    shown = os.path.relpath(name) if os.path.exists(name) else name
    return shown, any(folder in name for folder in ("site-packages", "dist-packages"))
