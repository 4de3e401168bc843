"""Grade a recording: replay it against itself, for free, and say of each source whether it is reproduced."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from playhead.capture.opening import open_recording
from playhead.event import kinds
from playhead.replay import compare
from playhead.replay.exact import Replayed, replay_program
from playhead.replay.ready import exact_readiness
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
    refused: dict[str, str] = field(default_factory=dict)  # what stands against an exact replay all the same
    code_changed: list[str] = field(default_factory=list)  # since it was recorded, where that may be why it differs

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead grade`."""
        return {
            "run": self.run,
            "verdict": self.verdict,
            "sources": self.sources,
            "not_captured": self.not_captured,
            "differences": self.differences,
            "refused": self.refused,
            "code_changed": self.code_changed,
            "replay": self.replay.as_dict(),
        }


def grade(reader: RunReader, store: FileStore, settings: Settings) -> Grade:
    """Replay a run against itself, and write into it what came of that.

    Where the code has changed since, a difference says nothing of the recording, and nothing is written.
    """
    tape = Tape(reader)
    result = replay_program(reader, store, settings, waive=_FOUND_OUT)
    replay = RunReader(store, result.run)
    verdict = {"faithful": "reproduced", "deviated": "differs"}.get(result.fidelity["verdict"], "could_not_tell")
    sources = _sources(tape, replay, result)
    if verdict == "reproduced" and any(one["verdict"] == "differs" for one in sources):
        verdict = "differs"
    found = Grade(reader.id, verdict, sources, result.surface["not_captured"], result, result.differences)
    if verdict == "differs" and (changed := result.surface["code_changed"]):
        found.verdict, found.code_changed = "could_not_tell", changed
        return found
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
    if verdict == "reproduced":
        found.refused = exact_readiness(reader).detail
    return found


def _sources(tape: Tape, replay: RunReader, result: Replayed) -> list[dict[str, Any]]:
    """Say of each source how much of it was recorded, and how much of that was served again."""
    told = compare.told(replay.resolved())
    served: dict[str, Counter[str]] = {}
    for report in told.reports:
        for sort, counts in (report.get("reads") or {}).items():
            served.setdefault(sort, Counter()).update(counts)
    out = [_calls(kind, name, tape, told, result) for kind, name in _CALLS.items()]
    recorded = _reads(tape)
    recorded.pop(CODE, None)
    if turns := recorded.pop(ORDER, 0):
        stalled = any(report.get("stalls") for report in told.reports)
        again = 0 if stalled else turns if result.faithful else min(turns, _reads(Tape(replay))[ORDER])
        out.append(_row("order of threads and tasks", turns, again, "drifted" if stalled or again < turns else ""))
    for sort in sorted({*recorded, *served}):
        counts = served.get(sort, Counter())
        differs = counts["extra"] > 0 and sort not in ("clock", "sleeps")
        differs = differs or (not result.faithful and counts["served"] + counts["drifted"] < recorded[sort])
        verdict = "differs" if differs else "drifted" if counts["extra"] or counts["drifted"] else "reproduced"
        row = {name: counts[name] for name in ("served", "drifted", "extra")}
        row["served"] = min(row["served"], recorded[sort])  # what does not change is recorded once, however often read
        out.append({"source": sort, "recorded": recorded[sort], **row, "verdict": verdict})
    return [row for row in out if row["recorded"] or row["extra"]]


def _reads(tape: Tape) -> Counter[str]:
    """Count what a run read, by its sort."""
    out: Counter[str] = Counter()
    for lane in tape.lanes():
        for number in range(tape.packs(lane)):
            for one in tape.reads(lane, number):
                out[sort_of(f"{one.via}:{one.of}" if one.via else one.of)] += 1
    return out


def _row(source: str, recorded: int, served: int, verdict: str) -> dict[str, Any]:
    counts = {"recorded": recorded, "served": served, "drifted": 0, "extra": 0}
    return {"source": source, **counts, "verdict": verdict or "reproduced"}


def _calls(kind: str, name: str, tape: Tape, told: compare.Told, result: Replayed) -> dict[str, Any]:
    recorded = sum(call.kind == kind for call in tape.calls)
    asked = sum(line.startswith(f"{kind} ") for lines in told.lanes.values() for line, _ in lines)
    unanswered = sum(one.get("kind") == kind and one.get("type") != "removed" for one in result.differences)
    verdict = "reproduced" if asked == recorded and not unanswered else "differs"
    return {
        "source": name,
        "recorded": recorded,
        "served": max(0, min(asked - unanswered, recorded)),
        "drifted": 0,
        "extra": max(0, asked - recorded),
        "verdict": verdict,
    }
