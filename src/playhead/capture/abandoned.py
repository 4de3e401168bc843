"""Do next to nothing while the garbage collector works.

It runs finalisers wherever it likes to: inside a lock that they would want too. So what ends in there is left here, in
one step. Whoever records an exchange next, or ends a run, does what is left to be done.

CPython 3.11 calls it even in the middle of setting a context variable, and does not survive it if a finaliser sets one:
the table of all variables that it reads from is freed, and what a variable remembers of its value is no longer in any
table. Whatever is recorded sets one. So that table is kept for longer, and what is remembered is given up.
"""

from __future__ import annotations

import collections
import gc
import os
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from playhead.capture import hooks

_left: collections.deque[Callable[[], object]] = collections.deque()
_collecting: int | None = None  # the thread in which the collector works
_held: Any = None  # the table of context variables as the collector found it
_outliving: collections.deque[Any] = collections.deque(maxlen=32)  # more than one setting of a variable allocates
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_left.clear)  # what is in there is the parent's


def watch() -> None:
    """Take notice of the collector from now on."""
    if noticed not in gc.callbacks:
        gc.callbacks.append(noticed)


def unwatch() -> None:
    """End that; where it works in this thread, the next who ends it does."""
    if noticed in gc.callbacks and not collecting():
        gc.callbacks.remove(noticed)
        noticed("stop", {})  # which another thread may be waiting for


def _noticed(phase: str, info: dict[str, Any]) -> None:
    global _collecting, _held
    begins = phase == "start"
    _collecting = threading.get_ident() if begins else None
    if sys.version_info < (3, 12):
        table = _table()
        if not begins and table is not _held:
            _outliving.append(_held)
            copy_context().run(int)  # to enter a context makes all variables forget what they remember
        _held = table if begins else None


def _table() -> Any:
    """Return the table of all context variables, which is the second word of a context of 3.11."""
    import ctypes

    context = copy_context()
    return ctypes.py_object.from_address(id(context) + object.__basicsize__ + tuple.__itemsize__).value


def _is_collecting() -> bool:
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


# A callback in C is never interrupted by Ctrl-C, which the collector would swallow.
noticed = _noticed if hooks.compiled is None else hooks.compiled.noticed
# Say whether the collector works in this thread: then nothing can be recorded here.
collecting: Callable[[], bool] = _is_collecting if hooks.compiled is None else hooks.compiled.collecting
