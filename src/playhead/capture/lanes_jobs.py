"""Take jobs of a pool of threads as they are; in a replay, let those be cancelled that were, and no others.

Who cancels a job may be quicker than the worker that did it then, or slower.
"""

from __future__ import annotations

import functools
from contextvars import Context
from typing import Any

from playhead.capture import answering, lanes
from playhead.capture.scope import Lane


def cancelled_as_then(future: Any, lane: Lane | None) -> Any:
    """Let work that was done not be cancelled; return its future."""
    if answering.player is None or lane is None:
        return future
    cancel, path = future.cancel, lane.path

    def cancel_unless_done() -> bool:
        player = answering.player
        return False if player is not None and player.was_done(path) else bool(cancel())

    future.cancel = cancel_unless_done
    return future


def run(original: Any) -> Any:
    """Wrap what a worker does with a job: one that was cancelled before it began waits for that."""

    @functools.wraps(original)
    def run(self: Any, *args: Any) -> Any:
        if answering.player is not None:
            function = getattr(self, "fn", None) or getattr(self, "task", (None,))[0]  # the latter from 3.14 on
            start = getattr(function, "__self__", None)
            if isinstance(start, lanes.Start) and start.child is not None:
                answering.player.beginning(start.child.path)
        return original(self, *args)

    return run


def settle_inside(function: Any, start: lanes.Start) -> None:
    """Give work that brings a context of its own, as `asyncio.to_thread` does, its lane in there."""
    inner = function.func if isinstance(function, functools.partial) else function
    context = getattr(inner, "__self__", None)
    if isinstance(context, Context) and start.changed and lanes.is_here(context.get):
        try:
            context.run(start.enter)
        except RuntimeError:
            return  # somebody is inside of it, and speaks in its lane
