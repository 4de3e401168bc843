"""Find the runs of Pythons that the program of a run started, and back: by the index where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from playhead._api.reading import Run, open_index
from playhead.store.family import CHILD, children
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.store.reader import RunReader
from playhead.views.timeline import Timeline

_CHILDREN = "SELECT id FROM runs WHERE json_extract(origin, '$.mode') = ? AND json_extract(origin, '$.run') = ?"
_COLUMNS = ("run", "name", "status", "model_calls", "tool_calls")
_TOLD = "SELECT id, name, status, model_calls, tool_calls FROM runs WHERE id IN (SELECT value FROM json_each(?))"
_ROOTS = (
    "WITH RECURSIVE upward(run, above) AS (SELECT value, value FROM json_each(:runs) UNION"
    " SELECT upward.run, json_extract(runs.origin, '$.run') FROM upward JOIN runs ON runs.id = upward.above"
    " WHERE json_extract(runs.origin, '$.mode') = :child)"
    " SELECT run, min(above) FROM upward JOIN runs ON runs.id = above GROUP BY run"  # ids are in the order of time
)


def children_told(run: Run) -> list[dict[str, Any]]:
    """Return what each of them is called, how it ended, and what it called: `run`, `name`, `status` and counts."""
    ids = [child.id for child in children_of(run)]
    if not ids:
        return []
    if type(run.store) is FileStore:
        with open_index(run.store) as index:
            rows = index.query(f"{_TOLD} ORDER BY id", [orjson.dumps(ids).decode()])[1]
        return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
    out = []
    for id in ids:
        found = Timeline().take_all(RunReader(run.store, id).events()).finish()
        values = (id, found.name, found.ended or "crashed", found.model_calls, found.tool_calls)
        out.append(dict(zip(_COLUMNS, values, strict=True)))
    return out


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


def with_children(runs: Iterable[Run]) -> list[Run]:
    """Return runs, each followed by those that its program started, and each once."""
    return list({one.id: one for run in runs for one in (run, *children_of(run))}.values())


def roots_of(index: Index, runs: Iterable[str]) -> dict[str, str]:
    """Return for each run the oldest of its family that the store has; none for a run that it does not have."""
    named = orjson.dumps(list(runs)).decode()
    return {str(run): str(root) for run, root in index.query(_ROOTS, {"runs": named, "child": CHILD})[1]}
