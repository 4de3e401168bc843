"""Find the runs of Pythons that the program of a run started, and back: by the index where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from playhead._api.costs import add_costs
from playhead._api.reading import Run, open_index
from playhead.store.family import CHILD, children
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.store.price_list import price_list_of
from playhead.store.reader import RunReader
from playhead.views.timeline import Timeline

_CHILDREN = "SELECT id FROM runs WHERE json_extract(origin, '$.mode') = ? AND json_extract(origin, '$.run') = ?"
_DENIED = (
    "SELECT run, count(*) FROM policy_checks"
    " WHERE run IN (SELECT value FROM json_each(?)) AND decision IN ('deny', 'ask') GROUP BY run"
)
_COUNTED = (
    *("model_calls", "tool_calls", "tokens_in", "tokens_out"),
    *("cost", "cost_unpriced", "calls_without_usage"),
)
_ROOTS = (
    "WITH RECURSIVE upward(run, above) AS (SELECT value, value FROM json_each(:runs) UNION"
    " SELECT upward.run, json_extract(runs.origin, '$.run') FROM upward JOIN runs ON runs.id = upward.above"
    " WHERE json_extract(runs.origin, '$.mode') = :child)"
    " SELECT run, min(above) FROM upward JOIN runs ON runs.id = above GROUP BY run"  # ids are in the order of time
)


def children_told(run: Run) -> list[dict[str, Any]]:
    """Return of each of them what it is called, how it ended, what it called and used, and how often it was denied."""
    runs = children_of(run)
    if not runs:
        return []
    if type(run.store) is not FileStore:
        return [_told(child) for child in runs]
    with open_index(run.store) as index:
        rows = [row for child in runs if (row := index.get(child.id)) is not None]
        add_costs(index, rows)
        denied = dict(index.query(_DENIED, [orjson.dumps([row["id"] for row in rows]).decode()])[1])
    told = ("name", "status", "duration_ms", *_COUNTED)
    return [
        {"run": row["id"], **{name: row[name] for name in told}, "denied": denied.get(row["id"], 0)} for row in rows
    ]


def _told(child: Run) -> dict[str, Any]:
    found = Timeline(prices=price_list_of(child.store)).take_all(RunReader(child.store, child.id).events()).finish()
    return {
        "run": child.id,
        "name": found.name,
        "status": found.ended or "crashed",
        "duration_ms": found.duration_us / 1000,
        **{name: getattr(found, name) for name in _COUNTED},
        "denied": sum(one["times"] for one in found.denied),
    }


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
