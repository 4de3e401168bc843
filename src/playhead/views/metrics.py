"""Add up what one run took, cost and saved, from its events.

The index has the same of many runs (store/index_metrics.py): there calls that are alike come as one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from playhead.event.envelope import Event
from playhead.views.facts import Fact, Facts
from playhead.views.prices import Prices
from playhead.views.sums import Metrics, ModelRow, RunRow, StepRow, ToolRow
from playhead.views.tally import Tally


def metrics_of(
    events: Iterable[Event],
    by: str = "model",
    prices: Prices | None = None,
    *,
    resolve: Callable[[Any], Any] | None = None,
    running: bool = False,
    recorded_us: int | None = None,
) -> Metrics:
    """Add up one run, from its events. `recorded_us` is how long the run took that it replays exactly."""
    facts = Facts(resolve).take_all(events)
    tally, is_replay = Tally(by, prices), facts.mode in ("exact", "reingest")
    of_run = {"run": facts.run, "agent": facts.agent, "day": facts.started[:10] or None}.get(by)
    failed = facts.ended == "error" or (facts.ended is None and not running)
    took_us = facts.duration_us
    tally.add_runs(RunRow(of_run, is_replay, 1, facts.ended == "ok", failed, took_us))
    if is_replay and facts.ended is not None and recorded_us is not None:
        tally.add_saved(of_run, took_us, recorded_us)
    took: dict[str, list[tuple[int, str | None]]] = {"models": [], "tools": [], "steps": []}
    for fact in facts.finish():
        section = f"{fact.kind}s"
        if section not in took or (section == "steps" and is_replay):
            continue
        group = {"step": facts.step_of(fact), "model": fact.name, "tool": fact.name}.get(by, of_run)
        if section == "models":
            tally.add_models(_model_row(group, fact))
            tally.add_retries(group, int(fact.again and fact.taped is not True))
        elif section == "tools":
            tally.add_tools(_tool_row(group, fact))
        else:
            group = fact.name if by == "step" else group
            tally.add_steps(_step_row(group, fact))
        if fact.took_us is not None and fact.taped is not True:
            took[section].append((fact.took_us, group))
    for section, found in took.items():
        tally.rank(section, ((group, us) for us, group in sorted(found, key=lambda one: one[0])))
    return tally.finish(run=facts.run)


def _model_row(group: str | None, fact: Fact) -> ModelRow:
    return ModelRow(
        group,
        fact.provider,
        fact.model,
        fact.taped is True,
        fact.at_us,
        fact.used.tokens_in,
        fact.used,
        fact.cost,
        calls=1,
        errors=fact.status == "error",
        open=not fact.ended,
        silent=fact.silent,
        refused=fact.refused,
        took_us=fact.took_us or 0,
    )


def _tool_row(group: str | None, fact: Fact) -> ToolRow:
    timed = fact.took_us is not None
    return ToolRow(
        group, fact.taped is True, 1, fact.status == "error", not fact.ended, fact.refused, timed, fact.took_us or 0
    )


def _step_row(group: str | None, fact: Fact) -> StepRow:
    ok, failed = fact.status == "ok", fact.status not in (None, "ok")
    return StepRow(group, 1, ok, failed, not fact.ended, fact.took_us or 0, fact.again)
