"""Know which run, span and lane the running code belongs to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


class Lane:
    """The logical lineage of a task or thread, by spawn order: `0`, `0.1`, `0.1.3`."""

    __slots__ = ("_children", "path")

    def __init__(self, path: str = "0") -> None:
        self.path = path
        self._children = itertools.count(1)  # next() is atomic

    def spawn(self) -> Lane:
        """Return the lane of the next child."""
        return Lane(f"{self.path}.{next(self._children)}")


class Scope(NamedTuple):
    """Where an event would be recorded now."""

    recording: Recording
    span: str | None
    lane: Lane

    def inside(self, span: str | None) -> Scope:
        """Return the scope of what happens inside a span; an unrecorded span is passed through."""
        return self if span is None else Scope(self.recording, span, self.lane)


Policy = Callable[..., Any]

# The policies in force, outermost first. Apart from the scope: a policy holds whether or not anything is recorded.
policies: ContextVar[tuple[Policy, ...]] = ContextVar("playhead_policies", default=())
current: ContextVar[Scope | None] = ContextVar("playhead_scope", default=None)


def live() -> Scope | None:
    """Return the current scope; None where there is none, or where its run has ended meanwhile."""
    scope = current.get()
    return None if scope is None or scope.recording.closed else scope
