"""Know which run, span and lane the running code belongs to."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead._muted import muted as muted

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


class Lane:
    """The logical lineage of a task or thread, by spawn order: `0`, `0.1`, `0.1.3`.

    What begins when chance has it, as the workers of a pool do, is counted apart: `0.0.1`, `0.0.2`.
    """

    __slots__ = ("_aside", "_children", "name", "names", "path", "reads", "spawned", "tap", "timers", "writes")

    def __init__(self, path: str = "0", tap: Any = None) -> None:
        self.path = path
        self.name = ""  # that the agent gave to what runs in it
        self.names: Any = None  # of temporary files, where it makes some
        self.timers = 0  # that were set in it
        self.writes = 0  # to the outputs of the program, as far as they are counted
        self.tap = tap  # where the run keeps what its lanes read; None where it does not
        self.reads = None if tap is None else tap.pack(path)  # what this lane read since its last event
        self._children = itertools.count(1)  # next() is atomic
        self.spawned = 0  # the number of the last child
        self._aside: itertools.count[int] | None = None  # most lanes need none

    def spawn(self) -> Lane:
        """Return the lane of the next child."""
        self.spawned = number = next(self._children)
        return Lane(f"{self.path}.{number}", self.tap)

    def skip(self, spawned: int, timers: int) -> None:
        """Go on counting after this child and this timer: a replay does not do what began them."""
        self.timers = max(self.timers, timers)
        if spawned > self.spawned:
            self.spawned, self._children = spawned, itertools.count(spawned + 1)

    def aside(self) -> Lane:
        """Return a lane for what uses up no number of the children."""
        if self._aside is None:
            self._aside = itertools.count(1)
        return Lane(f"{self.path}.0.{next(self._aside)}", self.tap)


class Scope(NamedTuple):
    """Where an event would be recorded now."""

    recording: Recording
    span: str | None
    lane: Lane

    def inside(self, span: str | None) -> Scope:
        """Return the scope of what happens inside a span; an unrecorded span is passed through."""
        return self if span is None else Scope(self.recording, span, self.lane)


class Ambient:
    """The run that a whole process records into, wherever no context says otherwise.

    It may be opened as late as the first event that wants to be recorded. `origin` is set where the run is the
    process's own, as a child of another one; without it the run is the launcher's, which an agent may adopt.
    """

    def __init__(
        self,
        opening: Callable[[], Recording | None],
        *,
        lane: Lane | None = None,
        span: str | None = "0",
        origin: dict[str, Any] | None = None,
    ) -> None:
        self.lane = lane or Lane()
        self.origin = origin
        self.leaving: Callable[[], None] | None = None  # to be called by a process that ends without the usual
        self.recording: Recording | None = None
        self._span = span
        self._opening: Callable[[], Recording | None] | None = opening
        self._pending = True
        self._lock = threading.RLock()

    def scope(self) -> Scope | None:
        """Return where this thread records, and open the run for it; None when it has ended or cannot be opened."""
        if self._pending:
            self._open()
        recording = self.recording
        if recording is None or recording.closed:
            return None
        return Scope(recording, self._span, self.lane_here())

    def lane_here(self) -> Lane:
        """Return the lane of the thread or task that asks."""
        return ambient_lane.get() or self.lane

    def source(self) -> dict[str, Any] | None:
        """Say where a run came from that this process opens beside its own."""
        if self.recording is not None:
            return {"run": self.recording.id, "mode": "child"}
        return self.origin

    def after_fork(self) -> None:
        """Forget a lock that another thread may have held."""
        self._lock = threading.RLock()

    def _open(self) -> None:
        with self._lock:  # others wait until it is open; what opening itself does is not recorded
            opening, self._opening = self._opening, None
            if opening is not None:
                self.recording = opening()
                self._pending = False


Policy = Callable[..., Any]

# The policies in force, outermost first. Apart from the scope: a policy holds whether or not anything is recorded.
policies: ContextVar[tuple[Policy, ...]] = ContextVar("playhead_policies", default=())
current: ContextVar[Scope | None] = ContextVar("playhead_scope", default=None)
# The lane of threads and tasks without a scope.
ambient_lane: ContextVar[Lane | None] = ContextVar("playhead_lane", default=None)

# Traffic of a client that was wrapped, in a run that captures nothing else.
wrapped: ContextVar[bool] = ContextVar("playhead_wrapped", default=False)

_ambient: Ambient | None = None


def context() -> Scope | None:
    """Return the current scope; None where there is none, or where its run has ended."""
    scope = current.get()
    return None if scope is None or scope.recording.closed else scope


def place() -> Scope | None:
    """Return the current scope, else that of the process; None where there is none.

    What outlives a run is the process's own again: it does something still, and may be held to a policy.
    """
    scope = context()
    return scope if scope is not None or _ambient is None else _ambient.scope()


def opened() -> Scope | None:
    """Return the place, and open no run for it."""
    return None if context() is None and (_ambient is None or _ambient.recording is None) else place()


def live() -> Scope | None:
    """Return the scope of what happens now: that of the place, or the turn of a conversation that is open there."""
    scope = place()
    return scope if scope is None or not scope.recording.turns.open else scope.recording.turns.inside(scope)


def ambient() -> Ambient | None:
    """Return what the process as a whole records into."""
    return _ambient


def set_ambient(given: Ambient | None) -> None:
    """Let the whole process record into a run; None ends that."""
    global _ambient
    _ambient = given


def lane_here() -> Lane | None:
    """Return the lane that runs here; None where nothing is recorded."""
    found = current.get()
    if found is not None:
        return found.lane
    return None if _ambient is None else _ambient.lane_here()


def lane_path() -> str:
    """Return its path; empty where nothing is recorded."""
    lane = lane_here()
    return "" if lane is None else lane.path


def lane_in(recording: Recording) -> Lane:
    """Return the lane in which the running code speaks in a run."""
    scope = current.get()
    if scope is not None and scope.recording is recording:
        return scope.lane
    if _ambient is not None and _ambient.recording is recording:
        return _ambient.lane_here()
    return _FIRST


def is_in_loop() -> bool:
    """Say whether an event loop runs in this thread: whoever blocks it holds up all of its tasks."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


_FIRST = Lane()
