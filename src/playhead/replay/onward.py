"""Answer a program from the tape as far as that is to go, and let it go on from there: asked live, in part or whole."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from playhead._clock import parse_utc
from playhead.capture import hooks, scope
from playhead.capture.hooks import What
from playhead.errors import DeviationError, InFlight
from playhead.event.kinds import CALLS, CLOSING
from playhead.replay.ahead import Ahead
from playhead.replay.course import LIVE, Course
from playhead.replay.edited import NOTHING, Edited
from playhead.replay.models.asking import Question
from playhead.replay.overlay import NotTheSame, Overlay
from playhead.replay.player import Player
from playhead.replay.tape import Call, Tape
from playhead.replay.values import value_of
from playhead.replay.where import agents_line, at_line

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

# Clocks that only ever go on: where the tape ends they do so from what they said last.
_STEADY = {
    "time.monotonic": time.monotonic_ns,
    "time.monotonic_ns": time.monotonic_ns,
    "time.perf_counter": time.perf_counter_ns,
    "time.perf_counter_ns": time.perf_counter_ns,
}


class OnwardPlayer(Player):
    """What answers while a program leaves its tape: at some event, or with other answers than were recorded."""

    def __init__(
        self, tape: Tape, course: Course, *, whole: Tape | None = None, other: Tape | None = None, **options: Any
    ) -> None:
        """Take the tape as far as it counts; `whole` goes on after that, for what is not asked of the world then.

        `other` is that of another run, with answers to what this one was never asked.
        """
        super().__init__(tape, **options)
        self.course = course
        self.asks_world = course.needs_network
        self.asks_models = bool(course.models)
        self.live = 0  # calls that the world has answered
        self.borrowed: list[int] = []  # answers of the other run, by its events, to what this one was not asked
        self.notes: list[str] = []
        self.ruled: list[dict[str, Any]] = []  # calls that were not on the tape, and what was done about each
        self._beyond, self._other = whole or tape, other
        self._ahead = Ahead(tape.reader, min(course.cut, tape.head[0]))
        self._bodies: dict[str, str] = {}  # by span: the lanes of tools that run, for as long as they do
        self._under_way: set[str] = set()  # spans of calls that are live
        self._steps: dict[str, int] = {}  # by name: how many have begun
        self._stopping: set[str] = set()  # the span of the step that the program is run for
        self._offsets: dict[str, int] = {}  # of clocks that only ever go on
        if course.live:
            self.order.is_live = self._goes_on
        if whole is not None:
            for call in whole.calls:
                call.taken = call.seq <= course.cut

    def begin(self) -> None:
        """Answer from now on."""
        super().begin()
        hooks.answer_with(self._read)

    # Who is past the tape.

    def _goes_on(self) -> bool:
        """Say whether something may happen in the world that no turn knows of."""
        return bool(self._under_way) or (self.course.in_world and self._ahead.has_left())

    def is_in_world(self, lane: str | None = None) -> bool:
        """Say whether a lane is past the tape, or inside of a call that is live."""
        if not self.asks_world:
            return False
        lane = scope.lane_path() if lane is None else lane
        return (self.course.in_world and self._ahead.is_over(lane)) or self._is_inside(lane)

    def _is_inside(self, lane: str) -> bool:
        """Say whether a lane is inside of a tool that runs."""
        return any(lane == body or lane.startswith(f"{body}.") for body in list(self._bodies.values()))

    def lets_out(self) -> bool:
        """Say whether somebody may use the network now."""
        return self.asks_world and (self._goes_on() or self.is_in_world())

    # Calls.

    def ready(self, lane: str, asked: bytes) -> Call | None:
        """Wait until a question is recorded: only then is it known how far the program has come."""
        return None

    def asked(
        self, recording: Recording, kind: str, span: str, lane: str, key: str | None, data: Mapping[str, Any]
    ) -> None:
        """Take in what was recorded; find the answer to a call on the tape, or have it asked."""
        seq = self._ahead.passed(lane, kind, span, data)
        if kind in CLOSING:
            self._bodies.pop(span, None)
            self._under_way.discard(span)
        is_call = kind in CALLS and not data.get("inferred") and not data.get("from_server")
        if kind == "model.invoked" and "operation" not in data:
            is_call = False  # made by hand: what it sends is the question
        if key is None or not is_call or not (self._ahead.is_over(lane) or self._is_inside(lane)):
            super().asked(recording, kind, span, lane, key, data)
        else:
            self._go_on(recording, kind, span, lane, self.matching.key(recording, kind, span, key), data)
        if kind == "step.finished" and span in self._stopping:
            self._stop()
        if kind == "step.started" and self.course.stop is not None and not data.get("inferred"):
            self._count_step(span, str(data.get("name")))
        if seq is not None:
            self.reached(seq, kind, lane)
            if self.course.in_world and self._ahead.is_all_over() and self.overlay is not None:
                self._leave(self.overlay)

    def _count_step(self, span: str, name: str) -> None:
        with self._lock:
            self._steps[name] = self._steps.get(name, 0) + 1
            if (name, self._steps[name]) == self.course.stop:
                self._stopping.add(span)

    def _stop(self) -> None:
        """End the program: what it was run for is over."""
        process = scope.ambient()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        if process is not None and process.leaving is not None:
            process.leaving()
        os._exit(0)

    def _leave(self, overlay: Overlay) -> None:
        """Let what is open in the scratch folder be open in the world: the whole program is past the tape."""
        try:
            self.notes += overlay.hand_over(self._ended_us())
        except NotTheSame as database:
            text = f"the database {database} is open, and is not what it was for the program: it cannot go on with it"
            found = {"type": "database", "text": text}
            self.differs(None, found)
            raise DeviationError(text, deviation=found) from None

    def _ended_us(self) -> int | None:
        """Return when a run ended that goes on here; None for a trial, which has no right to its files."""
        return parse_utc(self.tape.reader.event(self.tape.head[0]).time) if self.course.may_undo else None

    def reached(self, seq: int, kind: str, lane: str) -> None:
        """Take in that the program has come to an event of the tape."""

    def _go_on(self, recording: Recording, kind: str, span: str, lane: str, key: str, data: Mapping[str, Any]) -> None:
        """Answer a call that comes after the cut."""
        self.places.keep(int(span))
        with self._lock:
            self._asked[key] = self._asked.get(key, 0) + 1
            call = self.tape.take(lane, key)
        if call is not None and call.closing is None:
            self._unanswered(recording, call, span)
        elif self._is_live(kind, lane, by_hand=_is_by_hand(recording)):
            self._ask(recording, kind, span, lane, call or self._next_on_tape(lane, kind), data)
        elif (found := call or self._beyond.take(lane, key)) is not None and found.closing is not None:
            self._pending[span] = found
            self.answered += 1
        elif self.course.unknown == "live" and kind != "model.invoked":
            self._rule("live", kind, span, lane, data)
            self._ask(recording, kind, span, lane, None, data)
        else:
            self._rule(self.course.unknown, kind, span, lane, data)
            before, self.on_deviation = self.on_deviation, {"nearest": "nearest"}.get(self.course.unknown, "raise")
            self._deviate(recording, kind, span, lane, key)
            self.on_deviation = before

    def _is_live(self, kind: str, lane: str, *, by_hand: bool = False) -> bool:
        sort = "model" if kind == "model.invoked" or by_hand else "tool"
        return sort in LIVE[self.course.live] or (sort == "tool" and self._is_inside(lane))

    def _next_on_tape(self, lane: str, kind: str) -> Call | None:
        """Return what was asked then where something of the same kind is asked now, and count it as asked."""
        with self._lock:
            for call in self._beyond.calls:
                if call.lane == lane and call.kind == kind and not call.taken:
                    call.taken = True
                    return call
        return None

    def _rule(self, rule: str, kind: str, span: str, lane: str, data: Mapping[str, Any]) -> None:
        told = {"rule": rule, "kind": kind, "name": _named(kind, data), "at": int(span), "lane": lane}
        self.ruled.append(told)

    def _ask(
        self, recording: Recording, kind: str, span: str, lane: str, then: Call | None, data: Mapping[str, Any]
    ) -> None:
        """Have a call answered by the world."""
        if not self.course.may_undo and "irreversible" in (data.get("effects") or ()):
            self._refuse(
                recording,
                {"type": "irreversible", "at": int(span), "lane": lane, "kind": kind},
                f"{_named(kind, data)} is declared irreversible, and is never run in a replay",
                span,
            )
            return
        with self._lock:
            self.live += 1
        if self.course.models and (kind == "model.invoked" or _is_by_hand(recording)):
            self._pending[span] = Question(self, self.course.models, span, then)  # type: ignore[assignment]
            return
        self._under_way.add(span)
        if kind == "tool.called" or data.get("server") == "in-process":
            self._bodies[span] = lane

    def _refuse(self, recording: Recording, found: dict[str, Any], text: str, span: str) -> None:
        where = agents_line(sys._getframe(1))
        found = {**found, "text": text + at_line(where), "where": where}
        self.differs(recording, found)
        self._pending[span] = DeviationError(found["text"], deviation=found)

    def _deviate(self, recording: Recording, kind: str, span: str, lane: str, key: str) -> None:
        """Look on the tape of the other run, where there is one; else it is a deviation."""
        found = None if self._other is None else self._other.take(lane, key)
        if found is None or found.closing is None:
            super()._deviate(recording, kind, span, lane, key)
            return
        self.answered += 1
        self.borrowed.append(found.closing)
        self._pending[span] = Edited(found, found.data)  # type: ignore[assignment]

    def _unanswered(self, recording: Recording, call: Call, span: str) -> None:
        """Decide about a call that was under way when the tape ended."""
        rule = self.course.in_flight.get(str(call.seq))
        data = call.question.data
        if rule is None and not self._is_live(call.kind, call.lane):
            beyond = next((one for one in self._beyond.calls if one.seq == call.seq and one.closing is not None), None)
            if beyond is None:
                super()._unanswered(recording, call, span)
            else:
                self._pending[span] = beyond
        elif rule == "skip":
            self._rule("skip", call.kind, span, call.lane, data)
            given = {**NOTHING[call.kind], **self.course.edits.get(str(call.seq), {})}
            self._pending[span] = Edited(call, given)  # type: ignore[assignment]
        elif rule == "fail":
            self._rule("fail", call.kind, span, call.lane, data)
            named = f"{_named(call.kind, data)} (event {call.seq} of {self.tape.run})"
            self._pending[span] = InFlight(
                f"{named} was under way when the run ended: it may or may not have been done"
            )
        else:
            if rule is not None:
                self._rule(rule, call.kind, span, call.lane, data)
            self._ask(recording, call.kind, span, call.lane, call, data)

    def answer(self, span: str | None) -> Any:
        """Hand out the answer to a call, once: the recorded one, or what is given in its place."""
        found: Any = super().answer(span)
        if not isinstance(found, Call) or found.closing is None:
            return found
        seq = str(found.closing)
        if seq in self.course.edits:
            return Edited(found, self.course.edits[seq])
        if seq in self.course.swaps and self._other is not None:
            return Edited(found, self._other.reader.data(self.course.swaps[seq]))
        return found

    def told_besides(self) -> dict[str, Any]:
        """Return what was asked of the world."""
        told = {"live": self.live, "ruled": self.ruled, "borrowed": self.borrowed, "notes": self.notes}
        return {name: value for name, value in told.items() if value}

    # Reads.

    def _read(
        self, of: str, by: str, pack: Any, what: int, owner: Any, args: tuple[Any, ...], named: dict[str, Any] | None
    ) -> Any:
        """Answer a read from the tape; past it, clocks that only go on do so, and everything else is the world's."""
        if not self.is_in_world(pack.lane):
            return self.served.answer(of, by, pack, what, owner, args, named)
        steady = _STEADY.get(of.rpartition(":")[2])
        if steady is None or what not in (What.SECONDS, What.NANOSECONDS):
            return NotImplemented
        source = steady.__name__
        if source not in self._offsets:
            last = self.served.told_last(source.removesuffix("_ns"))
            self._offsets[source] = 0 if last is None else last - steady()
        return value_of(what, steady() + self._offsets[source], owner, args, named)

    def variable(self, of: str, by: str, lane: str, name: str) -> tuple[bool, Any]:
        """Say what a module was told of a variable; what was redacted is what it is here."""
        if self.is_in_world(lane):
            return False, None
        known, value = super().variable(of, by, lane, name)
        hidden = known and self.course.live and isinstance(value, str) and value.startswith("[redacted:")
        return (False, None) if hidden else (known, value)

    def file(self, of: str, by: str, lane: str, path: str, *, sure: bool = True) -> dict[str, Any] | None:
        """Say what a file was when the agent opened it."""
        return None if self.is_in_world(lane) else super().file(of, by, lane, path, sure=sure)

    def handed(self, of: str, by: str, lane: str) -> bool | None:
        """Return when it is the turn of a thread to put or get something; at once, past the tape."""
        return None if self.is_in_world(lane) else super().handed(of, by, lane)

    def note_drift(self, source: str, where: str) -> None:
        """Count something that was answered from elsewhere; past the tape, everything is."""
        if not self.is_in_world():
            super().note_drift(source, where)


def _is_by_hand(recording: Recording) -> bool:
    """Say whether this is inside of a call to a model that the agent tells of by itself."""
    here = scope.current.get()
    return here is not None and here.span in recording.turns_so_far.by_hand


def _named(kind: str, data: Mapping[str, Any]) -> str:
    """Return what people call a call."""
    if kind == "tool.called":
        return f"the tool {data.get('name')}"
    if kind == "process.started":
        return f"the process {' '.join(map(str, data.get('argv') or ()))}"
    if kind == "http.sent":
        return f"{data.get('method')} {data.get('url')}"
    if kind == "mcp.requested":
        return f"the MCP request {data.get('method')}"
    return "the question to a model"
