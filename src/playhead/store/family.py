"""Find the runs of programs that the program of a run started, and of those that they started."""

from __future__ import annotations

from playhead.errors import BrokenLine, RunNotFound
from playhead.event.envelope import kind_of, parse
from playhead.store.base import Store

CHILD = "child"  # the mode of the origin of such a run; a replay has another


def children(store: Store, run: str) -> list[str]:
    """Return the ids of child runs and of theirs, oldest first; replays of a run are runs of their own."""
    family, found = {run}, []
    for id in sorted(store.runs()):
        if id > run and _parent(store, id) in family:  # ids are in the order of time
            family.add(id)
            found.append(id)
    return found


def _parent(store: Store, run: str) -> str | None:
    """Return the run whose program started that of this one; None where there is none, or it cannot be read."""
    try:
        first = next(store.lines(run), b"")
        origin = parse(first).data.get("origin") if kind_of(first) == "run.started" else None
    except (BrokenLine, RunNotFound):  # `doctor` tells of runs that cannot be read; one may have been pruned meanwhile
        return None
    if not isinstance(origin, dict) or origin.get("mode") != CHILD or not isinstance(origin.get("run"), str):
        return None
    return str(origin["run"])
