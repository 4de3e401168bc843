"""Estimate what the runs of a list cost, from the index and the prices in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from playhead.store.index import Index
from playhead.views.prices import Bill

_AT_ONCE = 500  # runs asked about in one question


def add_costs(index: Index, runs: Sequence[dict[str, Any]], prices: Mapping[str, Mapping[str, float]]) -> None:
    """Set `cost` and `cost_unpriced` of each run."""
    bills = {run["id"]: Bill(prices) for run in runs if run["model_calls"]}
    ids = list(bills)
    for start in range(0, len(ids), _AT_ONCE):
        page = ids[start : start + _AT_ONCE]
        # Where a provider said what a call cost, that counts, so such calls are added up apart.
        sql = (
            "SELECT run, model, sum(tokens_in), sum(tokens_out), sum(tokens_cached), sum(cost) FROM calls"
            f" WHERE kind = 'model' AND run IN ({','.join('?' * len(page))}) GROUP BY run, model, cost IS NULL"
        )
        for run, model, tokens_in, tokens_out, cached, said in index.query(sql, page)[1]:
            bills[run].add(model or "", tokens_in, tokens_out, cached, said)
    for run in runs:
        bill = bills.get(run["id"])
        run["cost"] = bill.amount if bill else None
        run["cost_unpriced"] = bill.unpriced if bill else []
