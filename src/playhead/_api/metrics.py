"""Add up runs: one from its events, many from the index. What neither needs of the other is not imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from playhead._api.collecting import no_collecting
from playhead._api.points_in_time import moment_us
from playhead._api.spending import model_rows
from playhead.errors import PlayheadError, UsageError
from playhead.store.index_filter import RunFilter
from playhead.store.index_metrics import MetricsQuery
from playhead.store.index_questions import Questions
from playhead.store.price_list import price_list_of
from playhead.views.prices import Prices
from playhead.views.sums import BY, Metrics, ModelRow, RunRow, StepRow, ToolRow
from playhead.views.tally import Tally

if TYPE_CHECKING:
    from datetime import datetime
    from sqlite3 import Connection

    from playhead._api.stores import Named
    from playhead.event.envelope import Event
    from playhead.store.reader import RunReader

QUESTIONS = 9  # that are asked of the index, so that somebody can tell how far it is
_TIMED = ("models", "tools", "steps")
_PAGE_RUNS_MAX = 500  # that are asked about by their ids


def stats(
    by: str = "model",
    *,
    name: str | None = None,
    status: str | None = None,
    agent: str | None = None,
    commit: str | None = None,
    tag: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    store: Named = None,
) -> Metrics:
    """Add up the runs of a store: `playhead.stats("day", agent="fix-login").total.models.cost`."""
    from playhead._api.reading import _check_status
    from playhead._api.stores import open_index, open_store

    check_by(by)
    _check_status(status)
    files = open_store(store)
    chosen = RunFilter(
        name=name,
        status=status,
        agent=agent,
        commit=commit,
        tag=tag,
        since_us=None if since is None else moment_us(since),
        until_us=None if until is None else moment_us(until),
    )
    with open_index(files) as index:
        return stats_of(index, by, chosen, price_list_of(files))


def metrics_of_run(reader: RunReader, by: str, *, running: bool, events: Iterable[Event] | None = None) -> Metrics:
    """Add up one run, exactly; or some events of it."""
    from playhead._api.settling import Settled
    from playhead.views.metrics import metrics_of

    check_by(by)
    return metrics_of(
        Settled(reader).events() if events is None else events,
        by,
        price_list_of(reader.store),
        resolve=reader.readable,
        running=running,
        recorded_us=_recorded_us(reader),
    )


def check_by(by: str) -> None:
    """Refuse what runs cannot be added up by."""
    if by not in BY:
        raise UsageError(f"runs are not added up by {by!r}", hint=f"It is {', '.join(BY[:-1])} or {BY[-1]}.")


def _recorded_us(replay: RunReader) -> int | None:
    """Return how long the run took that an exact replay replays; None where it is none, or that one is not there."""
    from playhead.store.reader import RunReader
    from playhead.views.facts import Facts

    try:
        first = next(iter(replay.events()), None)
        origin = first.data.get("origin") if first is not None and first.kind == "run.started" else None
        if not isinstance(origin, dict) or origin.get("mode") != "exact" or not isinstance(origin.get("run"), str):
            return None
        recorded = Facts().take_all(RunReader(replay.store, origin["run"]).events())
    except PlayheadError:
        return None
    return recorded.duration_us if recorded.run is not None else None


def stats_of(
    index: Questions,
    by: str,
    chosen: RunFilter,
    terms: Prices,
    *,
    limit: int = 0,
    advance: Callable[[int], None] = lambda amount: None,
) -> Metrics:
    """Add up the runs that a filter chooses; of the groups at most so many, those that matter most, 0 for all."""

    def ask(connection: Connection) -> Metrics:
        if by != "run" or not 0 < limit <= _PAGE_RUNS_MAX:
            tally = Tally(by, terms)
            _add_up(MetricsQuery(connection, by, chosen), tally, terms, advance)
            return tally.finish(limit=limit)
        # Most of the groups would be made for nothing: only those of the newest runs are.
        tally = Tally("", terms)
        _add_up(MetricsQuery(connection, "", chosen), tally, terms, advance)
        where, values = chosen.where("r")
        sql = f"SELECT r.id FROM runs r{where and f' WHERE {where}'} ORDER BY r.id DESC LIMIT ?"
        newest = [run for (run,) in connection.execute(sql, (*values, limit))]
        page = Tally(by, terms)
        _add_up(MetricsQuery(connection, by, ids=newest), page, terms, lambda amount: None)
        sums = tally.total.runs
        left_out = (sums.count + sums.replays if sums else 0) - len(newest)
        return Metrics(by, tally.total, page.finish().groups, left_out)

    with no_collecting():
        return index.read(ask)


def _add_up(query: MetricsQuery, tally: Tally, terms: Prices, advance: Callable[[int], None]) -> None:
    _add_models(query, tally, terms)
    advance(2)
    for group, taped, *counts in query.tools():
        tally.add_tools(ToolRow(group, bool(taped), *counts))
    advance(1)
    retries: dict[str | None, int] = dict(query.step_retries())
    for row in query.steps():
        tally.add_steps(StepRow._make((*row, retries.get(row[0], 0))))
    advance(1)
    for group, replays, *counts in query.runs():
        tally.add_runs(RunRow(group, bool(replays), *counts))
    if tally.total.runs is not None and tally.total.runs.replays:
        for group, took_us, recorded_us in query.saved():
            tally.add_saved(group, took_us, recorded_us)
    advance(2)
    for section in _TIMED:
        tally.rank(section, query.took(section))
        advance(1)


def _add_models(query: MetricsQuery, tally: Tally, terms: Prices) -> None:
    for row in model_rows(query, terms):
        tally.add_models(ModelRow(*row))
    for group, number in query.model_retries():
        tally.add_retries(group, number)
