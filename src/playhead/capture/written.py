"""Say at the end of a run what the files hold that the program has written, so that a replay can be compared with it.

Files that are gone again are left out, and databases, which hold more than what was written into them. Of a file that
was there before and was only added to, what was added counts.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.capture import guard
from playhead.capture.sources import contents
from playhead.event.envelope import parse
from playhead.event.tracebacks import without_frames
from playhead.store.reader import RunReader

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

_REDACTED = re.compile(rb"\[redacted:[\w.-]+\]")
_OF_FILES = b'"what":"file.'
_NO_FILES = ("/dev/", "/proc/", "/sys/")
Find = Callable[[str], str | None]
# Runs whose program did not write to the world: what says where a file is, None for nowhere; and what a path means.
_elsewhere: weakref.WeakKeyDictionary[Recording, tuple[Find, Callable[[str], str]]] = weakref.WeakKeyDictionary()


def look_elsewhere(recording: Recording, find: Find, meant: Callable[[str], str]) -> None:
    """Look for the files of a run where a function says that they are; another says which of two names one has."""
    _elsewhere[recording] = find, meant


def at_the_end(recording: Recording) -> dict[str, Any]:
    """Return what `run.finished` says of the files that were written: `files`, and `files_omitted`."""
    try:
        paths = _written(recording)
        return _said(recording, paths) if paths else {}
    except Exception as problem:
        guard.absorb(problem, recording, "what the files hold", count=0)
        return {}


def _written(recording: Recording) -> dict[str, int]:
    """Return the files whose content is the program's, in the order in which it began to write them, and from where."""
    found: dict[str, int | None] = {}  # None where something was there before that cannot be told from what was written
    reader = RunReader(recording.store, recording.id)
    meant = _elsewhere[recording][1] if recording in _elsewhere else str
    for line in reader.lines():
        if _OF_FILES not in line:
            continue
        data = reader.resolve(parse(line)).data
        what, target, detail = data.get("what"), data.get("target"), data.get("detail") or {}
        if not isinstance(target, str) or not isinstance(detail, dict):
            continue
        target = meant(target)
        if what == "file.written":
            found[target] = _start(found, target, detail)
        elif what == "file.renamed" and isinstance(detail.get("to"), str):
            move(found, target, meant(detail["to"]))
        elif what == "file.deleted":
            found.pop(target, None)
    return {path: start for path, start in found.items() if start is not None and not path.startswith(_NO_FILES)}


def _start(found: dict[str, int | None], path: str, detail: dict[str, Any]) -> int | None:
    mode = detail.get("mode")
    if mode == "sqlite":
        return None
    if detail.get("created") or mode in ("w", "x"):
        return 0
    if mode == "a":
        return found.get(path, detail.get("size"))
    return 0 if found.get(path) == 0 else None


def move(table: dict[str, Any], source: str, target: str) -> None:
    """Let a table know what lies at a path, or below it, by another one; what was there is gone."""
    table.pop(target, None)
    for path in [path for path in table if path == source or path.startswith(f"{source}/")]:
        table[target + path[len(source) :]] = table.pop(path)


def _said(recording: Recording, paths: dict[str, int]) -> dict[str, Any]:
    find, left = _elsewhere.get(recording, (None,))[0], _limits.WRITTEN_BYTES_MAX
    entries: list[dict[str, Any]] = []
    omitted = 0
    for path, start in paths.items():
        place = path if find is None else find(path)
        try:
            facts = None if place is None else os.stat(place)
            if place is None or facts is None or not stat.S_ISREG(facts.st_mode) or facts.st_size < start:
                continue
            size = facts.st_size - start
            if len(entries) >= _limits.WRITTEN_FILES_MAX:
                omitted += 1
                continue
            entry = {"path": path, "size": size, "modified_us": facts.st_mtime_ns // 1000}
            if start:
                entry["start"] = start
            if size <= min(left, _limits.WRITTEN_FILE_BYTES_MAX) and facts.st_size <= _limits.FILE_BYTES_MAX:
                left -= size
                entry["digest"] = digest(recording, contents.read(place, facts)[start:])
            entries.append(entry)
        except (OSError, ValueError, contents.Unread):
            continue  # gone again, or not to be read
    return {"files": entries, **({"files_omitted": omitted} if omitted else {})}


def digest(recording: Recording, content: bytes) -> str:
    """Return by what a content is compared with that of a replay."""
    # Of what may be kept: a short secret could be guessed from its digest. By which rule it was found is not the same
    # in a replay, where the program has not the secret but what the tape has in place of it.
    clean = _REDACTED.sub(b"[redacted]", recording.redactor.redact_bytes(content, {}))
    return hashlib.sha256(without_frames(clean)).hexdigest()
