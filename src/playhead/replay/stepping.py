"""Run one step of a recorded program again: alone, or where that cannot be, from the beginning up to its end."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from playhead.errors import UsageError
from playhead.replay.course import EVERYWHERE, NOWHERE, Alone, Course
from playhead.replay.onwards import Again
from playhead.replay.ready import exact_readiness, refuse_unless_ready
from playhead.replay.relaunch import relaunch
from playhead.replay.steps import StepAt, all_steps, find_step, why_not_alone
from playhead.replay.tape import TIMER, Tape
from playhead.store.reader import RunReader
from playhead.views.difference import changes

_ADDRESS = re.compile(r"at 0x[0-9a-fA-F]+")
# What is no reason against running one step: the rest of the run is not run.
_NOT_AGAINST = ("execution_incomplete", "not_captured", "self_replay_differs")


@dataclass
class Stepped:
    """What came of one step."""

    run: str
    origin: dict[str, Any]
    mode: str
    step: dict[str, Any]  # name, seq, lane
    how: str  # alone, up_to
    why: str | None  # not alone
    fidelity: dict[str, Any]  # verdict: same, deviated, not_compared; first, count
    recorded: dict[str, Any]  # status, output, error, attributes
    replayed: dict[str, Any] | None
    changes: list[dict[str, Any]] = field(default_factory=list)
    deviations: list[dict[str, Any]] = field(default_factory=list)
    live_calls: int = 0
    taped: int = 0
    exit_code: int = 0
    isolation: str = "hooks"
    waived: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Say whether the step came to what it had come to."""
        return bool(self.fidelity["verdict"] == "faithful")

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead replay --mode step`."""
        return asdict(self)


def run_step(again: Again, wanted: str, *, given: Any = None, live: bool = False) -> Stepped:
    """Run a step once more, with its recorded arguments or with others (`given`, by name), and compare its result.

    With `live`, its models and tools are asked, and not the tape.
    """
    step = find_step(again.reader, wanted)
    if step.inferred:
        raise UsageError(
            f"{step.name} is no step of the program: it was read off the traffic",
            hint="`playhead replay RUN --mode exact` runs all of it.",
        )
    waived = refuse_unless_ready(exact_readiness(again.reader), again.reader.id, [*again.waive, *_NOT_AGAINST])
    why = why_not_alone(step)
    if given is not None:
        _check_given(step, given, why)
    if again.argv:
        why = "another program was given, which is started"
    if why is None:
        ran = _alone(again, step, {**(step.given or {}), **_as_recorded(step.given or {}, given or {})}, live)
        if given is None and _never_began(RunReader(again.store, ran.run), step):
            why = "its module asks something when it is loaded that the step did not"
    if why is not None:
        ran = _up_to(again, step, live)
    return _told(again, step, ran, why, [reason for reason in waived if reason in again.waive], other=given is not None)


def _as_recorded(recorded: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments so that an object is one again, of which only fields are given."""
    found = dict(given)
    for name, value in given.items():
        then = recorded.get(name)
        plain = isinstance(value, dict) and not any(str(key).startswith("$") for key in value)
        if plain and isinstance(then, dict) and "$object" in then and isinstance(then.get("fields"), dict):
            found[name] = {**then, "fields": {**then["fields"], **value}}
    return found


def _never_began(replay: RunReader, step: StepAt) -> bool:
    """Say whether a program deviated before it came to its step."""
    kinds = [event.kind for event in replay.events() if event.kind in ("step.started", "replay.deviated")]
    return "replay.deviated" in kinds and not any(one.name == step.name for one in all_steps(replay))


def _check_given(step: StepAt, given: Any, why: str | None) -> None:
    if not isinstance(given, dict):
        raise UsageError("other arguments are an object by their names", hint='For instance {"goal": "tea"}.')
    if why is not None:
        raise UsageError(f"{step.name} cannot be given other arguments: {why}")
    unknown = sorted(given.keys() - (step.given or {}).keys())
    if unknown:
        known = ", ".join(step.given or {}) or "none"
        raise UsageError(f"{step.name} has no argument {unknown[0]}", hint=f"Its arguments are {known}.")


def _alone(again: Again, step: StepAt, given: dict[str, Any], live: bool) -> Any:
    tape = Tape(again.reader, step.closing, first=step.seq, lane=step.lane)
    started = again.reader.resolve(again.reader.first()).data.get("entrypoint") or {}
    place, folder = step.entrypoint, started.get("cwd")
    argv = [str(word) for word in started.get("argv") or ["?"]]
    at = next((n for n, word in enumerate(argv) if word.endswith(".py")), 0)
    alone = Alone(
        module=str(place["module"]),
        qualname=str(place["qualname"]),
        file=str(place.get("file") or ""),
        spec=str(place.get("spec") or ""),
        argv=argv[at:],
        given=given,
        lane=step.lane,
        spawned=_first_child(tape, step.lane) - 1,
        timers=_first_timer(tape, step.lane) - 1,
        first=step.seq,
    )
    course = Course(
        mode="step",
        live="all" if live else "",
        cut=NOWHERE if live else step.closing or tape.head[0],
        alone=alone,
        told={"step": step.name, "seq": step.seq},
    )
    python = again.reader.resolve(again.reader.first()).data.get("environment") or {}
    executable = str((python.get("python") or {}).get("executable") or sys.executable)
    command = [
        executable if os.access(executable, os.X_OK) else sys.executable,
        "-m",
        __name__.replace("stepping", "alone"),
    ]
    there = folder if isinstance(folder, str) and Path(folder).is_dir() else None
    return relaunch(Tape(again.reader), again.store, again.settings, argv=command, course=course, folder=there)


def _first_child(tape: Tape, lane: str) -> int:
    """Return the number of the first lane that the step began."""
    numbers = [call.lane for call in tape.calls] + tape.lanes()
    children = [path.removeprefix(f"{lane}.").partition(".")[0] for path in numbers if path.startswith(f"{lane}.")]
    return min((int(number) for number in children if number.isdecimal() and number != "0"), default=1)


def _first_timer(tape: Tape, lane: str) -> int:
    numbers = [
        one.value[0] for number in range(tape.packs(lane)) for one in tape.reads(lane, number) if one.of == TIMER
    ]
    return min(numbers, default=1)


def _up_to(again: Again, step: StepAt, live: bool) -> Any:
    tape = Tape(again.reader)
    course = Course(
        mode="step",
        live="all" if live else "",
        stop=(step.name, step.number),
        told={"step": step.name, "seq": step.seq},
        cut=step.seq if live else EVERYWHERE,
    )
    return relaunch(tape, again.store, again.settings, argv=again.argv, course=course)


def _told(again: Again, step: StepAt, ran: Any, why: str | None, waived: list[str], *, other: bool) -> Stepped:
    replay = RunReader(again.store, ran.run)
    number = 1 if why is None else step.number
    found = next((one for one in all_steps(replay) if (one.name, one.number) == (step.name, number)), None)
    reports = [event.data for event in replay.resolved() if event.kind == "replay.reported"]
    deviations = [event.data for event in replay.resolved() if event.kind == "replay.deviated"]
    now = None if found is None or found.closing is None else found.result
    differences = [] if now is None else changes(_comparable(step.result), _comparable(now))
    count = len(differences) + len(deviations)
    verdict = "not_compared" if now is None and not deviations else "deviated" if count else "faithful"
    first = _first(differences, deviations)
    return Stepped(
        run=ran.run,
        origin=replay.first().data["origin"],
        mode="step",
        step={"name": step.name, "number": step.number, "seq": step.seq, "lane": step.lane},
        how="alone" if why is None else "up_to",
        why=why,
        fidelity={"verdict": verdict, "first": first, "count": count, "other_input": other},
        recorded=step.result,
        replayed=now,
        changes=[change.as_dict() for change in differences],
        deviations=deviations,
        live_calls=sum(report.get("live", 0) for report in reports),
        taped=sum(report.get("answered", 0) for report in reports),
        exit_code=ran.exit_code,
        isolation=ran.isolation,
        waived=waived,
    )


def _first(differences: list[Any], deviations: list[dict[str, Any]]) -> dict[str, Any] | None:
    if deviations:
        return deviations[0]
    if not differences:
        return None
    one = differences[0].as_dict()
    told = one.get("words") or f"{one.get('left')!r} → {one.get('right')!r}"
    return {"type": "changed", "path": one["path"], "text": f"{one['path'][1:]} of the step: {told}", "changes": [one]}


def _comparable(result: dict[str, Any]) -> Any:
    """Return a result without what is another with each process: addresses in reprs, and lines in tracebacks."""
    error = result.get("error")
    said = {name: error.get(name) for name in ("type", "message")} if isinstance(error, dict) else error
    return {**result, "error": said, "output": _plain(result.get("output"))}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$repr"), str):
        value = {**value, "$repr": _ADDRESS.sub("at 0x", value["$repr"])}
    return {name: _plain(one) for name, one in value.items()}
