"""Run a recorded program again, with every answer from the tape, and say whether everything was the same."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead.capture import written
from playhead.capture.launch import launch, open_run
from playhead.capture.program import Again
from playhead.event.envelope import Event
from playhead.event.kinds import CALLS
from playhead.event.plain import restore
from playhead.ledger.verify import Verification
from playhead.replay import compare, overlay
from playhead.replay.blocked import Blocked
from playhead.replay.differing import Differing
from playhead.replay.folders import Folders, folders
from playhead.replay.lookup import VARIABLES
from playhead.replay.namespace import enter, isolation
from playhead.replay.places import Places
from playhead.replay.plan import Plan
from playhead.replay.readiness import verify_run
from playhead.replay.ready import exact_readiness, refuse_unless_ready
from playhead.replay.starting import entry
from playhead.replay.tape import Tape
from playhead.replay.values import as_text
from playhead.settings import Settings
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views.timeline import Timeline

_SHARED_STDERR = {
    "source": "stderr",
    "where": "an MCP server wrote to it too: only the program's own lines are compared",
}
_NOT_PRINTED = "what the program printed, and its exit code: a part of it was called, and not the program started"
FAITHFUL = "faithful over the recorded surface"
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What the system itself needs to start a program here, whatever was recorded.
_APART = ("PLAYHEAD_", "LD_")
_OURS = frozenset({"PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "VIRTUAL_ENV"})


@dataclass
class Replayed:
    """What a replay came to: three verdicts apart, what was asked of the world (nothing), and what was not captured."""

    run: str
    origin: dict[str, Any]
    mode: str
    exit_code: int
    integrity: dict[str, Any]
    completeness: dict[str, Any]
    fidelity: dict[str, Any]  # verdict, first, count
    differences: list[dict[str, Any]] = field(default_factory=list)
    live_calls: int = 0
    blocked: list[dict[str, Any]] = field(default_factory=list)
    surface: dict[str, Any] = field(default_factory=dict)  # taped, live, not_captured
    isolation: str = "hooks"
    cost_saved: float | None = None
    output: Any = None
    folder: str = ""  # that the program was started in
    waived: list[str] = field(default_factory=list)

    @property
    def faithful(self) -> bool:
        """Say whether everything was the same, over the recorded surface."""
        return bool(self.fidelity["verdict"] == "faithful")

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead replay --mode exact`."""
        shown = dict(self.__dict__)
        shown["deviations"] = shown.pop("differences")
        return shown


