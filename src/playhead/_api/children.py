"""Find the runs of Pythons that the program of a run started: by the index where there is one."""

from __future__ import annotations

from playhead._api.reading import Run, open_index
from playhead.store.family import CHILD, children
from playhead.store.files import FileStore

_CHILDREN = "SELECT id FROM runs WHERE json_extract(origin, '$.mode') = ? AND json_extract(origin, '$.run') = ?"


def children_of(run: Run) -> list[Run]:
    """Return the runs of programs that this one's program started, and that those started, each after its parent."""
    if type(run.store) is not FileStore:
        return [Run(run.store, id) for id in children(run.store, run.id)]
    out: list[str] = []
    with open_index(run.store) as index:
        parents = [run.id]
        while parents:
            rows = index.query(f"{_CHILDREN} ORDER BY id", [CHILD, parents.pop(0)])[1]
            new = [str(id) for (id,) in rows if id not in out and id != run.id]
            out += new
            parents += new
    return [Run(run.store, id) for id in out]
