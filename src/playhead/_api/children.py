"""Find the runs of Pythons that the program of a run started, and back: by the index where there is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from playhead._api.costs import add_costs
from playhead._api.reading import Run
from playhead._api.stores import is_indexed, open_index
from playhead.store.family import CHILD, children
from playhead.store.files import FileStore
from playhead.store.index_questions import Questions
from playhead.store.price_list import price_list_of
from playhead.store.reader import RunReader
from playhead.store.remote.reading import RemoteStore
from playhead.views.denials import Denials
from playhead.views.timeline import Timeline

_CHILDREN = (
    "SELECT id, json_extract(origin, '$.run') FROM runs WHERE json_extract(origin, '$.mode') = ? AND id > ? ORDER BY id"
)
_CHECKED = (
    "SELECT DISTINCT run FROM policy_checks WHERE run IN (SELECT value FROM json_each(?)) AND decision <> 'allow'"
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
    if not is_indexed(run.store):
        return [_told(child) for child in runs]
    with open_index(run.store) as index:
        rows = [row for child in runs if (row := index.get(child.id)) is not None]
        add_costs(index, rows)
        denied = {id for (id,) in index.query(_CHECKED, [orjson.dumps([row["id"] for row in rows]).decode()])[1]}
    told = ("name", "status", "duration_ms", *_COUNTED)
    return [
        {
            "run": row["id"],
            **{name: row[name] for name in told},
            "denied": _denied(Run(run.store, row["id"])) if row["id"] in denied else 0,
        }
        for row in rows
    ]


def _denied(child: Run) -> int:
    """Count what a policy denied: of what is decided again and again the index has not each time."""
    denials = Denials()
    for event in child.events(resolve=False):
        if event.kind == "policy.checked":
            denials.take(event)
    return denials.count


def _told(child: Run) -> dict[str, Any]:
    found = Timeline(prices=price_list_of(child.store)).take_all(RunReader(child.store, child.id).events()).finish()
    return {
        "run": child.id,
        "name": found.name,
        "status": found.ended or "crashed",
        "duration_ms": found.duration_us / 1000,
        **{name: getattr(found, name) for name in _COUNTED},
        "denied": _denied(child),
    }


def children_of(run: Run) -> list[Run]:
    """Return the runs of programs that this one's program started, and that those started, each after its parent."""
    return with_children([run])[1:]


def with_children(runs: Sequence[Run]) -> list[Run]:
    """Return runs, each followed by those that its program started, and each once."""
    since = min((run.id for run in runs), default="")
    known: dict[object, dict[str, list[str]]] = {}  # by store, what each run started: asked for once, however many runs
    found: dict[str, Run] = {}
    for run in runs:
        family = [run.id]
        if not is_indexed(run.store):
            family += children(run.store, run.id)
        else:
            if run.store.root not in known:
                known[run.store.root] = _started(run.store, since)
            for parent in family:  # which grows meanwhile
                family += known[run.store.root].pop(parent, ())
        found.update((id, Run(run.store, id)) for id in family if id not in found)
    return list(found.values())


def _started(store: FileStore | RemoteStore, since: str) -> dict[str, list[str]]:
    """Return by run which ones its program started, in the order of time, which that of ids is."""
    found: dict[str, list[str]] = {}
    with open_index(store) as index:
        for id, parent in index.query(_CHILDREN, [CHILD, since])[1]:
            found.setdefault(str(parent), []).append(str(id))
    return found


def roots_of(index: Questions, runs: Iterable[str]) -> dict[str, str]:
    """Return for each run the oldest of its family that the store has; none for a run that it does not have."""
    named = orjson.dumps(list(runs)).decode()
    return {str(run): str(root) for run, root in index.query(_ROOTS, {"runs": named, "child": CHILD})[1]}
