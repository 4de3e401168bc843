"""Answer a program from the tape, in place of the world."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from playhead import _limits, settings
from playhead.capture import answering, guard, hooks, scope
from playhead.capture.processes import instead
from playhead.errors import DeviationError
from playhead.event.kinds import CALLS
from playhead.event.normalise import Normalisers
from playhead.event.plain import restore
from playhead.replay.folders import folders
from playhead.replay.lookup import Lookup
from playhead.replay.matching import Matching
from playhead.replay.order import Order, call_in
from playhead.replay.overlay import Overlay
from playhead.replay.own import Own
from playhead.replay.places import Places
from playhead.replay.served import Served
from playhead.replay.stalls import Stalls
from playhead.replay.summary import summary_of
from playhead.replay.tape import Call, Said, Tape
from playhead.replay.turned import Turned
from playhead.replay.where import agents_line, at_line
from playhead.views.words import shown

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


# Of which the report says where in the program they came from, where they differ.
_PLACED = CALLS | {"step.started", "effect.observed", "note.added", "policy.checked", "artifact.created"}
_TOUCHING = frozenset({"tool.called", "process.started", "mcp.requested"})


class Player(Turned):
    """What answers while a run is replayed; `capture/answering.py` says what is asked of it."""

    asks_world = False
    asks_models = False

    def __init__(
        self,
        tape: Tape,
        *,
        on_deviation: str = "raise",
        speed: float = 0.0,
        normalisers: Normalisers | None = None,
        folder: str | None = None,
    ) -> None:
        self.tape = tape
        self.folders = folders(tape.started and tape.reader.resolve(tape.started), folder)
        self.order = Order(speed)
        self.lookup = Lookup(tape, self.folders)
        in_force = Normalisers.of_settings(settings.load().normalise) if normalisers is None else normalisers
        self.matching = Matching(tape, in_force)
        self.normalised: list[list[Any]] = []  # the event that asked, and the recorded key: the same, once normalised
        self.served = Served(self)
        self.on_deviation = on_deviation
        self.recording: Recording | None = None
        self.overlay: Overlay | None = None
        self.places = Places()
        self.scratch: Path | None = None  # where to leave them
        self.give_up: Callable[[], None] | None = None  # what to do when it does not end after a deviation
        self.deviations: list[dict[str, Any]] = []
        self.answered = 0
        self.drift: dict[tuple[str, str], int] = {}  # by source and module: reads that came from elsewhere
        self.blocked_attempts: list[dict[str, Any]] = []
        self._reported_by = 0  # the process; a forked child speaks for itself
        self.stalls = Stalls(tape, self.order)
        self.own = Own(self)
        self._denied: dict[str, frozenset[str]] = {}  # by rule
        self._asked: dict[str, int] = {}  # by key: how often it was asked
        self._pending: dict[str, Call | BaseException] = {}
        self._given: dict[str, Call] = {}  # by span: processes that were answered
        self._lock = threading.Lock()
        self.order.on_fork = self._after_fork

    def _after_fork(self) -> None:
        """Let a forked child tell of itself alone: its parent tells of what was before."""
        self.answered, self.drift, self.blocked_attempts, self.normalised, self.deviations = 0, {}, [], [], []
        self.stalls.found = []
        self.served.counts = {}

    # Calls.

    def asked(
        self, recording: Recording, kind: str, span: str, lane: str, key: str | None, data: Mapping[str, Any]
    ) -> None:
        """Take in what was recorded; of a call that was asked, look for its answer."""
        if kind in _PLACED and not data.get("inferred"):
            self.places.keep(int(span))
        if key is None or kind not in CALLS or data.get("inferred") or data.get("from_server"):
            return
        recorded_as, key = key, self.matching.key(recording, kind, span, key)
        with self._lock:
            self._asked[key] = self._asked.get(key, 0) + 1
            call = self.tape.take(lane, key)
            if call is not None and call.closing is not None:
                self._pending[span] = call
                self.answered += 1
        if call is not None and key != recorded_as and (on_tape := call.question.key) != recorded_as:
            self.normalised.append([int(span), on_tape])
        if call is None:
            self._deviate(recording, kind, span, lane, key)
        elif call.closing is None:
            self._unanswered(recording, call, span)
        elif call.lane != lane:
            self.note_drift("lane", f"{kind} asked in lane {lane}, recorded in lane {call.lane}")

    def ready(self, lane: str, asked: bytes) -> Call | None:
        """Hand out the answer to a question to a model that is about to be recorded; None to wait until it is."""
        with self._lock:
            call = self.tape.next_in(lane)
            if call is None or call.kind != "model.invoked" or call.closing is None:
                return None
            line, key = call.line, call.key
            if not line.startswith(asked, line.find(b'"request":')) or not self.matching.is_plain:
                return None
            self.tape.take(lane, key)
            self._asked[key] = self._asked.get(key, 0) + 1
            self.answered += 1
        self.places.keep_answered(call.seq)
        return call

    def answer(self, span: str | None) -> Call | None:
        """Hand out the answer to a call that was asked, once; None where it is not for the tape to answer.

        DeviationError where the tape has none: raised here, where whoever asked can end what it has begun.
        """
        found = None if span is None else self._pending.pop(span, None)
        if isinstance(found, BaseException):
            raise found
        self.own.touches += found is not None and found.kind in _TOUCHING
        if found is not None and found.kind == "process.started":
            self._given[str(span)] = found  # it may still differ in what it is told
        return found

    def said(self, span: str | None, server: str | None) -> Sequence[Said]:
        """Hand out, once, what an MCP server said during the call that was recorded in a span; beside any, for None."""
        with self._lock:
            return self.tape.said(span, server)

    def wait(self, at_us: int) -> None:
        """Return when it is the turn of something that was recorded at this time; blocks the thread."""
        if not self.order.passes(at_us):
            self.order.wait(at_us, "answer", scope.lane_path())

    async def wait_async(self, at_us: int) -> None:
        """Return when it is its turn; lets the event loop go on meanwhile."""
        await self.order.wait_async(at_us, "answer", scope.lane_path())

    def call_at(self, at_us: int, loop: Any, function: Callable[[], None]) -> None:
        """Have something called in an event loop when it is its turn; nobody waits for that."""
        self.order.add(at_us, "answer", scope.lane_path(), lambda: call_in(loop, function))
        self.order.ring_if_needed()

    # What differs.

    def _deviate(
        self, recording: Recording, kind: str, span: str, lane: str, key: str, *, nearest: bool | None = None
    ) -> None:
        from playhead.replay.explain import unknown_question

        where = agents_line(sys._getframe(1))
        found = unknown_question(self.tape, recording, kind, span, lane, key, self._asked[key], where)
        like = found.pop("call", None)
        self.differs(recording, found)
        takes = self.on_deviation == "nearest" if nearest is None else nearest
        if takes and isinstance(like, Call) and like.closing is not None:
            like.taken = True  # one that was asked too often is given its last answer again
            self._pending[span] = like
            return
        self._pending[span] = DeviationError(found["text"], deviation=found)

    def _unanswered(self, recording: Recording, call: Call, span: str) -> None:
        where = agents_line(sys._getframe(1))
        text = (
            f"event {call.seq} of {self.tape.run} asked the same, and the recording ended before it was answered:"
            f" there is nothing to answer with{at_line(where)}"
        )
        found = {"type": "unanswered", "seq": call.seq, "at": int(span), "lane": call.lane, "kind": call.kind}
        found |= {"text": text, "where": where}
        self.differs(recording, found)
        self._pending[span] = DeviationError(text, deviation=found)

    def differed(self, kind: str, span: str | None, path: str, recorded: Any, asked: Any) -> None:
        """Take in that a call was told or asked something else than was recorded, where a JSON pointer says."""
        call = self._given.get(span or "")
        seq = None if call is None else call.closing
        event, where = "" if seq is None else f"event {seq}: ", agents_line(sys._getframe(1))
        then, now = (shown(repr(side), 200) for side in (recorded, asked))
        text = f"{event}{path[1:]} of {kind} was {then} when it was recorded, and is {now}{at_line(where)}"
        found: dict[str, Any] = {"type": "changed", "at": int(span or 0), "lane": "" if call is None else call.lane}
        found |= {"seq": seq, "kind": kind, "text": text, "where": where}
        found["changes"] = [{"path": path, "left": recorded, "right": asked}]
        self.differs(None, found)
        if self.on_deviation == "raise":
            raise DeviationError(text, deviation=found)

    def refused(self, what: str, detail: str) -> NoReturn:
        """Note that something would have touched the world which no tape can answer, and raise DeviationError."""
        self.blocked(what, detail)
        where = agents_line(sys._getframe(1))
        text = f"nothing of this is on the tape, and it is not done in a replay: {what} {detail}{at_line(where)}"
        found: dict[str, Any] = {"type": what, "text": text, "where": where}
        self.differs(None, found)
        raise DeviationError(text, deviation=found)

    def differs(self, recording: Recording | None, found: dict[str, Any]) -> None:
        """Keep a difference, and record it in the run of the replay."""
        self.deviations.append(found)
        give_up = self.give_up if self.on_deviation == "raise" else None
        if give_up is not None:
            self.order.watch(give_up)
        recording = recording or self.recording
        if recording is not None and len(self.deviations) <= _limits.DEVIATIONS_KEPT_MAX:
            recording.emit_fields("replay.deviated", dict(found), parent="0")
        if give_up is not None and len(self.deviations) >= _limits.DEVIATIONS_RAISED_MAX:
            give_up()

    def cannot_answer(self, text: str) -> NoReturn:
        """Raise a DeviationError that says this, and record it."""
        where = agents_line(sys._getframe(1))
        found = {"type": "unanswered", "text": text + at_line(where), "where": where}
        self.differs(None, found)
        raise DeviationError(text, deviation=found)

    def note_drift(self, source: str, where: str) -> None:
        """Count something that was answered, and not in the place where it was recorded."""
        line = agents_line(sys._getframe(1))
        where = f"{where} ({line})" if line else where
        with self._lock:
            self.drift[source, where] = self.drift.get((source, where), 0) + 1

    def blocked(self, what: str, detail: str, program: str = "") -> None:
        """Count something that was about to be done to the world, and was not; not what was done when recorded, too."""
        if program and program in self.lookup.started():
            return
        with self._lock:
            if len(self.blocked_attempts) < _limits.BLOCKED_KEPT_MAX:
                self.blocked_attempts.append({"what": what, "detail": detail})

    # Reads.

    def variable(self, of: str, by: str, lane: str, name: str) -> tuple[bool, Any]:
        """Say whether it is known what a module was told of a variable, and what."""
        return self.served.variable(by, lane, of, name)

    def state(self, of: str, by: str, lane: str) -> dict[str, Any] | None:
        """Return the state in which a generator of random numbers was found."""
        found = self.lookup.next(lane, of, by)
        value = None if found is None else restore(found.value)
        return value if isinstance(value, dict) else None

    def printed(self, stream: str, start: int, end: int) -> bytes:
        """Return what was written to an output of the program, from one byte to another; nothing for not known."""
        return self.tape.outputs.between(stream, start, end)

    def wrote(self, path: str, *, after: int | None) -> None:
        """Take in that the program writes a file itself; `after` so much that is there, where it adds to that."""
        self.own.wrote(self.folders.asked(path), after=after)

    def is_own(self, path: str) -> bool:
        """Say whether a file is as the program itself wrote it."""
        return self.own.has(self.folders.asked(path))

    def wrote_other(self, path: str, own: bytes, recorded: bytes) -> bool:
        """Say whether what the program wrote is something else than what it read there then, and note that."""
        return self.own.is_other(path, own, recorded)

    def file(self, of: str, by: str, lane: str, path: str, *, sure: bool = True) -> dict[str, Any] | None:
        """Say what a file was when the agent opened it."""
        return self.served.file(of, by, lane, self.folders.asked(path), sure=sure)

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return the number and the device that the program was told last of a file; None for not told."""
        return self.served.identities.get(self.folders.asked(path))

    # Of the world.

    def is_in_world(self, lane: str | None = None) -> bool:
        """Say whether a lane, or the one that runs here, is past the tape: never, in a replay that is exact."""
        return False

    def denied(self, rule: str) -> frozenset[str]:
        """Return what the recorded run was denied by a rule of its policy."""
        if rule not in self._denied:
            checked = (event.data for event in self.tape.reader.events() if event.kind == "policy.checked")
            resources = (data.get("resource") for data in checked if data.get("rule") == rule)
            self._denied[rule] = frozenset(one for one in resources if isinstance(one, str))
        return self._denied[rule]

    def lets_out(self) -> bool:
        """Say whether somebody in this program may use the network now."""
        return False

    def told_besides(self) -> dict[str, Any]:
        """Return what more there is to say of it at the end."""
        return {}

    # Its life.

    def begin(self) -> None:
        """Answer from now on."""
        answering.player = self
        hooks.answer_with(self.served.answer)
        instead.install()

    def end(self) -> None:
        """Answer nothing any more."""
        hooks.answer_with(None)
        instead.uninstall()
        hooks.put_back()
        answering.player = None
        answering.hang_up()
        self.order.close()

    def report(self) -> None:
        """Record what became of the tape, once, at the end of the process."""
        recording = self.recording
        if recording is not None and self._reported_by != os.getpid() and not recording.closed:
            self._reported_by = os.getpid()
            recording.emit_fields("replay.reported", self.summary(), parent="0")
            try:
                if self.scratch is not None:
                    self.places.write(self.scratch)
            except OSError as problem:
                guard.absorb(problem, recording, "where things happened in the replay")

    def summary(self) -> dict[str, Any]:
        """Say what became of the tape."""
        return summary_of(self)
