"""Record one process, whoever starts it: the question, what goes through its pipes, how it ends.

`begin` writes `process.started` before the process is started. `process.exited` is written when the exit is known and
the agent has come to the end of the output that it holds, or closed it.
"""

from __future__ import annotations

import functools
import sys
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.capture import abandoned, answering, callers, guard, printing
from playhead.capture.processes import kept
from playhead.capture.processes.inherited import Inherited, inherit
from playhead.capture.scope import Scope, current, live, muted
from playhead.capture.spans import outcome
from playhead.event import kinds
from playhead.event.keys import ASKED
from playhead.event.plain import describe_error

if TYPE_CHECKING:
    from playhead.capture.processes.played import Played, Stream, Told
    from playhead.capture.recording import Recording

_KIND = "process.started"
_now = time.monotonic_ns
_RUN_ENDED = {
    "type": "RunEnded",
    "message": "nobody had asked how the process ended, or not all was read, when the run ended",
}
_LEFT = {
    "type": "LeftRunning",
    "message": "the program let go of the process without asking how it ended, as with an os.popen that is not closed",
}
# What starts processes for whoever calls it, and what runs the agent's tasks and threads: there the scope decides.
_STARTS = frozenset({"subprocess", "asyncio", "anyio", "trio", "outcome", "concurrent", "uvloop"})
_RUNS = frozenset({"threading", "concurrent.futures.thread", "asyncio.events", "trio._core._run"})

# Parts of ours that stand between the agent and what it starts.
_BETWEEN = ("playhead.capture.lanes", "playhead.capture.processes", "playhead.capture.spans")


