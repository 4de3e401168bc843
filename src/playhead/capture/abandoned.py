"""Do next to nothing while the garbage collector works.

It runs finalisers wherever it likes to: inside a lock that they would want too, or in the middle of setting a context
variable, which CPython 3.11 does not survive if they set one themselves. So what ends in there is left here, in one
step. Whoever records an exchange next, or ends a run, does what is left to be done.
"""

from __future__ import annotations

import collections
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

_left: collections.deque[Callable[[], object]] = collections.deque()
_collecting: int | None = None  # the thread in which the collector works
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_left.clear)  # what is in there is the parent's


def watch() -> None:
    """Take notice of the collector from now on."""
    gc.callbacks.append(_noticed)


def unwatch() -> None:
    """End that."""
    global _collecting
    if _noticed in gc.callbacks:
        gc.callbacks.remove(_noticed)
    _collecting = None


def _noticed(phase: str, info: dict[str, Any]) -> None:
    global _collecting
    _collecting = threading.get_ident() if phase == "start" else None


def collecting() -> bool:
    """Say whether the collector works in this thread: then nothing can be recorded here."""
    return _collecting is not None and _collecting == threading.get_ident()


def leave(end: Callable[[], object]) -> None:
    """Leave it to others to record how something ended."""
    _left.append(end)


def settle() -> None:
    """Record what was left."""
    while _left and not collecting():
        try:
            end = _left.popleft()
        except IndexError:
            return  # another thread was faster
        end()
