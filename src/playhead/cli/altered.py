"""Warn where a record is not what was sealed. What is shown of such a run may be what somebody else wrote."""

from __future__ import annotations

import re
import shlex

from playhead._api.reading import Run
from playhead.cli.arguments import store_place
from playhead.cli.output import Output
from playhead.errors import Altered
from playhead.ledger.verify import Integrity
from playhead.store import layout
from playhead.store.cassettes.reading import Cassette
from playhead.store.exported import ExportedRun
from playhead.store.files import FileStore, OneRun
from playhead.store.remote.reading import RemoteStore


def warn_if_altered(found: Run, given: str, out: Output) -> Altered | None:
    """Verify a run once, warn on stderr where it was altered, and return what is wrong."""
    problem = alteration(found.verify().integrity, found, given)
    if problem is not None:
        out.warn(f"playhead: {problem.message}\n  {problem.hint}")
    return problem


def alteration(integrity: Integrity, found: Run, given: str) -> Altered | None:
    """Return what is wrong with the record of a run that was verified; `given` is how the user named it."""
    if integrity.verdict == "intact" and integrity.reason != "cut_tail":
        return None
    return Altered(
        f"this record was altered: {explained(integrity, found)}",
        hint=f"`playhead verify {name_of(found, given)}` says more",
        detail={"at": integrity.at, "reason": integrity.reason},
    )


def name_of(found: Run, given: str) -> str:
    """Name a run for the next command: by its id, or by the path that was given, which may be that of a copy."""
    by_path = isinstance(found.store, (OneRun, Cassette)) or "/" in given
    return shlex.quote(given) if by_path else found.id


def member_named(found: Run, id: str, store: str | None) -> str | None:
    """Name another run that lies where one does, for the next command; None where it has no name of its own there."""
    if isinstance(found.store, RemoteStore):
        return id
    if type(found.store) is not FileStore:
        return None  # in a cassette
    return id if found.store.root == store_place(store) else shlex.quote(str(found.store.folder(id)))


def explained(integrity: Integrity, found: Run | None) -> str:
    """Return what is wrong; where the bad event is first named, with its line in the file, counted as editors do."""
    message = integrity.message or ""
    if integrity.verdict == "intact" or integrity.at is None:
        return message
    store = None if found is None else found.store
    before, name = 0, layout.TIMELINE
    if isinstance(store, ExportedRun):
        before, name = store.part.line, store.path.name
    elif found is not None and isinstance(store, Cassette):
        before, name = store.place(found.id)
    place = f"event {integrity.at} (line {before + integrity.at + 1} of {name})"
    mention = re.compile(rf"\bevent {integrity.at}\b")
    if mention.search(message):
        return mention.sub(lambda _: place, message, count=1)
    return message if found is None else f"at {place}: {message}"