def for_agent(frame: FrameType | None) -> bool:
    """Say whether a process that is started by this code is the agent's, or one of infrastructure or of ours."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if not isinstance(module, str) or module in _RUNS:
            return True
        if module.partition(".")[0] not in _STARTS and not module.startswith(_BETWEEN):
            sort = callers.sort_of(module)
            if sort != callers.PASSES:
                return sort == callers.AGENT
        frame = frame.f_back
    return True


def begin(frame: FrameType | None, describe: Callable[[ProcessCall], dict[str, Any]]) -> ProcessCall | None:
    """Record that a process is started now, by the code of a frame; None where nothing is to be recorded."""
    if muted.get() or not for_agent(frame):
        return None
    abandoned.settle()
    scope = live()
    if scope is None or not scope.recording.captures:
        return None
    if abandoned.collecting():
        scope.recording.lose("in_finaliser")
        return None
    call = ProcessCall(scope)
    call.open(describe)
    return call


class Flow:
    """What passes through one pipe, piece by piece, and when."""

    __slots__ = ("call", "end_ns", "handed", "name", "open", "pieces", "stream", "times", "told", "unwritten")

    def __init__(self, call: ProcessCall, name: str) -> None:
        self.call = call
        self.name = name  # stdin, stdout, stderr
        self.pieces: list[bytes] = []
        self.times: list[int] = []
        self.open = True
        self.handed = False  # the number of its descriptor, to the agent's own code
        self.end_ns: int | None = None  # when its end was read
        self.unwritten: int | None = None  # bytes that nobody took any more
        played = call.played
        self.stream: Stream | None = None if played is None else played.streams.get(name)  # what says it in a replay
        self.told: Told | None = None if played is None or name != "stdin" else played.stdin  # what hears it

    def took(self, data: bytes, at: int | None = None) -> None:
        """Take in a piece, as it was read or written; `at` is when, if not now."""
        call = self.call
        if self.told is not None:
            self.told.wrote(data)
        call.size = size = call.size + len(data)
        if size > call.room:  # there is none left when its end is recorded
            data = data[: max(0, len(data) - (size - call.room))]
            if not data:
                return
        self.pieces.append(data)
        self.times.append(_now() if at is None else at)

    def ended(self, *, seen: bool = False) -> None:
        """Take in that nothing comes any more, as was seen, or that the agent will not read it."""
        if seen and self.end_ns is None:
            self.end_ns = _now()
        if self.open:
            self.open = False
            self.call.settle()
            if self.told is not None and not self.call.talking:
                self.told.closed()

    def refused(self, count: int) -> None:
        """Take in that so many bytes could not be written, since nobody reads them any more."""
        self.unwritten = count


class ProcessCall:
    """One process, from before its start to its end."""

    __slots__ = (
        "__weakref__", "_code", "_inherits", "_known", "_left", "_pid", "_printed", "_program", "_scope", "_span",
        "_start", "_tool", "done", "exit_ns", "flows", "inherited", "played", "polls", "room", "signals", "size",
        "talking", "timeouts", "unseen", "wait_status",
    )  # fmt: skip

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._span: str | None = None
        self._start = time.monotonic_ns()
        self._program = ""
        self._pid: int | None = None
        self._code: int | None = None
        self._known = self._left = False  # its exit; whether nobody can ask for it any more
        self.done = False  # its end is recorded
        self.exit_ns: int | None = None
        self.flows: dict[str, Flow] = {}
        self.size = 0  # of all that passed, kept or not
        self.room = _limits.PROCESS_BYTES_MAX
        self.polls = 0
        self.timeouts: list[dict[str, float]] = []
        self.signals: list[dict[str, int]] = []
        self.wait_status: int | None = None
        self.talking = False  # inside `communicate`, which tells at its end what it read
        self.played: Played | None = None  # what answers in a replay, in place of a process
        self.unseen: set[str] = set()  # streams that go through pipes or terminals of the agent's own making
        self.inherited: list[int] = []  # our own descriptors that it gets for its outputs
        self._inherits: Inherited | None = None
        self._printed: dict[str, list[list[int]]] | None = None
        self._tool = printing.here.get()  # that prints this process's output as its own

    @property
    def span(self) -> str | None:
        """Return the span of the call."""
        return self._span

    @property
    def program(self) -> str:
        """Return the first word of what was asked for."""
        return self._program

    @property
    def recording(self) -> Recording:
        """Return the run that it is recorded in."""
        return self._scope.recording

    # What happens to it.

    def open(self, describe: Callable[[ProcessCall], dict[str, Any]]) -> None:
        """Record that it is about to be started."""
        recording = self._scope.recording
        try:
            fields = describe(self)
            if env := fields.get("env"):
                recording.redactor.learn({name: value for name, value in env.items() if value is not None})
            self._program = next(iter(fields["argv"]), "")
            parent = self._scope.span
            self._span = recording.emit_fields(
                _KIND, fields, parent=parent, opens=True, keyed=ASKED[_KIND], on_written=self._begin
            )
        except Exception as problem:
            guard.absorb(problem, recording, "the start of a process", inside=True)
        recording.exchanges[id(self)] = weakref.ref(self)
        if (player := answering.player) is not None:
            from playhead.capture.processes.played import play  # here: a program that is recorded does not need it

            try:
                self.played = play(player, self._span)
            except BaseException as error:  # nothing on the tape answers it
                self.failed(error)
                raise
        self._share()

    def _begin(self, at_us: int) -> None:
        """Count from its first event: what a replay puts in order with the rest."""
        self._start = at_us * 1000

    def _share(self) -> None:
        """Take in which outputs of the program it gets."""
        try:
            self._inherits = inherit(self.inherited)
            if self._inherits is not None and self.played is not None:
                self._inherits.expect(self.played.printed, self.played.player.printed)
        except Exception as problem:
            guard.absorb(problem, self._scope.recording, "the outputs of a process", inside=True)

    def _tell_printed(self) -> None:
        """Take in what it wrote to outputs of the program."""
        if self._inherits is None or abandoned.collecting():
            return
        try:
            self._printed = self._inherits.ended()
        except Exception as problem:
            guard.absorb(problem, self._scope.recording, "the outputs of a process", inside=True)
        if self._tool is not None:
            for name, parts in (self._printed or {}).items():
                self._tool.add_parts(name, parts)

    async def wait_for(self, at_us: int) -> None:
        """Return when it is the turn of something that was recorded at this time."""
        assert self.played is not None, "it is replayed"
        await self.played.player.wait_async(at_us)

    def flow(self, name: str) -> Flow:
        """Return what notes the traffic of one of its pipes from now on."""
        self.unseen.discard(name)
        found = self.flows[name] = Flow(self, name)
        return found

    def started(self, pid: int | None) -> None:
        """Take in that it runs."""
        self._pid = pid

    def failed(self, error: BaseException) -> None:
        """Record that it could not be started."""
        self._end(error)

    def asked(self, waited: float | None = None) -> None:
        """Take in that somebody asked whether it has ended, and it has not; `waited` says for how many seconds."""
        if waited is not None and len(self.timeouts) < _limits.PROCESS_TIMEOUTS_MAX:
            at = self._since(time.monotonic_ns())
            self.timeouts.append({"ask": self.polls, "at_us": at, "seconds": waited})
        self.polls += 1

    def signalled(self, number: int) -> None:
        """Take in that the agent sent it a signal."""
        self.signals.append({"signal": int(number), "at_us": self._since(time.monotonic_ns())})

    def exited(self, code: int | None) -> None:
        """Take in how it ended, as soon as the agent can know."""
        if not self._known:
            self._known = True
            self.exit_ns = time.monotonic_ns()
            self._code = None if code == sys.maxsize else code  # what subprocess says where it cannot know
            self._tell_printed()
            self.settle()

    def left(self) -> None:
        """Take in that nobody holds the process any more."""
        self._left = True
        self.settle()

    def settle(self) -> None:
        """Record the end where nothing more can come."""
        if not self.done and (self._known or self._left) and not self.talking and not self._reading():
            self._end(None)

    def run_ends(self) -> None:
        """Record what has come so far, since nothing can be recorded later."""
        self._end(None)

    def _reading(self) -> bool:
        return any(flow.open for name, flow in list(self.flows.items()) if name != "stdin")

    def _end(self, error: BaseException | None) -> None:
        if abandoned.collecting():
            abandoned.leave(functools.partial(self._end, error))
            return
        recording = self._scope.recording
        # Taken out in one step: of several threads that end it, one goes on. In a forked child it is not there.
        self.done, self.room = True, 0
        if recording.exchanges.pop(id(self), None) is None:
            return
        if self._inherits is not None:
            self._inherits.leave()
        token = current.set(self._scope)
        try:
            self._close(error)
        except Exception as problem:
            guard.absorb(problem, recording, "the end of a process", inside=True)
        finally:
            current.reset(token)
            for flow in self.flows.values():
                flow.pieces, flow.times = [], []  # a pipe that outlives the process does not hold on to what it said

    def _close(self, error: BaseException | None) -> None:
        recording = self._scope.recording
        counts: dict[str, int] = {}
        exited = kinds.ProcessExited(status="ok", exit_code=self._code, pid=self._pid, polls=self.polls or None)
        exited.exit_us = None if self.exit_ns is None else self._since(self.exit_ns)
        exited.signals, exited.timeouts, exited.wait_status = self.signals, self.timeouts, self.wait_status
        exited.printed = self._printed
        members = [member for flow in self.flows.values() if (member := self._keep(flow, exited, counts)) is not None]
        if error is not None:
            exited.status, exited.error = outcome(error), describe_error(error)
        elif not self._known or self._reading():
            exited.status, exited.error = "cancelled", dict(_LEFT if self._left else _RUN_ENDED)
        elif self._code:
            exited.status = "error"
        recording.count_redacted(counts)
        if error is None:
            self._name_gaps()
        if self._span is None:
            recording.lose("unopened_span")
        else:
            fields, parent = kinds.as_fields(exited), self._scope.span
            recording.emit_fields("process.exited", fields, span=self._span, parent=parent, spliced=kept.aside(members))

    def _keep(self, flow: Flow, exited: kinds.ProcessExited, counts: dict[str, int]) -> bytes | None:
        """Fill in what passed through a pipe; where it is long, return the member of the event that tells of it."""
        if flow.name == "stdin":
            exited.unwritten = flow.unwritten
        if not flow.pieces:
            if flow.name != "stdin":
                setattr(exited, flow.name, "")
            return None
        raw, pieces = kept.clean(self._scope.recording, flow.pieces, counts)
        exited.chunks[flow.name] = kept.told(pieces, flow.times, self._start, flow.end_ns)
        value, member = kept.content(self._scope.recording, flow.name, raw)
        setattr(exited, flow.name, value)
        return member

    def _name_gaps(self) -> None:
        recording = self._scope.recording
        if self.size > _limits.PROCESS_BYTES_MAX:
            recording.lose("process_output_too_large")
        outputs = [flow for flow in self.flows.values() if flow.name != "stdin"]
        for name in sorted(self.unseen.union(flow.name for flow in outputs if flow.handed and not flow.pieces)):
            recording.not_captured("process", f"{name} of {self._program}, by its descriptor")

    def _since(self, at: int) -> int:
        return max(0, at - self._start) // 1000
