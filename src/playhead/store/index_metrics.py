"""Ask the index what is added up over many runs: grouped in the database, so that few rows come out of it.

What rows mean is said in views/sums.py, which works with them; views/facts.py has the same facts of one run, by the
same rules. Steps of exact replays are left out, and what replays were told by their tape is `taped`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from playhead.store import index_retries
from playhead.store.index_filter import RunFilter

Rows = Iterator[tuple[Any, ...]]

_EXACT = "ifnull(json_extract(r.origin, '$.mode') IN ('exact', 'reingest'), 0)"
_REFUSED = "c.error LIKE 'playhead.errors.DeviationError:%'"  # nobody answered: a replay did not let it out
_MOMENT = "(r.started_us + c.elapsed_us)"
_TOOK = "max(c.latency_us, 0)"
_FAILED, _OPEN = "c.status = 'error'", "c.end_seq IS NULL"

# The innermost step around a call: what it was made in, or what the calls were made in that it is a part of.
_STEP = """coalesce(
  (SELECT s.name FROM steps s WHERE s.run = c.run AND s.span = c.parent ORDER BY s.seq LIMIT 1),
  CASE WHEN EXISTS (SELECT 1 FROM calls k WHERE k.run = c.run AND k.span = c.parent) THEN
    (WITH RECURSIVE around(span) AS (
       SELECT c.parent
       UNION
       SELECT k.parent FROM around a JOIN calls k ON k.run = c.run AND k.span = a.span WHERE k.parent IS NOT NULL)
     SELECT s.name FROM around a JOIN steps s ON s.run = c.run AND s.span = a.span LIMIT 1)
  END)"""

# By what rows are grouped, in each table; what is not here is not grouped.
_KEYS = {
    "calls": {"run": "c.run", "step": _STEP, "agent": "r.agent", "day": "substr(r.started, 1, 10)"},
    "steps": {"run": "c.run", "step": "c.name", "agent": "r.agent", "day": "substr(r.started, 1, 10)"},
    "runs": {"run": "r.id", "agent": "r.agent", "day": "substr(r.started, 1, 10)"},
}


class MetricsQuery:
    """Questions about the runs that a filter chooses, or about some by their ids; each row begins with its group."""

    def __init__(
        self, connection: Connection, by: str, chosen: RunFilter | None = None, ids: Sequence[str] | None = None
    ) -> None:
        """Group by this; nothing for no groups."""
        self._connection = connection
        self._by = by
        self._chosen = chosen or RunFilter()
        self._ids = ids

    def period(self) -> tuple[int, int]:
        """Return when the first of the runs began, and when the last one ended, in microseconds since 1970."""
        sql, values = self._from("runs", ["min(r.started_us)", "max(r.started_us + max(r.duration_us, 0))"], "")
        _, first_us, last_us = self._connection.execute(sql, values).fetchone()
        return first_us or 0, last_us or first_us or 0

    def models(
        self, moments_us: Collection[int] = (), daily_us: Collection[int] = (), tokens: Collection[int] = ()
    ) -> Rows:
        """Yield calls of models, apart where their terms may differ: at these moments, times of day, sizes of input.

        Group, provider, model, taped, one moment, largest input, tokens in, out, cached, reasoning, calls that used
        some, what the providers said that they cost, calls, errors, open, silent, refused, microseconds.
        """
        moment = _MOMENT if moments_us or daily_us else "NULL"
        apart = [
            *(f"{moment} >= {at}" for at in sorted(moments_us)),
            *(f"{moment} % 86400000000 >= {at}" for at in sorted(daily_us)),
            *(f"c.tokens_in > {size}" for size in sorted(tokens)),
        ]
        keys = ["c.provider", "c.model", "c.taped IS 1", "c.cost IS NULL", *apart]
        columns = [
            *keys[:3],
            f"max({moment})",
            "max(c.tokens_in)",
            *(_sum(f"c.{name}") for name in ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning")),
            _times("c.tokens_in > 0 OR c.tokens_out > 0"),
            "sum(c.cost)",
            "count(*)",
            *map(_times, (_FAILED, _OPEN, "c.silent", _REFUSED)),
            _sum(_TOOK),
        ]
        return self._groups("calls", columns, "c.kind = 'model'", keys, kind="model", timely=moment != "NULL")

    def tools(self) -> Rows:
        """Yield calls of tools: group, taped, calls, errors, open, refused, timed, microseconds."""
        counts = map(_times, (_FAILED, _OPEN, _REFUSED))
        columns = ["c.taped IS 1", "count(*)", *counts, "count(c.latency_us)", _sum(_TOOK)]
        return self._groups("calls", columns, "c.kind = 'tool'", ["c.taped IS 1"], kind="tool")

    def steps(self) -> Rows:
        """Yield steps: group, steps, ok, failed, open, microseconds."""
        counts = map(_times, ("c.status = 'ok'", "c.status <> 'ok'", _OPEN))
        columns = ["count(*)", *counts, _sum("max(c.duration_us, 0)")]
        return self._groups("steps", columns)

    def model_retries(self) -> Rows:
        """Yield how many questions came once more after they had failed: group, retries."""
        unlucky = "(c.run, c.key) IN (SELECT run, key FROM calls WHERE kind = 'model' AND status <> 'ok')"
        columns = ["c.run", "c.seq", "c.end_seq", "c.status", "c.provider", "c.key", "c.attempt > 1 AS said"]
        columns.append("c.taped IS 1 AS taped")
        sql, values = self._from("calls", columns, f"c.kind = 'model' AND (said OR {unlucky})", kind="model")
        return self._connection.execute(index_retries.MODELS.format(sql), values)

    def step_retries(self) -> Rows:
        """Yield how many steps came after an attempt that had failed: group, retries."""
        lane = "(SELECT e.lane FROM events e WHERE e.run = c.run AND e.seq = c.seq) AS lane"
        columns = ["c.run", "c.seq", "c.end_seq", "c.status", "c.parent", "c.name", lane, "c.attempt > 1 AS said"]
        unlucky = (
            "(c.run, ifnull(c.parent, ''), ifnull(c.name, '')) IN (SELECT run, ifnull(parent, ''), ifnull(name, '')"
            " FROM steps WHERE status <> 'ok')"
        )
        sql, values = self._from("steps", columns, unlucky)
        return self._connection.execute(index_retries.STEPS.format(sql), values)

    def runs(self) -> Rows:
        """Yield runs: group, whether they are exact replays, runs, ok, failed, microseconds."""
        counts = map(_times, ("r.status = 'ok'", "r.status IN ('error', 'crashed')"))
        columns = [_EXACT, "count(*)", *counts, _sum("r.duration_us")]
        return self._groups("runs", columns, "", [_EXACT])

    def saved(self) -> Rows:
        """Yield how long exact replays took, and the runs that they replay: group, microseconds of both."""
        recorded = "(SELECT o.duration_us FROM runs o WHERE o.id = json_extract(r.origin, '$.run'))"
        known = f"r.origin IS NOT NULL AND {_EXACT} AND r.finished IS NOT NULL AND {recorded} IS NOT NULL"
        return self._groups("runs", [_sum("r.duration_us"), _sum(recorded)], known)

    def took(self, section: str) -> Rows:
        """Yield how long each model, tool or step took, the shortest first: group, microseconds."""
        if section == "steps":
            sql, values = self._from("steps", ["max(c.duration_us, 0)"], "c.duration_us IS NOT NULL")
        else:
            kind = section.removesuffix("s")
            what = f"c.kind = '{kind}' AND c.taped IS NOT 1 AND c.latency_us IS NOT NULL"
            sql, values = self._from("calls", [_TOOK], what, kind=kind)
        return self._connection.execute(f"{sql} ORDER BY 2", values)

    def _groups(
        self,
        table: str,
        columns: Sequence[str],
        what: str = "",
        keys: Sequence[str] = (),
        *,
        kind: str = "",
        timely: bool = False,
    ) -> Rows:
        sql, values = self._from(table, columns, what, kind=kind, timely=timely)
        return self._connection.execute(f"{sql} GROUP BY {', '.join(['g', *keys])}", values)

    def _from(
        self, table: str, columns: Sequence[str], what: str, *, kind: str = "", timely: bool = False
    ) -> tuple[str, list[Any]]:
        """Return a question about a table, with the runs beside it only where something of them is asked."""
        group = "c.name" if kind and self._by == kind else _KEYS[table].get(self._by, "NULL")
        where, values = self._chosen.where("r")
        wanted = [one for one in (where, what) if one]
        if self._ids is not None:
            run = "r.id" if table == "runs" else "c.run"
            wanted.insert(0, f"{run} IN ({', '.join('?' * len(self._ids))})")
            values = [*self._ids, *values]
        if table == "runs":
            source = "runs r"
        elif table == "steps" or where or timely or group.startswith(("r.", "substr(r.")):
            source = f"runs r CROSS JOIN {table} c ON c.run = r.id"
        else:
            source = f"{table} c"
        if table == "steps":
            wanted.append(f"NOT ({_EXACT})")
        return f"SELECT {group} AS g, {', '.join(columns)} FROM {source}{_where(wanted)}", values


def _times(condition: str) -> str:
    return f"count(*) FILTER (WHERE {condition})"


def _sum(column: str) -> str:
    """Add up numbers; beyond what an integer holds it is the largest one, and no error as with `sum`."""
    return f"CAST(total({column}) AS INTEGER)"


def _where(wanted: list[str]) -> str:
    return f" WHERE {' AND '.join(wanted)}" if wanted else ""
