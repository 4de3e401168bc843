"""Type the payloads of what a replay says of itself."""

from __future__ import annotations

from typing import Any

from playhead.event.payload import Payload


class ReplayDeviated(Payload):
    """Say where a replay differs from the run that it replays."""

    KIND = "replay.deviated"
    type: str  # changed, added, removed, repeated, moved, unanswered, output, read, write, network, process
    text: str  # for people: what was asked, the nearest that was recorded, the words that differ, the usual cause
    seq: int | None = None  # of the recorded question, or the nearest one
    at: int | None = None  # of the question in the replay
    lane: str | None = None
    kind: str | None = None
    name: str | None = None
    changes: list[Any] = []  # path, left, right
    cause: str | None = None
    recorded_times: int | None = None
    asked_times: int | None = None
    where: str | None = None  # file and line of the program


class ReplayReported(Payload):
    """Say, at the end of a process that was replayed, what became of the tape in it."""

    KIND = "replay.reported"
    answered: int = 0  # calls, from the tape
    calls: int = 0  # on the tape
    unasked: list[int] = []  # the seqs of those that this process did not ask for
    unasked_count: int = 0
    deviations: int = 0
    drift: list[Any] = []  # source, where, count: reads that were answered from elsewhere, or by the world
    blocked: list[Any] = []  # what, detail: attempts to touch the world
    normalised: list[Any] = []  # at, key: questions that are those of the tape once they are normalised
    stalls: list[Any] = []  # what was let go out of its turn, and what it had waited for
    reads: dict[str, Any] = {}  # by sort of source: served, drifted (to another asker), extra (not on the tape)
    written: list[str] = []  # files in the scratch overlay
    wrote: dict[str, str] = {}  # by file that the program wrote: file and line of its code that did
    code_changed: list[str] = []  # files of the program that are not what they were


class RunGraded(Payload):
    """Say what became of a replay of this run against itself, right after it was recorded or later."""

    KIND = "run.graded"
    verdict: str  # reproduced, differs, could_not_tell
    replay: str | None = None  # the run of the replay
    sources: list[Any] = []  # source, recorded, served, drifted, extra, verdict
    first: dict[str, Any] | None = None  # the first difference
    count: int = 0  # of differences
