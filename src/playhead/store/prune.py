"""Choose what may go: runs by age, number and status; blobs that no run refers to any more.

A run that a writer holds never goes. A blob goes only when it is old: a writer stores a blob, and makes one that was
there already young again, before it writes the line that names it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from playhead.errors import RunNotFound, StoreError
from playhead.store import layout, presence
from playhead.store.files import FileStore, read_lines
from playhead.store.index import Index

_BLOB = re.compile(rb'"\$?blob":"([0-9a-f]{64})"')  # `$blob` of a value, `blob` of a line that was set aside


class Candidate(NamedTuple):
    """A run that may be chosen."""

    id: str
    name: str | None
    status: str
    started_us: int


class Freed(NamedTuple):
    """What was removed."""

    blobs: int
    bytes: int


def candidates(store: FileStore, index: Index) -> list[Candidate]:
    """List every run directory, newest first: also one that holds nothing, which the index does not know."""
    known = {run["id"]: run for run in index.list_runs(limit=-1)}
    return [_candidate(store, id, known.get(id)) for id in sorted(store.runs(), reverse=True)]


def _candidate(store: FileStore, id: str, run: dict[str, Any] | None) -> Candidate:
    folder = store.folder(id)
    if run is None:
        status = "running" if presence.is_held(folder) else "crashed"
        return Candidate(id, None, status, _changed_us(folder))
    started_us = run["started_us"]
    return Candidate(id, run["name"], run["status"], _changed_us(folder) if started_us is None else started_us)


def _changed_us(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns // 1000
    except FileNotFoundError:  # removed meanwhile
        return 0


def choose(
    runs: Iterable[Candidate], *, keep: int = 0, before_us: int | None = None, status: str | None = None
) -> list[Candidate]:
    """Choose among runs, newest first: those of a status, without the newest `keep`, started before a moment."""
    fitting = [run for run in runs if status is None or run.status == status]
    return [
        run
        for place, run in enumerate(fitting)
        if place >= keep and run.status != "running" and (before_us is None or run.started_us < before_us)
    ]


def size_of(folder: Path) -> int:
    """Return how many bytes the files of a run directory hold."""
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(here, name)).st_size
            except FileNotFoundError:  # replaced meanwhile
                continue
    return total


def remove_run(store: FileStore, index: Index, id: str) -> None:
    """Remove a run; StoreError where a writer holds it."""
    if presence.is_held(store.folder(id)):
        raise StoreError(f"{id} is running", hint="It can be removed when its program has ended.")
    store.delete(id)
    index.forget(id)


def collect_blobs(store: FileStore, *, age_s_min: float, progress: Callable[[int], None] | None = None) -> Freed:
    """Remove every blob that no run refers to and that is at least this old."""
    old = [path for path in _blob_files(store.root) if _age_s(path) >= age_s_min]
    if not old:
        return Freed(0, 0)
    used = _used(store.root, progress)
    count = total = 0
    for path in old:
        # Looked at again: a writer may have met the same content since then.
        if path.name in used or _age_s(path) < age_s_min:
            continue
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:  # somebody else prunes as well
            continue
        count, total = count + 1, total + size
    return Freed(count, total)


def _blob_files(root: Path) -> Iterator[Path]:
    """Yield every file among the blobs, those included that a crash left half written."""
    for here, _, names in os.walk(layout.blobs_dir(root)):
        yield from (Path(here, name) for name in names)


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return -1.0


def _used(root: Path, progress: Callable[[int], None] | None) -> set[str]:
    """Return the digests that any run directory refers to, also a copy or a damaged one, directly or through a blob."""
    used: set[str] = set()
    waiting: list[str] = []

    def note(data: bytes) -> None:
        for found in _BLOB.findall(data):
            digest = found.decode()
            if digest not in used:
                used.add(digest)
                waiting.append(digest)

    for folder in layout.runs_dir(root).iterdir():
        if layout.is_pruned(folder):
            continue
        try:
            if layout.timeline(folder).is_file():
                for line in read_lines(layout.timeline(folder)):
                    note(line)
            if layout.private_dir(folder).is_dir():
                for path in layout.private_dir(folder).iterdir():
                    note(path.read_bytes())
        except (RunNotFound, FileNotFoundError):
            if folder.exists():  # else somebody else has just pruned it, and it needs no blob
                raise
        if progress is not None:
            progress(1)
    while waiting:
        path = layout.blob(root, waiting.pop())
        if path.is_file():
            note(path.read_bytes())
    return used
