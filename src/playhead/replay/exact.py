"""Run a recorded program again, with every answer from the tape, and say whether everything was the same."""

from __future__ import annotations

import functools
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from playhead.event.envelope import Event
from playhead.event.kinds import CALLS
from playhead.ledger.verify import Verification
from playhead.replay import compare
from playhead.replay.differing import Differing
from playhead.replay.folders import Folders, folders
from playhead.replay.places import Places
from playhead.replay.readiness import verify_run
from playhead.replay.ready import exact_readiness, refuse_unless_ready
from playhead.replay.relaunch import relaunch
from playhead.replay.tape import Tape
from playhead.settings import Settings
from playhead.store.files import FileStore
from playhead.store.price_list import PriceList
from playhead.store.reader import RunReader
from playhead.views.facts import Facts

_SHARED_STDERR = {
    "source": "stderr",
    "where": "an MCP server wrote to it too: only the program's own lines are compared",
}
_NOT_PRINTED = "what the program printed, and its exit code: a part of it was called, and not the program started"
FAITHFUL = "faithful over the recorded surface"
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    ran = relaunch(tape, store, settings, argv=argv, on_deviation=on_deviation, speed=speed)
    result = judge(tape, RunReader(store, ran.run), ran.exit_code, ran.isolation, places=ran.places)
    result.blocked += ran.blocked
    result.folder = ran.folder
    result.surface["not_captured"] += state.not_captured
    result.waived = waived
    prices = PriceList(settings.prices, store.root)
    result.cost_saved = Facts(reader.readable).take_all(reader.events()).bill(prices, taped=True).amount
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
