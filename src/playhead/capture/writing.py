"""Keep in which order threads write to the program's outputs: when each of them wrote after another one.

Only under the launcher, which records what the program writes, and only from its first thread on: a program that has
one thread is not watched. The writes of a lane are counted; of one that comes after somebody else's the number and the
time are kept as a read of the lane. A replay lets it happen when it is its turn; those after it follow by themselves.

Whoever logs takes his turn before he has the lock of the handler: another one, whose turn it is, may need it.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from types import ModuleType
from typing import Any

from playhead import _limits
from playhead.capture import abandoned, answering, hooks, printing
from playhead.capture.patches import Patches
from playhead.capture.scope import Lane, ambient, current, is_in_loop, muted

WROTE = "output.write"
_NOBODY = (0, None)  # whoever writes first comes after nobody
_outputs: list[_Output] = []  # those that are watched


class _Local(threading.local):
    taken = 0  # the number of the next write of this thread, whose turn was taken when it began to log


_local = _Local()


class _Output:
    """One output of the program: who wrote to it last, and when somebody did that in place of another one."""

    __slots__ = ("at_us", "last", "lock")

    def __init__(self) -> None:
        self.at_us = 0
        self.last: tuple[int, Lane | None] | None = _NOBODY
        self.lock = threading.RLock()  # a handler of signals may print, too


def patch(module: ModuleType, patches: Patches) -> None:
    """Put ourselves before the locks of those who log."""
    patches.replace(module.Handler, "handle", _handle)


def watch() -> None:
    """See from now on who writes: another thread begins."""
    if _outputs or not hooks.watched or ambient() is None or abandoned.collecting():
        return
    for stream in (sys.__stdout__, sys.__stderr__):
        _outputs.append(output := _Output())
        if stream is not None:
            stream.write = _writing(stream.write, output)  # type: ignore[method-assign]


def _lane() -> Lane | None:
    """Return the lane in which writes are counted here; None where they are as many as chance has it, or a tool's."""
    process = ambient()
    if process is None or muted.get() or printing.here.get() is not None or abandoned.collecting():
        return None
    scope = current.get()
    lane = process.lane_here() if scope is None else scope.lane
    return None if lane.reads is None else lane


def _writer(lane: Lane) -> tuple[int, Lane | None]:
    """Say who writes: a thread in a lane. The tasks of a loop follow each other in any case."""
    return threading.get_ident(), None if is_in_loop() else lane


def _take_turn(lane: Lane) -> int:
    """Return the number of the next write, when it is time for it."""
    lane.writes = number = lane.writes + 1
    if answering.player is not None:
        answering.player.writing(lane.path, number)
    return number


def _writing(original: Any, output: _Output) -> Any:
    @functools.wraps(original)
    def write(text: str) -> Any:
        lane = _lane()
        if lane is None:
            output.last = None
            return original(text)
        number, _local.taken = _local.taken, 0
        number = number or _take_turn(lane)
        writer, at_us = _writer(lane), 0
        try:
            # Not for ever: a finaliser that is called meanwhile may want what another one holds who waits for this.
            output.lock.acquire(timeout=_limits.WRITE_WAIT_S)
            before, output.last = output.last, writer
            if before != writer and before is not _NOBODY:
                at_us = output.at_us = max(printing.now_us(), output.at_us + 1)
            written = original(text)
        finally:
            if output.lock._is_owned():  # type: ignore[attr-defined]  # an interrupt may come before we know it
                output.lock.release()
        if at_us and lane.reads is not None:
            lane.reads.add(WROTE, "", [number, at_us], 24)
        return written

    return write


def _handle(original: Any) -> Any:
    @functools.wraps(original)
    def handle(self: Any, record: Any) -> Any:
        lane = _lane() if _outputs else None
        if lane is None:
            return original(self, record)
        before, _local.taken = _local.taken, _take_turn(lane)
        try:
            return original(self, record)
        finally:
            _local.taken = before

    return handle


def _after_fork_in_child() -> None:
    for output in _outputs:
        output.lock = threading.RLock()  # another thread may have held it
        output.last = _NOBODY


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
