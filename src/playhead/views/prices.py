"""Work out what model calls cost, from the tokens that they used and the terms at which their models are sold.

An estimate it is: discounts, batches, writes to a cache and searches are not in it. A model whose terms nobody knows
has no cost, which is said, and never counts as nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from playhead.views import text

Rate = Sequence[Sequence[float]]  # dollars for a million tokens, each with the input from which on they are asked
Tariff = dict[str, Any]  # since_us, daily_us; input, cached, output, reasoning, which are rates; request, in dollars
Terms = Sequence[Tariff]  # the last one that is in force counts; where none is, the first
Prices = Callable[[str | None, str], Terms | None]  # by provider and model; None where nobody knows

DAY_US = 86_400_000_000
UNNAMED = "(unnamed)"  # a model that nobody named

_MILLION = 1_000_000
_RATES = ("input", "cached", "output", "reasoning")


class Used(NamedTuple):
    """What one call used, or several that are sold on the same terms."""

    tokens_in: int = 0  # cached ones too
    tokens_out: int = 0  # what was thought too
    cached: int = 0
    reasoning: int = 0
    calls: int = 1  # that used something


class Breaks(NamedTuple):
    """Where terms change: calls between which there is none of these are sold alike."""

    moments_us: frozenset[int] = frozenset()  # since 1970
    daily_us: frozenset[int] = frozenset()  # since midnight, UTC
    tokens: frozenset[int] = frozenset()  # of input: above them

    def among(self, first_us: int, last_us: int, largest: int) -> Breaks:
        """Return those that lie between calls of a time, the largest of which had so much input."""
        return Breaks(
            frozenset(at for at in self.moments_us if first_us < at <= last_us),
            self.daily_us,
            frozenset(size for size in self.tokens if size < largest),
        )


def breaks(all_terms: Iterable[Terms | None]) -> Breaks:
    """Return where any of these terms change."""
    tariffs = [tariff for terms in all_terms for tariff in terms or ()]
    rates = [tariff[name] for tariff in tariffs for name in _RATES if tariff.get(name)]
    return Breaks(
        frozenset(tariff["since_us"] for tariff in tariffs if tariff.get("since_us") is not None),
        frozenset(at for tariff in tariffs for at in tariff.get("daily_us") or ()),
        frozenset(int(over) for rate in rates for over, _ in rate[1:]),
    )


def cost(terms: Terms, used: Used, at_us: int | None, largest: int | None = None) -> float:
    """Return what was used, in dollars. `largest` is the input of one of the calls, where they are several."""
    tariff = _in_force(terms, at_us)
    each = used.tokens_in if largest is None else largest
    cached = min(used.cached, used.tokens_in) if tariff.get("cached") else 0
    reasoning = min(used.reasoning, used.tokens_out) if tariff.get("reasoning") else 0
    amount = (
        (used.tokens_in - cached) * _at(tariff.get("input"), each)
        + cached * _at(tariff.get("cached"), each)
        + (used.tokens_out - reasoning) * _at(tariff.get("output"), each)
        + reasoning * _at(tariff.get("reasoning"), each)
    )
    return amount / _MILLION + used.calls * (tariff.get("request") or 0.0)


def priced(
    prices: Prices | None,
    provider: str | None,
    model: str,
    used: Used,
    at_us: int | None = None,
    largest: int | None = None,
    said: float | None = None,
) -> tuple[float | None, str | None]:
    """Return what calls of one model cost; and the model, where nobody knows. `said` is what the provider itself asks.

    Calls that failed, or of which nobody knows what they used, have neither.
    """
    if said is not None:
        return said, None
    if not used.tokens_in and not used.tokens_out:
        return None, None
    terms = None if prices is None else prices(provider, model)
    return (cost(terms, used, at_us, largest), None) if terms else (None, model or UNNAMED)


class Bill:
    """Add up what calls cost. `amount` is None where nothing could be priced; `unpriced` names what is not in it."""

    def __init__(self, prices: Prices | None = None) -> None:
        self.amount: float | None = None
        self.unpriced: list[str] = []  # models, each once
        self.silent = 0  # calls that are not in it
        self._prices = prices
        self._known: set[str] = set()  # of these

    def add(
        self,
        provider: str | None,
        model: str,
        used: Used,
        at_us: int | None = None,
        *,
        largest: int | None = None,
        said: float | None = None,
        silent: int = 0,
    ) -> None:
        """Add calls of one model, made then.

        `said` is what the provider itself asks for them; of `silent` ones nobody knows what they used.
        """
        self.silent += silent
        amount, unpriced = priced(self._prices, provider, model, used, at_us, largest, said)
        if amount is not None:
            self.amount = (self.amount or 0.0) + amount
        if unpriced is not None and unpriced not in self._known:
            self._known.add(unpriced)
            self.unpriced.append(unpriced)


def _in_force(terms: Terms, at_us: int | None) -> Tariff:
    for tariff in reversed(terms):
        since_us, daily_us = tariff.get("since_us"), tariff.get("daily_us")
        if at_us is None:  # nobody knows when: as it is now, at most hours
            if daily_us is None:
                return tariff
        elif (since_us is None or at_us >= since_us) and (daily_us is None or _within(at_us % DAY_US, *daily_us)):
            return tariff
    return terms[0]


def _within(time_us: int, start_us: int, end_us: int) -> bool:
    if end_us < start_us:  # over midnight
        return time_us >= start_us or time_us < end_us
    return start_us <= time_us < end_us


def _at(rate: Rate | None, tokens_in: int) -> float:
    """Return the price for input of this size: that of the highest step that it is above."""
    if not rate:
        return 0.0
    if len(rate) == 1:
        return rate[0][1]
    return next((price for over, price in reversed(rate) if tokens_in > over), rate[0][1])


def money(amount: float) -> str:
    """Write an amount in US dollars with the digits that matter."""
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.4f}" if amount >= 0.0001 else "<$0.0001"


def told(amount: float | None, unpriced: list[str], silent: int = 0) -> str:
    """Say what a run cost, for people; empty where there is nothing to say. `silent` calls did not say their tokens."""
    missing = f"no price is known for {', '.join(unpriced)}" if unpriced else ""
    if amount is None:
        return missing
    missing = "; ".join(filter(None, (missing, silent_calls(silent))))
    known = money(amount) if amount else "nothing"
    about = known.replace("<", "less than ") if known.startswith("<") else f"about {known}"
    return f"{about}, estimated" + (f"; {missing}" if missing else "")


def silent_calls(count: int) -> str:
    """Say how many calls did not say their tokens, which are in no sum; empty where all did."""
    return f"{text.several(count, 'call')} did not say {'its' if count == 1 else 'their'} tokens" if count else ""
