"""Keep what the bodies of tools print: a replay does not run them, and prints it in their place.

Only under the launcher, which records what the program writes: elsewhere nobody compares it.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from playhead.capture.scope import ambient, muted

_wall_ns, _monotonic_ns = time.time_ns, time.monotonic_ns
_TOGETHER_US = 1000  # what is written within this time is one piece: `print` writes its end apart


class Printed:
    """What one call of a tool printed: when, counted from its beginning, after how many items, where, and the text."""

    def __init__(self, began_us: int) -> None:
        self.pieces: list[list[Any]] = []
        self.yielded: Callable[[], int] = int
        self._began_us = began_us

    def add(self, stream: str, text: str) -> None:
        """Keep a piece."""
        at_us, after = self._elapsed_us(), self.yielded()
        last = self.pieces[-1] if self.pieces else None
        if (
            last is not None
            and _spoke is self
            and last[1:3] == [after, stream]
            and at_us - last[0] < _TOGETHER_US
            and type(last[3]) is str
        ):
            last[3] += text
        else:
            self.pieces.append([at_us, after, stream, text])

    def add_parts(self, stream: str, parts: list[list[int]]) -> None:
        """Keep what a process wrote there that the tool has started: parts of the program's output, by their place."""
        self.pieces.append([self._elapsed_us(), self.yielded(), stream, parts])

    def _elapsed_us(self) -> int:
        return _monotonic_ns() // 1000 - self._began_us


here: ContextVar[Printed | None] = ContextVar("playhead_printed", default=None)
_watched: list[Any] = []  # the streams
_spoke: Printed | None = None  # who printed last; None for somebody else


def now_us() -> int:
    """Return the time, for those who stand between the program and what it calls: it is not the program that asks."""
    return _wall_ns() // 1000


def begun(at_us: int) -> Printed | None:
    """Return where to keep what a tool prints that began then; None where nobody asks, or another one does."""
    if ambient() is None or here.get() is not None:
        return None
    for name in ("stdout", "stderr"):
        stream = getattr(sys, f"__{name}__")
        if stream is not None and not any(stream is one for one in _watched):
            _watched.append(stream)
            stream.write = _writing(stream.write, name)
    return Printed(at_us)


def _writing(original: Any, name: str) -> Any:
    @functools.wraps(original)
    def write(text: str) -> Any:
        global _spoke
        done = original(text)
        kept = here.get()
        if kept is not None:
            kept.add(name, text)
        _spoke = kept
        return done

    return write


def say(stream: str, text: str) -> None:
    """Print what a tool printed."""
    target = getattr(sys, f"__{stream}__")
    if target is not None:
        token = muted.set(True)  # it was no write of the lane's own
        try:
            target.write(text)
        finally:
            muted.reset(token)
