"""Estimate what the runs of a list cost, from the index and the prices in force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead.store.index_questions import Questions


def add_costs(index: Questions, runs: Sequence[dict[str, Any]]) -> None:
    """Set `cost`, `cost_unpriced` and `calls_without_usage` of each run, without what a tape answered."""
    asked = [run["id"] for run in runs if run["model_calls"]]
    found = {}
    if asked:
        # Here: a list of runs that asked no model does not need it.
        from playhead._api.spending import costs_of
        from playhead.store.price_list import price_list_at

        found = costs_of(index, asked, price_list_at(index.root))
    for run in runs:
        bill = found.get(run["id"])
        run["cost"], run["cost_unpriced"] = (bill.amount, bill.unpriced) if bill else (None, [])
        run["calls_without_usage"] = bill.silent if bill else 0
