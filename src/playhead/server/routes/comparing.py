"""Compare runs, add them up, audit them, report them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from playhead import _limits
from playhead._api.auditing import audit_all
from playhead._api.comparing import diff
from playhead._api.metrics import stats_of
from playhead._api.reading import Run
from playhead._api.reporting import report
from playhead.errors import UsageError
from playhead.server.answering import Answer, answered
from playhead.server.asking import Ask
from playhead.server.finding import run_of
from playhead.server.routes.runs import Filters, Text
from playhead.server.routing import Query, route
from playhead.store.index_filter import RunFilter
from playhead.store.price_list import price_list_of
from playhead.views.audit.findings import RULES
from playhead.views.sums import BY

By = Literal["run", "model", "tool", "step", "agent", "day"]
assert set(By.__args__) == set(BY)  # type: ignore[attr-defined]


class DiffQuery(Query):
    """Which two runs, and what of them is not compared."""

    left: Text  # the run to compare with, such as a good one
    right: Text  # the run that is compared with it, such as one that failed
    ignore: Text | None = None  # JSON pointers of fields that are not compared, * for any name; with commas
    durations: bool = False  # also what took much longer, or shorter


@route("GET", "/api/diff", group="Comparing", query=DiffQuery)
def compare_runs(ask: Ask) -> dict[str, Any]:
    """Compare two runs: the first deviation, its cause, and what follows from it. As `playhead diff --json` has it."""
    query: DiffQuery = ask.query
    left, right = (run_of(ask.project, name) for name in (query.left, query.right))
    ignore = [] if query.ignore is None else query.ignore.split(",")
    if wrong := [path for path in ignore if not path.startswith("/")]:
        raise UsageError(f"not a JSON pointer: {wrong[0]!r}", hint="A pointer begins with a slash: /output/time")
    found: dict[str, Any] = diff(left, right, ignore=ignore, durations=query.durations).as_dict()
    return found


class StatsQuery(Filters):
    """Which runs, and what they are added up by."""

    by: By = "model"  # what makes a group
    limit: Annotated[int, msgspec.Meta(ge=0, le=_limits.PAGE_MAX)] = 0  # of the groups, those that matter most; 0: all


@route("GET", "/api/stats", group="Comparing", query=StatsQuery)
def add_up(ask: Ask) -> dict[str, Any]:
    """Add up runs: tokens, cost, latency, success. As `playhead stats --json` has it."""
    query: StatsQuery = ask.query
    terms = price_list_of(ask.project.store)
    found = stats_of(ask.project.index, query.by, RunFilter(**query.chosen()), terms, limit=query.limit)
    return found.as_dict()


class RunStatsQuery(Query):
    """What a run is added up by."""

    by: By = "model"  # what makes a group


@route("GET", "/api/runs/{run}/stats", group="Comparing", query=RunStatsQuery)
def add_up_run(ask: Ask) -> dict[str, Any]:
    """Add up one run. As `playhead stats RUN --json` has it."""
    return run_of(ask.project, ask.path["run"]).metrics(ask.query.by).as_dict()


class AuditQuery(Filters):
    """Which runs are audited, and of what is told."""

    runs: Text | None = None  # their names, with commas; else those that the filters choose
    rule: Text | None = None  # only findings of these rules, with commas
    children: bool = True  # also the runs of programs that a run started


@route("GET", "/api/audit", group="Comparing", query=AuditQuery)
def audit_runs(ask: Ask) -> dict[str, Any]:
    """Say what runs touched, what they were allowed to touch, and what of that is not known.

    As `playhead audit --json` has it; of many runs at most the newest 1000.
    """
    query: AuditQuery = ask.query
    if query.runs is not None:
        chosen = [run_of(ask.project, name) for name in query.runs.split(",") if name]
    else:
        listed = ask.project.index.list_runs(limit=_limits.PAGE_MAX, **query.chosen())
        chosen = [Run(ask.project.store, one["id"]) for one in reversed(listed)]
    return _audited(chosen, query.rule, query.children, together=query.runs is not None)


class RunAuditQuery(Query):
    """Of what is told."""

    rule: Text | None = None  # only findings of these rules, with commas
    children: bool = True  # also the runs of programs that it started


@route("GET", "/api/runs/{run}/audit", group="Comparing", query=RunAuditQuery)
def audit_run(ask: Ask) -> dict[str, Any]:
    """Audit one run. As `playhead audit RUN --json` has it."""
    return _audited([run_of(ask.project, ask.path["run"])], ask.query.rule, ask.query.children, together=True)


def _audited(runs: list[Run], rule: str | None, children: bool, *, together: bool) -> dict[str, Any]:
    rules = [] if rule is None else [name.strip() for name in rule.split(",")]
    if unknown := [name for name in rules if name not in RULES]:
        raise UsageError(f"there is no rule {unknown[0]!r}", hint=f"There are: {', '.join(RULES)}.")
    found = audit_all(runs, children=children, together=together)
    return (found.only(rules) if rules else found).as_dict()


class ReportQuery(Query):
    """With what, and in which form."""

    baseline: Text | None = None  # a run that this one is compared with
    form: Literal["html", "md", "json"] = "html"  # a page, Markdown, or the data behind both


@route("GET", "/api/runs/{run}/report", group="Comparing", query=ReportQuery,
       media=("text/html", "text/markdown", "application/json"))  # fmt: skip
def report_run(ask: Ask) -> Answer:
    """Return a report in one file: a page that checks its own chain, or Markdown for a comment."""
    query: ReportQuery = ask.query
    run = run_of(ask.project, ask.path["run"])
    baseline = None if query.baseline is None else run_of(ask.project, query.baseline)
    found = report(run) if baseline is None else report(baseline, run)
    if query.form == "json":
        return answered(found)
    if query.form == "md":
        return Answer(found.markdown().encode(), media="text/markdown; charset=utf-8")
    name = f'attachment; filename="{run.id}.html"'
    return Answer(found.html().encode(), media="text/html; charset=utf-8", headers={"content-disposition": name})
