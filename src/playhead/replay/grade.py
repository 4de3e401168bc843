"""Grade a recording: replay it against itself, for free, and say of each source whether it is reproduced."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from playhead.capture.opening import open_recording
from playhead.event import kinds
from playhead.replay import compare
from playhead.replay.exact import Replayed, replay_program
from playhead.replay.tape import Tape
from playhead.replay.where import CODE, ORDER, sort_of
from playhead.settings import Settings
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

# Reasons against an exact replay that a grade finds out about by itself, and names.
_FOUND_OUT = ("not_captured", "unrestorable_value", "self_replay_differs")
_CALLS = {
    "model.invoked": "model calls",
    "tool.called": "tools",
    "http.sent": "HTTP requests",
    "process.started": "processes",
    "mcp.requested": "MCP requests",
}


@dataclass
class Grade:
    """What a replay of a run against itself came to."""

    run: str
    verdict: str  # reproduced, differs, could_not_tell
    sources: list[dict[str, Any]]  # source, recorded, served, drifted, extra, verdict
    not_captured: list[dict[str, Any]]
    replay: Replayed
    differences: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead grade`."""
        return {
            "run": self.run,
            "verdict": self.verdict,
            "sources": self.sources,
            "not_captured": self.not_captured,
            "differences": self.differences,
            "replay": self.replay.as_dict(),
        }


def grade(reader: RunReader, store: FileStore, settings: Settings) -> Grade:
    """Replay a run against itself, and write into it what came of that."""
    tape = Tape(reader)
    result = replay_program(reader, store, settings, waive=_FOUND_OUT)
    replay = RunReader(store, result.run)
    verdict = {"faithful": "reproduced", "deviated": "differs"}.get(result.fidelity["verdict"], "could_not_tell")
    sources = _sources(tape, replay)
    if verdict == "reproduced" and any(one["verdict"] == "differs" for one in sources):
        verdict = "differs"
    found = Grade(reader.id, verdict, sources, result.surface["not_captured"], result, result.differences)
    recording = open_recording(store, settings, run=reader.id)
    graded = kinds.RunGraded(
        verdict=verdict,
        replay=result.run,
        sources=sources,
        first=result.fidelity["first"],
        count=result.fidelity["count"],
    )
    recording.emit(graded)
    recording.leave()
    return found


def _sources(tape: Tape, replay: RunReader) -> list[dict[str, Any]]:
    """Say of each source how much of it was recorded, and how much of that was served again."""
    told = compare.told(replay.resolved())
    served: dict[str, Counter[str]] = {}
    for report in told.reports:
        for sort, counts in (report.get("reads") or {}).items():
            served.setdefault(sort, Counter()).update(counts)
    out = [_calls(kind, name, tape, told) for kind, name in _CALLS.items()]
    recorded: Counter[str] = Counter()
    for lane in tape.lanes():
        for number in range(tape.packs(lane)):
            for one in tape.reads(lane, number):
                recorded[sort_of(f"{one.via}:{one.of}" if one.via else one.of)] += 1
    recorded.pop(CODE, None)
    if turns := recorded.pop(ORDER, 0):
        stalled = any(report.get("stalls") for report in told.reports)
        out.append(_row("order of threads and tasks", turns, 0 if stalled else turns, "drifted" if stalled else ""))
    for sort in sorted({*recorded, *served}):
        counts = served.get(sort, Counter())
        differs = counts["extra"] > 0 and sort not in ("clock", "sleeps")
        verdict = "differs" if differs else "drifted" if counts["extra"] or counts["drifted"] else "reproduced"
        row = {name: counts[name] for name in ("served", "drifted", "extra")}
        out.append({"source": sort, "recorded": recorded[sort], **row, "verdict": verdict})
    return [row for row in out if row["recorded"] or row["extra"]]


def _row(source: str, recorded: int, served: int, verdict: str) -> dict[str, Any]:
    counts = {"recorded": recorded, "served": served, "drifted": 0, "extra": 0}
    return {"source": source, **counts, "verdict": verdict or "reproduced"}


def _calls(kind: str, name: str, tape: Tape, told: compare.Told) -> dict[str, Any]:
    recorded = sum(call.kind == kind for call in tape.calls)
    asked = sum(line.startswith(f"{kind} ") for lines in told.lanes.values() for line, _ in lines)
    verdict = "reproduced" if asked == recorded else "differs"
    return {
        "source": name,
        "recorded": recorded,
        "served": min(asked, recorded),
        "drifted": 0,
        "extra": max(0, asked - recorded),
        "verdict": verdict,
    }
