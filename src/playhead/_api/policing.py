"""Ask a policy: what it says about something, and what it would have said about runs that were recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from playhead import settings as settings_module
from playhead._api.reading import Run
from playhead._api.settling import Settled
from playhead.capture import enforcing
from playhead.errors import NotComparable, PlayheadError, UsageError
from playhead.event.envelope import Event
from playhead.policy import rules
from playhead.policy.backtest import Backtest, backtest
from playhead.policy.rules import Rules
from playhead.store.price_list import PriceList, price_list_of
from playhead.store.reader import RunReader
from playhead.views.facts import Facts
from playhead.views.points import words
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
            events = list(Settled(RunReader(run.store, run.id)).resolved())
            is_its_own = _is_its_own(run, policy)
            if "cost" in policy.limits:
                sold = price_list_of(run.store)
                yield backtest(policy, run.id, events, _costs(sold, events), sold.knows, is_its_own=is_its_own)
            else:
                yield backtest(policy, run.id, events, is_its_own=is_its_own)
        except PlayheadError as problem:
            raise NotComparable(f"{run.id} cannot be read to its end: {problem.message}") from problem


def _is_its_own(run: Run, policy: Rules) -> bool:
    """Say whether a run was recorded under a policy that says the same, enforced or not."""
    try:
        found = enforcing.kept(run.store, run.id)
    except PlayheadError:
        return False  # it is not as it was
    return found is not None and (found.capabilities, found.limits) == (policy.capabilities, policy.limits)


def doubts(policy: Rules) -> list[str]:
    """Say what a limit is about that cannot be known here: what models cost."""
    own = settings_module.load().prices
    sold = PriceList(own)
    if "cost" not in policy.limits or sold.is_whole:
        return []
    others = f"all but {', '.join(own)}" if own else "every model"
    return [
        f"limits.cost denies a model of which nobody knows what it costs, which is {others} here: {sold.to_know_more}"
    ]


def unjudged(found: Iterable[Backtest]) -> list[str]:
    """Say which limit could not be judged, and of which models."""
    denied = (str(one["resource"]) for each in found for one in each.denied if one["rule"] == rules.UNPRICED)
    if not (models := list(dict.fromkeys(denied))):
        return []
    more = PriceList(settings_module.load().prices).to_know_more
    return [f"limits.cost cannot be judged, since nobody knows what {', '.join(models)} costs: {more}"]


def _costs(sold: PriceList, events: Iterable[Event]) -> dict[int, float]:
    """Return what the answers of models cost, by their seq."""
    facts, asked, found = Facts(), dict[str | None, str](), dict[int, float]()
    for event in events:
        if event.kind == "model.invoked":
            asked[event.span] = words(event.data.get("model"))
        bill = Bill(sold)
        for fact in facts.take(event):
            if fact.kind == "model":
                fact.charge(bill)
                if bill.unpriced:  # by the name by which it was asked, which the policy was asked about
                    fact.model = asked.get(fact.span)
                    fact.charge(bill)
        if bill.amount is not None:
            found[event.seq] = bill.amount
    return found
