"""Write the end of runs whose process could not: it was killed, or became another program.

The run of whoever started it knows how it ended.
"""

from __future__ import annotations

import dataclasses
import signal
from typing import TYPE_CHECKING, Any

from playhead.capture import guard
from playhead.capture.program import failure
from playhead.capture.record import join_run
from playhead.errors import PlayheadError
from playhead.event.envelope import kind_of, parse
from playhead.store import presence
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

_Exits = dict[str, tuple[int, int]]  # span of a process to its number and its exit code


def conclude(recording: Recording) -> None:
    """End the runs of programs that this run started, and of those that they started, where nobody writes any more."""
    store = recording.store
    assert isinstance(store, FileStore), "a launcher records into files"
    exits: dict[str, _Exits | None] = {recording.id: None}
    for id in store.runs():
        if id <= recording.id:
            continue  # ids are in the order of time
        try:
            origin = _origin(store, id)
            parent = origin.get("run")
            if parent not in exits:
                continue
            exits[id] = None
            if not _is_open(store, id):
                continue
            known = exits[parent]
            if known is None:
                known = exits[parent] = _exits(store, parent)
            number, code = known.get(str(origin.get("at")), (None, 0))
            seen = number is not None and number == origin.get("pid")  # not that of a shell between the two
            became = _became(store, id)
            if seen or became is not None:
                _end(recording, id, code if seen else None, became)
        except (PlayheadError, OSError) as problem:
            guard.logger.warning("the end of %s cannot be written: %s", id, problem)


def name_unwritten(recording: Recording, code: int) -> None:
    """Say that a Python may have read what it could not write any more: it was killed."""
    if (
        recording.settings.ambient and code < 0 and code != -signal.SIGINT
    ):  # with that one a Python ends itself, in order
        recording.not_captured("reads", f"of the last second, before {failure(code)['message'].rpartition(' ')[2]}")


def _origin(store: FileStore, run: str) -> dict[str, Any]:
    first = next(iter(store.lines(run)), None)
    origin = None if first is None or kind_of(first) != "run.started" else parse(first).data.get("origin")
    return origin if isinstance(origin, dict) else {}


def _is_open(store: FileStore, run: str) -> bool:
    if presence.is_held(store.folder(run)):
        return False
    return all(kind_of(line) != "run.finished" for line in store.lines(run))


def _exits(store: FileStore, run: str) -> _Exits:
    ends = (parse(line) for line in store.lines(run) if kind_of(line) == "process.exited")
    return {
        str(end.span): (end.data["pid"], end.data["exit_code"])
        for end in ends
        if end.data.get("pid") is not None and end.data.get("exit_code") is not None
    }


def _became(store: FileStore, run: str) -> str | None:
    """Return the program that the process of a run became by `exec`, which is then the last that it did."""
    last = None
    for line in store.lines(run):
        if kind_of(line) == "effect.observed":
            last = line
    data = {} if last is None else RunReader(store, run).resolve(parse(last)).data
    by = (data.get("detail") or {}).get("by")
    return str(data.get("target")) if by == "os.exec" else None


def _end(by: Recording, run: str, code: int | None, became: str | None) -> None:
    """Write the end; without a code where nobody saw it, and the program became one that is not Python."""
    recording = join_run(by.store, dataclasses.replace(by.settings, git=False), run, captures=False)
    if code is not None:
        recording.metadata["exit_code"] = code
    if became is not None:
        recording.metadata["became"] = became
    elif code is not None:
        name_unwritten(recording, code)
    recording.finish("error" if code else "ok", failure(code) if code else None)
