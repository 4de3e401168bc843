"""Ask the index what models were asked, apart where their price may differ. A list of runs needs no more than this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from playhead.store.index_metrics import MetricsQuery
from playhead.store.index_questions import Questions
from playhead.views.prices import Bill, Prices, Used, breaks

if TYPE_CHECKING:
    from sqlite3 import Connection

_AT_ONCE = 500  # runs asked about in one question


def model_rows(query: MetricsQuery, terms: Prices) -> Iterator[tuple[Any, ...]]:
    """Yield calls of models that are sold alike, in the order of the fields of ModelRow."""
    first_us, last_us = query.period()
    rows = list(query.models())
    terms_of = (terms(provider, model or "") for provider, model in {row[1:3] for row in rows})
    apart = breaks(terms_of).among(first_us, last_us, max((row[5] or 0 for row in rows), default=0))
    for row in query.models(*apart) if any(apart) else rows:
        group, provider, model, taped, at_us, largest, *used = row[:11]
        moment_us = last_us if at_us is None else at_us
        yield group, provider, model, bool(taped), moment_us, largest or 0, Used(*used), *row[11:]


def costs_of(index: Questions, runs: Sequence[str], terms: Prices) -> dict[str, Bill]:
    """Return what each of these runs cost; what a tape answered cost nothing."""
    bills = {run: Bill(terms) for run in runs}

    def ask(connection: Connection) -> None:
        for start in range(0, len(runs), _AT_ONCE):
            query = MetricsQuery(connection, "run", ids=runs[start : start + _AT_ONCE])
            for run, provider, model, taped, at_us, largest, used, said, *counts in model_rows(query, terms):
                if not taped:
                    silent = counts[3]
                    bills[run].add(provider, model or "", used, at_us, largest=largest, said=said, silent=silent)

    index.read(ask)
    return bills
