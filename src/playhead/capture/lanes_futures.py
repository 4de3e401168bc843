"""Number the futures of concurrent.futures as they are done, and hand them out in that order.

What is told of a piece of work and what its future says are one step: of two that end at once, the one that is recorded
first is done first.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from playhead.capture import done, hooks, lanes, looks, queues, waits
from playhead.capture.patches import Patches

_COMPLETED = "futures.as_completed"
_completing = threading.RLock()


def patch(module: ModuleType, patches: Patches) -> None:
    """Put ourselves where futures are made and done, and where they are handed out."""
    if module.__name__ == "queue":
        queues.patch(module, patches)
    elif module.__name__ == "concurrent.futures._base":
        for name in ("set_result", "set_exception"):
            patches.replace(module.Future, name, _set)
        looks.patch_futures(module, patches)
        waits.patch_futures(module, patches)
        patches.replace(module, "as_completed", functools.partial(_as_completed, module))
        patches.replace(module, "wait", done.wait_in_threads)
    else:
        patches.replace(module, "as_completed", functools.partial(_as_completed, module._base))
        patches.replace(module, "wait", done.wait_in_threads)


def _set(original: Any) -> Any:
    @functools.wraps(original)
    def set_outcome(self: Any, outcome: Any) -> None:
        ending, lanes.local.ending = lanes.local.ending, None
        if ending is not None:
            ending[0].wait_for_turn()
        with _completing, self._condition:
            if ending is not None:
                ending[0].end(ending[1])
            done.number(self)
            # What the agent wants to be called runs when nobody waits for us: it may wait for another future.
            waiting, self._done_callbacks = self._done_callbacks, []
            try:
                original(self, outcome)
                _call(self, [callback for callback in waiting if _is_loops(callback)])
            except BaseException:
                self._done_callbacks = waiting
                raise
        self._done_callbacks = waiting
        others = [callback for callback in waiting if not _is_loops(callback)]
        if ending is None:
            _call(self, others)
        else:
            ending[0].within(_call, self, others)  # the worker of a pool belongs to nobody between two pieces of work

    return set_outcome


def _is_loops(callback: Any) -> bool:
    """Say whether this only tells an event loop, which must hear of all in the same order."""
    return getattr(callback, "__module__", None) == "asyncio.futures"


def _call(future: Any, callbacks: list[Any]) -> None:
    kept, future._done_callbacks = future._done_callbacks, callbacks
    try:
        future._invoke_callbacks()
    finally:
        future._done_callbacks = kept


def _as_completed(base: Any, original: Any) -> Any:
    done_states = {base.CANCELLED_AND_NOTIFIED, base.FINISHED}

    def is_ready(rest: Any, seconds: float | None) -> bool:
        """Wait until one is done: several may be by then, and the one that is told need not be the first."""
        with contextlib.suppress(base.TimeoutError):
            next(original(list(rest), seconds))
            return True
        return False

    @functools.wraps(original)
    def as_completed(fs: Any, timeout: float | None = None) -> Iterator[Any]:
        end = None if timeout is None else time.monotonic() + timeout
        rest = dict.fromkeys(fs)
        total = len(rest)
        while rest:
            with _completing:
                ready = [future for future in rest if future._state in done_states]
            place = hooks.here(_COMPLETED, sys._getframe().f_back) if hooks.watched and timeout is not None else None
            if place is not None or not ready:
                left = None if end is None else max(0.0, end - time.monotonic())
                come = functools.partial(is_ready, rest)
                if not (come(left) if place is None else waits.comes_in_time(place, come, left)):
                    raise base.TimeoutError(f"{len(rest)} (of {total}) futures unfinished")
                with _completing:
                    ready = [future for future in rest if future._state in done_states]
            for future in sorted(ready, key=done.position)[: len(ready) if place is None else 1]:
                del rest[future]
                yield future

    return as_completed


def _after_fork_in_child() -> None:
    global _completing
    _completing = threading.RLock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
