"""Find what a request names: a run of the project of whoever asks, and no other."""

from __future__ import annotations

from playhead import _limits
from playhead._api.latest import look_up
from playhead._api.reading import Run
from playhead._ids import is_run_id
from playhead.errors import RunNotFound, UsageError
from playhead.server.projects import Project
from playhead.store import layout
from playhead.store.reader import RunReader


def run_of(project: Project, reference: str) -> Run:
    """Return the run that is named by its id, the beginning of one, a name, `@last`, or the id it had outside."""
    if not reference or len(reference) > _limits.REFERENCE_CHARACTERS_MAX or "\0" in reference:
        raise UsageError("not a run", hint="Name an id, a prefix of one, a name, @last, or the id that it had outside.")
    if is_run_id(reference) and layout.timeline(project.store.folder(reference)).is_file():
        return Run(project.store, reference)
    found = look_up(project.index, reference)
    if found is None:
        raise RunNotFound(f"no run answers to {reference[:200]!r}", hint="GET /api/runs lists them.")
    return Run(project.store, found)


def reader_of(run: Run) -> RunReader:
    """Return what reads the lines of a run."""
    return RunReader(run.store, run.id)
