"""Ask a policy: what it says about something, and what it would have said about runs that were recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from playhead import settings as settings_module
from playhead._api.reading import Run
from playhead.errors import NotComparable, PlayheadError, UsageError
from playhead.event.envelope import Event
from playhead.policy import rules
from playhead.policy.backtest import Backtest, backtest
from playhead.policy.rules import Rules
from playhead.store.price_list import price_list_of
from playhead.views.facts import Facts
from playhead.views.prices import Bill


def policy_here(named: str | None = None) -> Rules:
    """Return the policy that a run would have here: that of a file, else of the settings, else of this folder."""
    path = named if named is not None else os.path.expanduser(settings_module.load().policy)
    if not os.path.lexists(path):  # a link to nothing is one that cannot be read
        other = rules.above(Path.cwd()) if named is None else None
        here = f"there is no policy here: no {path}" + (f"; there is {other}" if other is not None else "")
        raise UsageError(
            f"there is no policy {path}" if named is not None else here,
            hint=f"`--policy FILE` names one, else it is {rules.FILE} of this folder; docs/guides/policy.md shows one.",
        )
    return rules.load(path) if named is not None else rules.load(Path.cwd() / path)


def tested(policy: Rules, runs: Iterable[Run]) -> Iterator[Backtest]:
    """Say of each run what a policy would have denied."""
    for run in runs:
        try:
            events = list(run.events())
            yield backtest(policy, run.id, events, _costs(run, events) if "cost" in policy.limits else None)
        except PlayheadError as problem:
            raise NotComparable(f"{run.id} cannot be read to its end: {problem.message}") from problem


def _costs(run: Run, events: Iterable[Event]) -> dict[int, float]:
    """Return what the answers of models cost, by their seq; nothing for a model without a price."""
    sold, facts, found = price_list_of(run.store), Facts(), dict[int, float]()
    for event in events:
        bill = Bill(sold)
        for fact in facts.take(event):
            if fact.kind == "model":
                fact.charge(bill)
        if bill.amount is not None:
            found[event.seq] = bill.amount
    return found
