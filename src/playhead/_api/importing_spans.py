"""Import what another system exported: the runs of LangSmith, as spans, the way that those of a server go."""

from __future__ import annotations

import contextlib

import msgspec

from playhead._api.receiving.intake import Intake
from playhead._api.stores import open_own_index
from playhead.capture.opening import default_settings
from playhead.errors import StoreError
from playhead.ingest.otlp.langsmith import read_runs
from playhead.store import layout
from playhead.store.alone import unserved
from playhead.store.files import FileStore
from playhead.store.index import Index


class TakenRun(msgspec.Struct):
    """A run that spans of an export belong to."""

    run: str
    name: str | None
    status: str
    added: bool  # something of it was new


class ImportedSpans(msgspec.Struct):
    """What an export became."""

    spans: int  # that were in it
    runs: list[TakenRun]


def import_langsmith(data: bytes, store: FileStore) -> ImportedSpans:
    """Import an export of LangSmith, a run for each session or trace; what the store has already is not added again."""
    spans = read_runs(data)
    store.make_root()
    above = store.root.parent.parent  # of the store that a project belongs to
    roots = [above, store.root] if layout.is_store(above) and layout.is_project(store.root) else [store.root]
    with contextlib.ExitStack() as stack:
        for root in roots:
            stack.enter_context(unserved(layout.serving(root), lambda: _served(store)))
        index = open_own_index(store)
        try:
            intake = Intake(store.root, lambda: index, default_settings())
            try:
                added = set(intake.take(spans))
                for run in added:
                    intake.finish(run)  # an export is whole: nothing more will come
            finally:
                intake.close()
            known = {run for trace in {span.trace for span in spans} for run in _runs_with(index, trace)}
            rows = filter(None, map(index.get, sorted(known | added)))
            return ImportedSpans(
                len(spans), [TakenRun(row["id"], row["name"], row["status"], row["id"] in added) for row in rows]
            )
        finally:
            index.close()


def _runs_with(index: Index, trace: str) -> list[str]:
    return [str(run) for (run,) in index.query("SELECT run FROM traces WHERE trace = ?", (trace,))[1]]


def _served(store: FileStore) -> StoreError:
    return StoreError(
        f"a server serves {store.root}, and writes to the runs that this would write to",
        hint="Stop it, or import into another store (`--store DIR`) and bring the runs over with `pack` and `unpack`.",
    )
