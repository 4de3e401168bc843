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

_now = time.time_ns
_TOGETHER_US = 1000  # what is written within this time is one piece: `print` writes its end apart


class Printed:
    """What one call of a tool printed: when, counted from its beginning, after how many items, where, and the text."""

    def __init__(self) -> None:
        self.pieces: list[list[Any]] = []
        self.yielded: Callable[[], int] = int
        self._began = _now()

    def add(self, stream: str, text: str) -> None:
        """Keep a piece."""
        at_us, after = (_now() - self._began) // 1000, self.yielded()
        last = self.pieces[-1] if self.pieces else None
        if (
            last is not None
            and last[1:3] == [after, stream]
            and at_us - last[0] < _TOGETHER_US
            and type(last[3]) is str
        ):
            last[3] += text
        else:
            self.pieces.append([at_us, after, stream, text])

    def add_parts(self, stream: str, parts: list[list[int]]) -> None:
        """Keep what a process wrote there that the tool has started: parts of the program's output, by their place."""
        self.pieces.append([(_now() - self._began) // 1000, self.yielded(), stream, parts])


here: ContextVar[Printed | None] = ContextVar("playhead_printed", default=None)
_watched: list[Any] = []  # the streams


def now_us() -> int:
    """Return the time, for those who stand between the program and what it calls: it is not the program that asks."""
    return _now() // 1000


def begun() -> Printed | None:
    """Return where to keep what a tool prints that begins here; None where nobody asks, or another one does."""
    if ambient() is None or here.get() is not None:
        return None
    for name in ("stdout", "stderr"):
        stream = getattr(sys, f"__{name}__")
        if stream is not None and not any(stream is one for one in _watched):
            _watched.append(stream)
            stream.write = _writing(stream.write, name)
    return Printed()


def _writing(original: Any, name: str) -> Any:
    @functools.wraps(original)
    def write(text: str) -> Any:
        done = original(text)
        kept = here.get()
        if kept is not None:
            kept.add(name, text)
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
