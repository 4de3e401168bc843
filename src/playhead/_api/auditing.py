"""Audit: `playhead.audit("@last").counts["network"]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from playhead._api.children import children_of
from playhead._api.reading import Run
from playhead._api.stores import Named
from playhead._api.verifying import verify_all
from playhead.errors import BrokenLine, UsageError
from playhead.event import envelope
from playhead.ledger.verify import Verification
from playhead.store import layout
from playhead.store.reader import RunReader
from playhead.store.remote.reading import RemoteStore
from playhead.views.audit.findings import Audit
from playhead.views.audit.report import report
from playhead.views.audit.watching import Watched
from playhead.views.imported import standing

Reference = Run | str | Path


def audit(runs: Reference | Iterable[Reference], *, children: bool = True) -> Audit:
    """Say what one run or several touched, what they were allowed to touch, and what of that is not known.

    With the runs of Pythons that they started, unless `children` says otherwise. A record that was altered is audited
    as far as it can be read: `integrity` says first whether that is worth anything.
    """
    return audit_all([runs] if isinstance(runs, (Run, str, Path)) else runs, children=children)


def audit_all(
    runs: Iterable[Reference],
    store: Named = None,
    *,
    children: bool = True,
    together: bool = True,
    progress: Callable[[int], None] = lambda runs: None,
) -> Audit:
    """Audit every run that references name, in a store; `progress` is told of each one that is verified.

    What several of them attempted was attempted more than once; without `together` only where they are of one family.
    """
    found: dict[tuple[str, str | None], tuple[Verification, Run]] = {}  # by id and head: a copy is the same run
    known: set[str] = set()

    def take(verified: Verification, run: Run) -> None:
        found.setdefault((run.id, verified.head), (verified, run))
        known.add(run.id)

    for reference in runs:
        for verified, run in _verified(reference, store):
            take(verified, run)
            for child in children_of(run) if children else ():
                if child.id not in known:
                    take(child.verify(), child)
        progress(1)
    if not found:
        raise UsageError("there is no run to audit", hint="Name one or more: `playhead audit @last`.")
    watched = _all_watched([run for _, run in found.values()])
    told = report(
        [(verified, one) for (verified, _), one in zip(found.values(), watched, strict=True)], together=together
    )
    for about, (_, run) in zip(told.runs, found.values(), strict=True):
        about.timeline = _timeline_of(run)
    return told


def _timeline_of(run: Run) -> str | None:
    """Return where the exact lines are; None where they have no place of their own."""
    if isinstance(run.store, RemoteStore):
        return run.store.address_of(run.id)
    return None if run.path is None else str(layout.timeline(run.path))


def _verified(reference: Reference, store: Named) -> list[tuple[Verification, Run]]:
    if isinstance(reference, Run):
        return [(reference.verify(), reference)]
    return verify_all(reference, store)


def _all_watched(runs: list[Run]) -> list[Watched]:
    """Take in every run: first those whose programs may have started the others, which are older."""
    known: dict[str, Watched] = {}
    out: dict[int, Watched] = {}
    for at in sorted(range(len(runs)), key=lambda at: runs[at].id):
        known[runs[at].id] = out[at] = _watched(runs[at], known)
    return [out[at] for at in range(len(runs))]


def _watched(run: Run, others: dict[str, Watched]) -> Watched:
    """Take in all of a run that can be read."""
    reader = RunReader(run.store, run.id)
    watched = Watched(run.id, reader.readable, others)
    for event in standing(_readable(reader, watched), reader.readable):
        watched.take(event)
    return watched


def _readable(reader: RunReader, watched: Watched) -> Iterator[envelope.Event]:
    for seq, line in enumerate(reader.lines()):
        try:
            yield envelope.parse(line)
        except BrokenLine as problem:
            watched.take_unreadable(seq, problem.message)
