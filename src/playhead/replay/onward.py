"""Answer a program from the tape as far as that is to go, and let it go on from there: asked live, in part or whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from playhead.capture import answering, hooks, scope
from playhead.errors import DeviationError, InFlight
from playhead.event.kinds import CALLS, CLOSING
from playhead.replay.ahead import Ahead
from playhead.replay.bodies import Bodies, Unrun
from playhead.replay.course import LIVE, Course, known_by, named
from playhead.replay.edited import NOTHING, Edited
from playhead.replay.ending import flush_all
from playhead.replay.models.asking import Question
from playhead.replay.overlay import CannotLeave, Overlay
from playhead.replay.past import PastPlayer
from playhead.replay.tape import Call, Tape
from playhead.replay.where import agents_line, at_line

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

_REFUSED = b'"type":"playhead.errors.DeviationError"'


class OnwardPlayer(PastPlayer):
    """What answers while a program leaves its tape: at some event, or with other answers than were recorded."""

    def __init__(
        self, tape: Tape, course: Course, *, whole: Tape | None = None, other: Tape | None = None, **options: Any
    ) -> None:
        """Take the tape as far as it counts; `whole` goes on after that, for what is not asked of the world then.

        `other` is that of another run, with answers to what this one was never asked.
        """
        super().__init__(tape, course, **options)
        self.asks_world = course.needs_network
        self.asks_models = bool(course.models)
        self.live = 0  # calls that the world has answered
        self.live_spans: list[str] = []
        self._entered = course.alone is None  # else: once the step has begun for which its module was loaded
        self.borrowed: list[int] = []  # answers of the other run, by its events, to what this one was not asked
        self.notes: list[str] = []
        self.ruled: list[dict[str, Any]] = []  # calls that were not on the tape, and what was done about each
        self._beyond, self._other = whole or tape, other
        self._ahead = Ahead(tape.reader, min(course.cut, tape.head[0]), course.unanswered)
        self._bodies, self._unrun = Bodies(), Unrun()
        self._under_way: dict[str, str] = {}  # by span: the lanes of calls that are live
        self._never = set(course.never_again)  # calls that must not be made again
        self._told_left: bool | None = None  # whether the record says that it is past the tape: all of it, or in part
        self._restored = False
        self._steps: dict[str, int] = {}  # by name: how many have begun
        self._stopping: set[str] = set()  # the span of the step that the program is run for
        if course.live:
            self.order.is_live = self._goes_on
        if whole is not None:
            for call in whole.calls:
                call.taken = call.seq <= course.cut
        for call in tape.calls:
            if call.seq == course.unanswered:
                call.closing = None

    def begin(self) -> None:
        """Answer from now on."""
        super().begin()
        hooks.answer_with(self.read)
        if self.course.in_world and self._ahead.is_all_over():
            self._restore()

    # Who is past the tape.

    def _goes_on(self) -> bool:
        """Say whether something may happen in the world that no turn knows of."""
        return bool(self._under_way) or (self.course.in_world and self._ahead.has_left(self.lookup.ended))

    def is_in_world(self, lane: str | None = None) -> bool:
        """Say whether a lane is past the tape, or inside of a call that is live."""
        if not (self.asks_world and self._entered):
            return False
        lane = scope.lane_path() if lane is None else lane
        return self._is_out(lane) or self._bodies.are_here()

    def _is_out(self, lane: str) -> bool:
        """Say whether a lane goes on in the world: not one that came to its end on the tape, or began others on it."""
        if not self.course.in_world or lane in self.lookup.ended:
            return False
        return self._ahead.is_over(lane) and not self._ahead.has_below(lane)

    def lets_out(self) -> bool:
        """Say whether what runs here may use the network now: what is past the tape, or a call that is live."""
        if not self.asks_world:
            return False
        lane = scope.lane_path()
        asked = list(self._under_way.values())
        if self.is_in_world(lane) or (not lane and (asked or self._goes_on())):
            return True
        return any(lane == one or lane.startswith(f"{one}.") for one in asked)

    # Calls.

    def ready(self, lane: str, asked: bytes) -> Call | None:
        """Wait until a question is recorded: only then is it known how far the program has come."""
        return None

    def asked(
        self, recording: Recording, kind: str, span: str, lane: str, key: str | None, data: Mapping[str, Any]
    ) -> None:
        """Take in what was recorded; find the answer to a call on the tape, or have it asked."""
        seq = self._ahead.passed(lane, kind, span, self._recorded_key(recording, kind, span, key), data)
        self._bodies.passed(kind, span)
        if kind in CLOSING:
            self._under_way.pop(span, None)
        is_call = kind in CALLS and not data.get("inferred") and not data.get("from_server")
        if kind == "model.invoked" and "operation" not in data:
            is_call = False  # made by hand: what it sends is the question
        past = self._entered and (self._ahead.is_over(lane) or self._bodies.are_here())
        if seq is None and self.course.in_world and lane not in self.lookup.ended and self._ahead.is_over(lane):
            self._wait_for_others(lane)
        if key is None or not is_call or not past:
            super().asked(recording, kind, span, lane, key, data)
        else:
            self._go_on(recording, kind, span, lane, self.matching.key(recording, kind, span, key), data)
        if kind == "step.finished" and span in self._stopping:
            self._stop()
        if kind == "step.started" and self.course.stop is not None and not data.get("inferred"):
            self._count_step(span, str(data.get("name")))
        if seq is not None:
            self.reached(seq, kind, lane)
            if self._is_out(lane):
                self._go_out(lane)
        if (seq is None or kind == "effect.observed") and self._is_out(lane):
            self._tell_left(recording)
        if seq is not None and self.course.in_world and self._ahead.is_all_over() and self.overlay is not None:
            self._leave(self.overlay)

    def _count_step(self, span: str, name: str) -> None:
        with self._lock:
            self._steps[name] = self._steps.get(name, 0) + 1
            if (name, self._steps[name]) == self.course.stop:
                self._stopping.add(span)

    def _stop(self) -> None:
        """End the program: what it was run for is over."""
        process = scope.ambient()
        flush_all()
        if process is not None and process.leaving is not None:
            process.leaving()
        os._exit(0)

    def entered(self) -> None:
        """Take in that the module is loaded whose step is to be run."""
        self._entered = True

    def _go_out(self, lane: str) -> None:
        """Let a lane go into the world: a thread after those that are still told by the tape what they did."""
        self._wait_for_others(lane)
        self._restore()

    def _wait_for_others(self, lane: str) -> None:
        if not self._ahead.is_all_over() and not self._bodies.are_here() and not scope.is_in_loop():
            self.order.wait(answering.LAST_US - 1, "leaves", lane)

    def _tell_left(self, recording: Recording) -> None:
        """Have it on record that something is done from here on: whoever cuts the program off now cuts off this run."""
        whole = self._ahead.is_all_over()
        if self.course.in_world and self._told_left is not True and self._told_left is not whole:
            self._told_left = whole
            told = {"text": "past the tape", "data": {"left_tape": self.course.cut, "whole": whole}}
            recording.emit_fields("note.added", told, parent="0")

    def _restore(self) -> None:
        """Have files as they were before the program was about to write them: it does so again, in the world."""
        if self._restored or not self.course.restored:
            return
        self._restored = True
        for path, size in self.course.restored:
            try:
                if size is None:
                    os.unlink(path)
                else:
                    os.truncate(path, size)
            except OSError as problem:
                self.notes.append(f"{path} is not as it was before its last write: {problem.strerror}")
            else:
                self.notes.append(f"{path} is as it was before its last write, which is done again")

    def _leave(self, overlay: Overlay) -> None:
        """Let what is open in the scratch folder be open in the world: the whole program is past the tape."""
        try:
            self.notes += overlay.hand_over(self._ended_us(), self._is_own_alone)
        except CannotLeave as problem:
            found = {"type": "open", "text": str(problem)}
            self.differs(None, found)
            raise DeviationError(str(problem), deviation=found) from None

    def _is_own_alone(self, path: str, adds: bool) -> bool:
        return not self._unrun.may_have_written(self.folders.asked(path), adds=adds)

    def wrote(self, path: str, *, after: int | None) -> None:
        """Take in that the program writes a file itself."""
        super().wrote(path, after=after)
        asked = self.folders.asked(path)
        if after and self.course.in_world and self.overlay is not None and not self._unrun.knows(asked):
            self.overlay.cut(path, self.tape.size_before(asked))
        self._unrun.opened(asked)

    def _ended_us(self) -> int | None:
        """Return when a run ended that goes on here; None for a trial, which has no right to its files."""
        return self.course.until_us if self.course.may_undo else None

    def _recorded_key(self, recording: Recording, kind: str, span: str, key: str | None) -> str | None:
        """Return by what a question is known on the tape, once it is normalised."""
        return key if key is None or kind not in CALLS or self.matching.is_plain else None

    def expect(self, lane: str, is_over: Callable[[], bool]) -> None:
        """Leave a lane to the process that it is in."""
        self._ahead.forget(lane)
        super().expect(lane, is_over)

    def _after_fork(self) -> None:
        super()._after_fork()
        self.live, self.live_spans, self.ruled, self.notes, self.borrowed = 0, [], [], [], []
        self._ahead.keep_only(scope.lane_path())

    def reached(self, seq: int, kind: str, lane: str) -> None:
        """Take in that the program has come to an event of the tape."""

    def _go_on(self, recording: Recording, kind: str, span: str, lane: str, key: str, data: Mapping[str, Any]) -> None:
        """Answer a call that comes after the cut."""
        self.places.keep(int(span))
        with self._lock:
            self._asked[key] = self._asked.get(key, 0) + 1
            call = self.tape.take(lane, key)
            if call is not None and call.lane != lane and not self._ahead.is_over(call.lane):
                call.taken = False  # somebody else will ask it
                call = None
        if call is not None and self._was_refused(call):
            call = None
        if call is not None and call.closing is None:
            self._unanswered(recording, call, span)
        elif call is not None and call.closing is not None and call.closing <= self.course.cut:
            self._pending[span] = call  # asked in another place than then, and answered by then
            self.answered += 1
        elif known_by(kind, key, data) in self._never:
            told = {"type": "irreversible", "at": int(span), "lane": lane, "kind": kind}
            self._refuse(recording, told, f"{named(kind, data)} was under way, is irreversible, and is not tried", span)
        elif self._is_live(kind, lane, by_hand=_is_by_hand(recording)):
            self._ask(recording, kind, span, lane, call or self._next_on_tape(lane, kind), data)
        elif (found := call or self._take_beyond(lane, key)) is not None and found.closing is not None:
            self._pending[span] = found
            self.answered += 1
        elif self.course.unknown == "live" and kind != "model.invoked":
            self._ask(recording, kind, span, lane, None, data, rule="live")
        else:
            self._rule(self.course.unknown, kind, span, lane, data)
            self._deviate(recording, kind, span, lane, key, nearest=self.course.unknown == "nearest")
            self.answered += isinstance(self._pending.get(span), Call)

    def _take_beyond(self, lane: str, key: str) -> Call | None:
        found = None if self._beyond is self.tape else self._beyond.take(lane, key)
        return None if found is None or self._was_refused(found) else found

    def _was_refused(self, call: Call) -> bool:
        """Say whether a call was answered by nobody: the run is itself one in which it was refused."""
        return call.closing is not None and _REFUSED in self.tape.reader.line(call.closing)

    def _is_live(self, kind: str, lane: str, *, by_hand: bool = False) -> bool:
        sort = "model" if kind == "model.invoked" or by_hand else "tool"
        return sort in LIVE[self.course.live] or (sort == "tool" and self._bodies.are_here())

    def _next_on_tape(self, lane: str, kind: str) -> Call | None:
        """Return what was asked then where something of the same kind is asked now, and count it as asked."""
        with self._lock:
            for call in self._beyond.calls:
                if call.lane == lane and call.kind == kind and not call.taken:
                    call.taken = True
                    return call
        return None

    def _rule(
        self, rule: str, kind: str, span: str, lane: str, data: Mapping[str, Any], then: Call | None = None
    ) -> None:
        """Keep what was done about a call; `then` is the one on the tape that was under way."""
        told = {"rule": rule, "kind": kind, "name": named(kind, data), "at": int(span), "lane": lane}
        self.ruled.append({**told, "seq": None if then is None else then.seq})

    def _ask(
        self,
        recording: Recording,
        kind: str,
        span: str,
        lane: str,
        then: Call | None,
        data: Mapping[str, Any],
        rule: str | None = None,
    ) -> None:
        """Have a call answered by the world; `rule` says by which it is, where it is not on the tape."""
        if not self.course.may_undo and "irreversible" in (data.get("effects") or ()):
            self._refuse(
                recording,
                {"type": "irreversible", "at": int(span), "lane": lane, "kind": kind},
                f"{named(kind, data)} is declared irreversible, and is never run in a replay",
                span,
            )
            return
        if rule is not None:
            self._rule(rule, kind, span, lane, data)
        self._tell_left(recording)
        with self._lock:
            self.live += 1
            self.live_spans.append(span)
        if self.course.models and (kind == "model.invoked" or _is_by_hand(recording)):
            self._pending[span] = Question(self, self.course.models, span, then)  # type: ignore[assignment]
            return
        self._under_way[span] = lane
        if kind == "tool.called" or data.get("server") == "in-process":
            self._bodies.run(span)

    def _refuse(self, recording: Recording, found: dict[str, Any], text: str, span: str) -> None:
        where = agents_line(sys._getframe(1))
        found = {**found, "text": text + at_line(where), "where": where}
        self.differs(recording, found)
        self._pending[span] = DeviationError(found["text"], deviation=found)

    def _deviate(
        self, recording: Recording, kind: str, span: str, lane: str, key: str, *, nearest: bool | None = None
    ) -> None:
        """Look on the tape of the other run, where there is one; else it is a deviation."""
        found = None if self._other is None else self._other.take(lane, key)
        if found is None or found.closing is None:
            super()._deviate(recording, kind, span, lane, key, nearest=nearest)
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
            self._rule("skip", call.kind, span, call.lane, data, call)
            given = {**NOTHING[call.kind], **self.course.edits.get(str(call.seq), {})}
            self._pending[span] = Edited(call, given)  # type: ignore[assignment]
        elif rule == "fail":
            self._rule("fail", call.kind, span, call.lane, data, call)
            self._never.update(self.course.never.get(str(call.seq), ()))
            what = f"{named(call.kind, data)} (event {call.seq} of {self.tape.run})"
            self._pending[span] = InFlight(f"{what} was under way when the run ended: it may or may not have been done")
        else:
            if rule is not None:
                self._rule(rule, call.kind, span, call.lane, data, call)
            self._ask(recording, call.kind, span, call.lane, call, data)

    def answer(self, span: str | None) -> Any:
        """Hand out the answer to a call, once: the recorded one, or what is given in its place."""
        found: Any = super().answer(span)
        if not isinstance(found, Call) or found.closing is None:
            return found
        self._unrun.answered(found)
        seq = str(found.closing)
        if seq in self.course.edits:
            return Edited(found, self.course.edits[seq])
        if seq in self.course.swaps and self._other is not None:
            return Edited(found, self._other.reader.data(self.course.swaps[seq]))
        return found

    def told_besides(self) -> dict[str, Any]:
        """Return what was asked of the world."""
        told = {"live": self.live, "ruled": self.ruled, "borrowed": self.borrowed, "notes": self.notes}
        told["live_spans"] = self.live_spans
        return {name: value for name, value in told.items() if value}


def _is_by_hand(recording: Recording) -> bool:
    """Say whether this is inside of a call to a model that the agent tells of by itself."""
    here = scope.current.get()
    return here is not None and here.span in recording.turns_so_far.by_hand