def replay_program(
    reader: RunReader,
    store: FileStore,
    settings: Settings,
    *,
    argv: Sequence[str] | None = None,
    on_deviation: str = "raise",
    speed: float = 0.0,
    waive: Sequence[str] = (),
) -> Replayed:
    """Start the recorded command again, answered from the tape, and compare; refuses unless that can be exact.

    `waive` names reasons against it that shall not count.
    """
    state = exact_readiness(reader)
    waived = refuse_unless_ready(state, reader.id, waive)
    tape = Tape(reader)
    command, executable, folder = entry(tape, argv)
    recording = open_run(store, settings)
    scratch = Path(tempfile.mkdtemp(prefix="playhead-replay-"))
    try:
        variables = _variables(tape)
        zone = _zone(tape) if variables.get("TZ") is None else None
        plan = Plan(
            root=str(getattr(reader.store, "root", "")),
            run=reader.id,
            head=tape.head[0],
            scratch=str(scratch),
            store=str(store.root),
            folder=folder or os.getcwd(),
            zone=zone or "",
            on_deviation=on_deviation,
            speed=speed,
        )
        plan.write(scratch / "plan.json")
        here = folders(tape.started and reader.resolve(tape.started), plan.folder)
        kept_by = isolation()
        again = Again(
            origin={"run": reader.id, "mode": "exact", "at": tape.head[0]},
            plan=str(scratch / "plan.json"),
            seed=_seed(tape),
            executable=executable,
            folder=folder,
            variables={**variables, **({"TZ": zone} if zone else {})},
            terminals=_terminals(tape),
            isolate=enter if kept_by == "namespace" else None,
        )
        written.look_elsewhere(recording, overlay.finder(scratch, here.both()), here.asked)
        launched = launch(recording, command, name=_name(tape), again=again)
        blocked = [{"what": one.what, "detail": f"{one.target} at {one.at}"} for one in Blocked(scratch).all()]
        places = Places.read(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    result = judge(tape, RunReader(store, launched.run), launched.exit_code, kept_by, places=places)
    result.blocked += blocked
    result.folder = folder or os.getcwd()
    result.surface["not_captured"] += state.not_captured
    result.waived = waived
    result.cost_saved = Timeline(prices=settings.prices).take_all(reader.events()).finish().cost
    return result


def _was_interrupted(run: compare.Told) -> bool:
    """Say whether a program was ended from outside itself."""
    return isinstance(run.exit_code, int) and -run.exit_code in _INTERRUPTIONS


def judge(
    tape: Tape,
    replay: RunReader,
    exit_code: int,
    isolation: str = "hooks",
    reports: list[dict[str, Any]] | None = None,
    places: Places | None = None,
) -> Replayed:
    """Compare a replay with the run that it replayed; `reports` of its processes, where they are not in the run.

    `places` knows which lines of the program did what it did.
    """
    verified: Verification = verify_run(replay)
    here = _folders(tape, replay.first())
    recorded = compare.told(_up_to(tape), here.event)
    replayed = compare.told(replay.resolved(), functools.partial(here.event, replayed=True))
    if reports:
        replayed.reports += reports
        compare.undo_normalising(replayed)
    found = Differing(recorded, replayed, tape.reader, places or Places()).all()
    asked_for = [set(report.get("unasked", ())) for report in replayed.reports]
    unasked = sorted(set.intersection(*asked_for)) if asked_for else []
    known = bool(replayed.reports)
    deviations = sum(report.get("deviations", 0) for report in replayed.reports)  # of which only so many are kept
    live = max(0, _asked_besides(recorded, replayed) - max(deviations, len(replayed.deviations)))
    told = sum(report.get("answered", 0) for report in replayed.reports)
    taped = max(told, replayed.calls - live - len(replayed.deviations))  # of a process that was killed nobody tells
    if _was_interrupted(replayed) and not _was_interrupted(recorded) and not replayed.deviations:
        found, known = [], False
    verdict = "deviated" if found else "faithful" if known else "not_compared"
    fidelity = {"verdict": verdict, "first": found[0] if found else None, "count": len(found)}
    left_out = [_NOT_PRINTED] if recorded.launched and not replayed.launched else []
    if verdict == "faithful":
        fidelity["claim"] = f"{FAITHFUL}; not compared: {_NOT_PRINTED}" if left_out else FAITHFUL
    return Replayed(
        run=replay.id,
        origin={"run": tape.run, "mode": "exact", "at": tape.head[0]},
        mode="exact",
        exit_code=exit_code,
        integrity={"verdict": verified.integrity.verdict},
        completeness={"verdict": verified.completeness.verdict},
        fidelity=fidelity,
        differences=found,
        live_calls=live,
        blocked=[one for report in replayed.reports for one in report.get("blocked", ())],
        surface={
            "taped": taped,
            "calls": len(tape.calls),
            "live": live,
            "unasked": unasked,
            "written": [one for report in replayed.reports for one in report.get("written", ())],
            "code_changed": sorted({one for report in replayed.reports for one in report.get("code_changed", ())}),
            "stalls": [one for report in replayed.reports for one in report.get("stalls", ())],
            "normalised": sum(len(report.get("normalised", ())) for report in replayed.reports),
            "drift": [one for report in replayed.reports for one in report.get("drift", ())],
            "not_captured": [_SHARED_STDERR] if recorded.shares_stderr else [],
            "not_compared": [*left_out, *replayed.files_left_out],
        },
        isolation=isolation,
        output=replayed.output,
    )


def _folders(tape: Tape, replayed: Event) -> Folders:
    """Return in which folder the run was recorded and in which it was replayed."""
    entry = replayed.data.get("entrypoint") or {}
    return folders(tape.started and tape.reader.resolve(tape.started), entry.get("cwd"))


def _asked_besides(recorded: compare.Told, replayed: compare.Told) -> int:
    """Count the calls of a replay that the tape does not have: who was answered nevertheless was answered live."""
    then, now = (
        Counter(line for lines in told.lanes.values() for line, _ in lines if line.partition(" ")[0] in CALLS)
        for told in (recorded, replayed)
    )
    return (now - then).total()


def _up_to(tape: Tape) -> Any:
    for event in tape.reader.resolved():
        if event.seq > tape.head[0]:
            return
        yield event


def _name(tape: Tape) -> str | None:
    assert tape.started is not None
    name = tape.started.data.get("name")
    return name if isinstance(name, str) else None


def _seed(tape: Tape) -> str:
    assert tape.started is not None
    facts = tape.reader.resolve(tape.started).data.get("environment") or {}
    return str(facts.get("hash_seed") or "")


def _terminals(tape: Tape) -> frozenset[str]:
    """Return the outputs of the program that were terminals."""
    assert tape.started is not None, "a tape without a beginning is not opened"
    entry = tape.reader.resolve(tape.started).data.get("entrypoint") or {}
    return frozenset(map(str, entry.get("terminals") or ()))


def _variables(tape: Tape) -> dict[str, str | None]:
    """Return the variables as the program found them; those that start a program here stay ours."""
    found: dict[str, str | None] = {}
    for lane in tape.lanes():
        for number in range(tape.packs(lane)):
            for one in tape.reads(lane, number):
                if one.of == VARIABLES and isinstance(one.value, dict):
                    name = next((name for name in one.value if name), "")
                    value = restore(one.value.get(name))
                    plain = value is None or (isinstance(value, str) and not value.startswith("[redacted:"))
                    if (
                        name not in ("*", "")
                        and name not in _OURS
                        and not name.startswith(_APART)
                        and plain
                        and tape.pack_seq(lane, number) < tape.changed.get(name, sys.maxsize)
                    ):
                        found.setdefault(name, value)
    return {**_changed(tape), **found, "PYTHONHASHSEED": None}


def _changed(tape: Tape) -> dict[str, str | None]:
    """Return variables that cannot have been what they are here: the program set them to just that, or removed them."""
    found: dict[str, str | None] = {}
    for effect in tape.effects():
        name, detail = effect["target"], effect.get("detail") or {}
        if effect["what"] != "environment.changed" or name in _OURS or name in found or name.startswith(_APART):
            continue
        here, given = os.environ.get(name), as_text((detail.get("set") or {}).get(name))
        if detail.get("removed") and here is None:
            found[name] = ""
        elif here is not None and (here == given or str(given).startswith("[redacted:")):
            found[name] = None
    return found


def _zone(tape: Tape) -> str | None:
    """Return the time zone of the recorded program: its name, or what is known of it otherwise."""
    assert tape.started is not None
    facts = (tape.reader.resolve(tape.started).data.get("environment") or {}).get("timezone") or {}
    zone, names, offset = facts.get("zone"), facts.get("names"), facts.get("offset_s")
    if isinstance(zone, str):
        return zone
    if not (isinstance(names, list) and len(set(names)) == 1 and isinstance(offset, int) and offset % 3600 == 0):
        return None
    return f"<{names[0]}>{-offset / 3600:g}"
