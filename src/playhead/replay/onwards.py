"""Run a recorded program again and let it leave the tape: ask models anew, go on from an event, go on after a crash."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from playhead.errors import PlayheadError, UsageError
from playhead.event.envelope import parse
from playhead.event.kinds import CALLS, CLOSING
from playhead.replay.aftermath import Flight, aftermath
from playhead.replay.ahead import places
from playhead.replay.course import EVERYWHERE, IN_FLIGHT, LIVE, NOWHERE, UNKNOWN, Course
from playhead.replay.edited import MAIN
from playhead.replay.models.asker import Asker
from playhead.replay.outcome import came, compared
from playhead.replay.readiness import verify_run
from playhead.replay.ready import exact_readiness, refuse_unless_ready
from playhead.replay.relaunch import Ran, relaunch
from playhead.replay.tape import Tape
from playhead.settings import Settings
from playhead.store.files import FileStore
from playhead.store.price_list import PriceList
from playhead.store.reader import RunReader
from playhead.views.facts import Facts

_WITH_SECRETS = ("tool.called", "mcp.requested", "process.started")
_REDACTED = (b"[redacted:", b'"$redacted"')
_SHOWN = 5


@dataclass
class Rerun:
    """What came of a run that left its tape."""

    run: str
    origin: dict[str, Any]
    mode: str
    exit_code: int
    integrity: dict[str, Any]
    completeness: dict[str, Any]
    outcome: dict[str, Any]  # same, differences: beside the run that it was made from
    answers: dict[str, Any]  # of models: same, changed
    live_calls: int = 0
    surface: dict[str, Any] = field(default_factory=dict)  # taped, live, unknown
    deviations: list[dict[str, Any]] = field(default_factory=list)
    blocked: list[dict[str, Any]] = field(default_factory=list)
    isolation: str = "hooks"
    cost: float | None = None  # of the models that were asked live
    unpriced: list[str] = field(default_factory=list)
    output: Any = None
    folder: str = ""
    waived: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Say whether it came out as the run that it was made from."""
        return bool(self.outcome["same"])

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead replay --mode model`, `fork` and `resume`."""
        return asdict(self)


@dataclass(frozen=True)
class Again:
    """What a run is to be made from, and where to."""

    reader: RunReader
    store: FileStore
    settings: Settings
    argv: Sequence[str] | None = None
    waive: Sequence[str] = ()


def rerun(again: Again, asker: Asker, *, unknown: str = "refuse") -> Rerun:
    """Run the program again with its models live, and everything else from the tape.

    `unknown` says what becomes of a tool call that the tape does not have: refuse, nearest, live.
    """
    if unknown not in UNKNOWN:
        raise UsageError(f"no rule for calls that are not on the tape: {unknown!r}", hint=f"It is {_or(UNKNOWN)}.")
    course = Course(mode="model", live="model", cut=NOWHERE, unknown=unknown, told=_told(asker))
    return _go(again, course, asker)


def fork(
    again: Again,
    at: int,
    *,
    edits: dict[int, Any] | None = None,
    live: str = "model",
    unknown: str = "refuse",
    asker: Asker | None = None,
) -> Rerun:
    """Run the program from the tape up to an event, and live from there; `edits` has other answers, by their events."""
    if live not in LIVE or not live:
        raise UsageError(f"not what may be live: {live!r}", hint="It is model, tool or all.")
    asker = asker or Asker(prices=_prices(again))
    given = {str(seq): data for seq, data in (edits or {}).items()}
    course = Course(
        mode="fork",
        live=live,
        cut=at,
        unknown=unknown,
        edits=given,
        told={"live": live, **({"edited": sorted(edits)} if edits else {}), **_told(asker)},
    )
    return _go(again, course, asker if live == "model" else None)


def resume(again: Again, rules: dict[int, str], *, answer: Any = None, twice: bool = False) -> Rerun:
    """Run the program from the tape up to where it was cut off, and on from there, in the world.

    `rules` says of calls that were under way then what becomes of them, by their events: retry, skip, fail. `answer` is
    what a call gives back that is skipped. `twice` resumes a run that was resumed before.
    """
    origin = again.reader.first().data.get("origin") or {}
    if origin.get("mode") == "resume" and (whole := left_tape(again.reader)) is not True:
        if whole is False:
            raise UsageError(
                f"{again.reader.id} was cut off when some of its tasks went on already, and others did not yet:"
                f" neither it nor {origin.get('run')} tells all that was done",
                hint=f"Look at what it did; `playhead resume {origin.get('run')} --again` does it again, and the rest.",
            )
        raise UsageError(
            f"{again.reader.id} was to go on from {origin.get('run')}, and did not come so far: nothing was done",
            hint=f"`playhead resume {origin.get('run')}` goes on from there.",
        )
    end = aftermath(again.reader)
    for flight in end.flying:
        _check_rule(flight, rules.get(flight.seq))
    if not twice and (before := resumed_by(again)) is not None:
        raise UsageError(
            f"{again.reader.id} was resumed before, by {before}",
            hint=f"If that one was cut off, resume it: `playhead resume {before}`. `--again` does all of it once more.",
        )
    if answer is not None and sum(rule == "skip" for rule in rules.values()) > 1:
        raise UsageError("one answer for several calls that are skipped", hint="Without it they answer nothing.")
    skipped = [flight for flight in end.flying if rules.get(flight.seq) == "skip" and answer is not None]
    never = {str(one.seq): list(one.never) for one in end.flying if one.never and rules.get(one.seq) == "fail"}
    before_that = [str(one) for one in origin.get("never") or ()]
    never_again = sorted({*before_that, *(one for names in never.values() for one in names)})
    course = Course(
        mode="resume",
        live="all",
        cut=end.cut,
        in_flight={str(seq): rule for seq, rule in rules.items()},
        never=never,
        never_again=before_that,
        unanswered=end.unanswered,
        edits={str(one.seq): {MAIN[one.kind]: answer} for one in skipped},
        restored=[(one.path, one.size) for one in end.restored],
        until_us=end.until_us,
        may_undo=True,
        told={"never": never_again} if never_again else {},
    )
    went = _go(again, course, None)
    went.surface["notes"] = [*end.notes, *went.surface["notes"]]
    return went


def resumed_by(again: Again) -> str | None:
    """Return the last run that goes on from this one, and did so; None where none does."""
    found = None
    for run in again.store.runs():
        if run <= again.reader.id:
            continue  # ids are in the order of time
        with contextlib.suppress(PlayheadError):
            reader = RunReader(again.store, run)
            origin = reader.first().data.get("origin") or {}
            goes_on = origin.get("mode") == "resume" and origin.get("run") == again.reader.id
            if goes_on and left_tape(reader) is not None:
                found = run
    return found


def left_tape(reader: RunReader) -> bool | None:
    """Say whether all of a program was past its tape, or some of it (False); None where nothing of it was."""
    found = None
    for line in reader.lines():
        if b'"left_tape"' in line and (event := parse(line)).kind == "note.added":
            told = event.data.get("data")
            if isinstance(told, dict) and "left_tape" in told:  # else it is a note of the program's own
                found = told.get("whole") is True
    return found


def _check_rule(flight: Flight, rule: str | None) -> None:
    named = f"event {flight.seq} ({flight.name})"
    if flight.is_file and rule != "retry":
        raise UsageError(
            f"{named} is the last that is known: what was written since may be there, and would be written again",
            hint=f"Look, put it right, and say so: `--in-flight {flight.seq}=retry`.",
        )
    if rule is None and flight.changes:
        was = "failed, and the run with it; it" if flight.failed else "was under way when the run was cut off, and"
        raise UsageError(
            f"{named} {was} may have been done",
            hint=f"Look at what it was to change, and say: `--in-flight {_or(flight.rules, '`, `', '` or `')}`.",
        )
    if rule is not None and rule not in IN_FLIGHT:
        raise UsageError(f"not what to do with a call that was under way: {rule!r}", hint=f"It is {_or(IN_FLIGHT)}.")
    if rule == "retry" and flight.irreversible:
        raise UsageError(
            f"{named} is declared irreversible, or called what is, and is not tried again",
            hint="`--in-flight skip` goes on as if it had answered nothing, `fail` raises InFlight in its place.",
        )
    if rule is not None and rule not in flight.rules:
        raise UsageError(
            f"{named} cannot be passed over: nobody knows what to answer in its place",
            hint="`--in-flight retry` does it again, `fail` raises InFlight in its place.",
        )


def cut_at(reader: RunReader, at: int, *, edited: bool = False) -> int:
    """Return the last event that counts in a fork at an event, by its number; UsageError where there is none such.

    At a question, the answer is what is new: it is asked live, unless one is given (`edited`).
    """
    head = Tape(reader).head[0]
    if not 0 <= at <= head:
        raise UsageError(f"{reader.id} has no event {at}", hint=f"Its events are 0 to {head}.")
    if edited:
        return answer_at(reader, at)
    return at


def answer_at(reader: RunReader, at: int) -> int:
    """Return the event with the answer that an event is about: itself, or what closes it."""
    event = reader.event(at)
    if event.data.get("inferred") and (event.kind in CALLS or event.kind in CLOSING):
        raise UsageError(
            f"event {at} was read off the traffic: the program would not see another answer there",
            hint="Name the call of a model, or an answer to one; `playhead show RUN` lists them.",
        )
    if event.kind in CLOSING and event.kind not in ("step.finished", "run.finished"):
        return at
    if event.kind not in CALLS:
        raise UsageError(
            f"event {at} is {event.kind}: it has no answer that could be another one",
            hint="Name a call of a model or a tool, or its answer; `playhead show RUN` lists them.",
        )
    for line in reader.events():
        if line.seq > at and line.span == event.span and line.kind in CLOSING:
            return line.seq
    raise UsageError(
        f"event {at} was never answered: there is nothing to edit",
        hint="`playhead resume RUN --in-flight skip --answer JSON` goes on with one.",
    )


def _go(again: Again, course: Course, asker: Asker | None) -> Rerun:
    """Start the program on its course, and say what came of it."""
    state = exact_readiness(again.reader)
    given = [*again.waive, *(() if course.mode == "model" else ("execution_incomplete",))]
    if course.mode != "model" and (not course.in_world or all(map(_is_harmless, state.not_captured))):
        given.append("not_captured")
    waived = refuse_unless_ready(state, again.reader.id, given)
    tape = Tape(again.reader)
    ran = relaunch(tape, again.store, again.settings, argv=again.argv, course=course, asker=asker)
    return _told_of(again, tape, course, ran, asker, [reason for reason in waived if reason in again.waive])


def _is_harmless(gap: dict[str, Any]) -> bool:
    """Say whether what nobody could see has no hand in what is done again: what was read last, before the end."""
    return gap["source"] == "reads" and str(gap["where"]).startswith("of the last second")


def _told_of(again: Again, tape: Tape, course: Course, ran: Ran, asker: Asker | None, waived: list[str]) -> Rerun:
    replay = RunReader(again.store, ran.run)
    verified = verify_run(replay)
    reports = [event.data for event in replay.resolved() if event.kind == "replay.reported"]
    deviations = [event.data for event in replay.resolved() if event.kind == "replay.deviated"]
    now = came(replay)
    beside = compared(came(tape.reader), now, after=-1 if course.cut == EVERYWHERE else course.cut)
    unknown = [one for report in reports for one in report.get("ruled", ())]
    answered = {one["at"] for one in unknown if one["rule"] == "nearest"}
    stopping = [one for one in deviations if one.get("at") not in answered]
    if stopping:
        stopped = str(stopping[0].get("text")).partition("\n")[0]
        beside["outcome"]["differences"].insert(0, {"what": "stopped", "then": None, "now": stopped})
        beside["outcome"]["same"] = False
    taped, live = _counted(replay, reports, tape, course)
    bill = Facts(replay.readable).take_all(replay.events()).bill(_prices(again)) if asker is None else asker.bill
    return Rerun(
        run=ran.run,
        origin=replay.first().data["origin"],
        mode=course.mode,
        exit_code=ran.exit_code,
        integrity={"verdict": verified.integrity.verdict},
        completeness={"verdict": verified.completeness.verdict},
        outcome=beside["outcome"],
        answers=beside["answers"],
        live_calls=live,
        surface={
            "taped": taped,
            "calls": len(tape.calls),
            "unreached": 0 if asker is None else asker.unreached,
            "unknown": unknown,
            "left_tape": left_tape(replay) is not None,
            "notes": [*_placeholders(tape, course), *(one for report in reports for one in report.get("notes", ()))],
            "drift": [one for report in reports for one in report.get("drift", ())],
        },
        deviations=deviations,
        blocked=[*ran.blocked, *(one for report in reports for one in report.get("blocked", ()))],
        isolation=ran.isolation,
        cost=bill.amount,
        unpriced=bill.unpriced,
        output=now.end.output,
        folder=ran.folder,
        waived=waived,
    )


def _counted(replay: RunReader, reports: list[dict[str, Any]], tape: Tape, course: Course) -> tuple[int, int]:
    """Say how many calls were answered by the tape and by the world; from the events, where the run was cut off."""
    if reports:
        return sum(one.get("answered", 0) for one in reports), sum(one.get("live", 0) for one in reports)
    asked = sum(place.kind in CALLS for place in places(replay))
    known = sum(call.closing is not None and call.closing <= course.cut for call in tape.calls)
    return min(asked, known), max(0, asked - known)


def _prices(again: Again) -> PriceList:
    return PriceList(again.settings.prices, again.store.root)


def _placeholders(tape: Tape, course: Course) -> list[str]:
    """Say which answers had a secret in them that is not in the recording: the program has what stands for it."""
    reader = tape.reader
    found = [
        str(call.closing)
        for call in tape.calls
        if call.closing is not None
        and (course.cut < 0 or call.closing <= course.cut)
        and call.kind in _WITH_SECRETS
        and any(mark in reader.line(call.closing) for mark in _REDACTED)
    ]
    if not found:
        return []
    named = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    return [f"secrets were redacted in what was answered (event {named}): the program has what stands in their place"]


def _told(asker: Asker) -> dict[str, Any]:
    return {"overrides": asker.overrides.as_dict()} if asker.overrides.as_dict() else {}


def _or(words: Sequence[str], between: str = ", ", last: str = " or ") -> str:
    return last.join(filter(None, (between.join(words[:-1]), words[-1])))
