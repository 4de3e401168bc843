"""Estimate what model calls cost, from the tokens that they used and a table of list prices.

An estimate it is: discounts, batches, long contexts, writes to a cache and searches are not in the table. A model that
is not in it has no cost, which is said, and never counts as nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from playhead.views import text

AS_OF = "2025-10"  # when the prices were those of the providers


class Price(NamedTuple):
    """US dollars for a million tokens; without a price of their own, cached tokens cost what others do."""

    input: float
    cached: float | None
    output: float


# By the beginning of the name, up to a `-`, `@` or `:`; the longest that fits counts. None: not sold by these tokens.
PRICES: dict[str, Price | None] = {
    # OpenAI
    "gpt-5": Price(1.25, 0.125, 10.0),
    "gpt-5-mini": Price(0.25, 0.025, 2.0),
    "gpt-5-nano": Price(0.05, 0.005, 0.4),
    "gpt-5-pro": Price(15.0, None, 120.0),
    "gpt-4.1": Price(2.0, 0.5, 8.0),
    "gpt-4.1-mini": Price(0.4, 0.1, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.025, 0.4),
    "gpt-4o": Price(2.5, 1.25, 10.0),
    "gpt-4o-2024-05-13": Price(5.0, None, 15.0),
    "gpt-4o-mini": Price(0.15, 0.075, 0.6),
    "gpt-4o-audio": None,
    "gpt-4o-realtime": None,
    "gpt-4o-transcribe": None,
    "gpt-4o-mini-audio": None,
    "gpt-4o-mini-realtime": None,
    "gpt-4o-mini-transcribe": None,
    "gpt-4o-mini-tts": None,
    "gpt-4-turbo": Price(10.0, None, 30.0),
    "gpt-4-0125": Price(10.0, None, 30.0),
    "gpt-4-1106": Price(10.0, None, 30.0),
    "gpt-4-32k": Price(60.0, None, 120.0),
    "gpt-4": Price(30.0, None, 60.0),
    "gpt-3.5-turbo": Price(0.5, None, 1.5),
    "gpt-3.5-turbo-0613": Price(1.5, None, 2.0),
    "gpt-3.5-turbo-1106": Price(1.0, None, 2.0),
    "gpt-3.5-turbo-16k": Price(3.0, None, 4.0),
    "gpt-3.5-turbo-instruct": Price(1.5, None, 2.0),
    "o1": Price(15.0, 7.5, 60.0),
    "o1-mini": Price(1.1, 0.55, 4.4),
    "o1-pro": Price(150.0, None, 600.0),
    "o3": Price(2.0, 0.5, 8.0),
    "o3-mini": Price(1.1, 0.55, 4.4),
    "o3-pro": Price(20.0, None, 80.0),
    "o3-deep-research": Price(10.0, 2.5, 40.0),
    "o4-mini": Price(1.1, 0.275, 4.4),
    "o4-mini-deep-research": Price(2.0, 0.5, 8.0),
    "text-embedding-3-small": Price(0.02, None, 0.0),
    "text-embedding-3-large": Price(0.13, None, 0.0),
    "text-embedding-ada-002": Price(0.1, None, 0.0),
    # Anthropic
    "claude-opus-4": Price(15.0, 1.5, 75.0),
    "claude-opus-4-1": Price(15.0, 1.5, 75.0),
    "claude-sonnet-4": Price(3.0, 0.3, 15.0),
    "claude-sonnet-4-5": Price(3.0, 0.3, 15.0),
    "claude-haiku-4-5": Price(1.0, 0.1, 5.0),
    "claude-3-7-sonnet": Price(3.0, 0.3, 15.0),
    "claude-3-5-sonnet": Price(3.0, 0.3, 15.0),
    "claude-3-5-haiku": Price(0.8, 0.08, 4.0),
    "claude-3-opus": Price(15.0, 1.5, 75.0),
    "claude-3-sonnet": Price(3.0, 0.3, 15.0),
    "claude-3-haiku": Price(0.25, 0.03, 1.25),
    # Google
    "gemini-2.5-pro": Price(1.25, 0.125, 10.0),
    "gemini-2.5-flash": Price(0.3, 0.03, 2.5),
    "gemini-2.5-flash-lite": Price(0.1, 0.01, 0.4),
    "gemini-2.5-flash-image": None,
    "gemini-2.5-flash-preview-tts": None,
    "gemini-2.5-pro-preview-tts": None,
    "gemini-2.0-flash": Price(0.1, 0.025, 0.4),
    "gemini-2.0-flash-lite": Price(0.075, None, 0.3),
    "gemini-1.5-pro": Price(1.25, 0.3125, 5.0),
    "gemini-1.5-flash": Price(0.075, 0.01875, 0.3),
    "gemini-1.5-flash-8b": Price(0.0375, 0.01, 0.15),
    "gemini-embedding-001": Price(0.15, None, 0.0),
}

_MILLION = 1_000_000
# How gateways write the same name: `openai/gpt-4o`, `models/gemini-2.5-pro`, `us.anthropic.claude-sonnet-4-…-v1:0`.
_BEFORE_NAME = re.compile(r".*/|([a-z]+\.)*anthropic\.")
# A name of the table goes on with a date or a variant, not with another number: claude-opus-4 is not claude-opus-4-7.
_GOES_ON = re.compile(r"$|[@:]|-(?!\d{1,2}(-|@|:|$))")


def price_of(model: str, more: Mapping[str, Mapping[str, float]] | None = None) -> Price | None:
    """Return the price of a model: what the user says (`more`), else what the table says; None where neither does."""
    said = {name: Price(item["input"], item.get("cached"), item["output"]) for name, item in (more or {}).items()}
    if model in said:
        return said[model]
    name = _BEFORE_NAME.sub("", model.lower())
    for table in (said, PRICES):
        fitting = [known for known in table if name.startswith(known) and _GOES_ON.match(name, len(known))]
        if fitting:
            return table[max(fitting, key=len)]
    return None


class Bill:
    """Add up what calls cost. `amount` is None where nothing could be priced; `unpriced` names what is not in it."""

    def __init__(self, prices: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self.amount: float | None = None
        self._prices = prices
        self._unpriced: dict[str, None] = {}

    @property
    def unpriced(self) -> list[str]:
        """Return the models whose calls are not in the amount."""
        return list(self._unpriced)

    def add(
        self, model: str, tokens_in: int | None, tokens_out: int | None, cached: int | None, said: float | None = None
    ) -> None:
        """Add the calls of one model. `tokens_in` counts cached ones too; `said` is what the provider itself asks."""
        if said is None:
            if not tokens_in and not tokens_out:
                return  # a call that failed, or of which nobody knows what it used
            price = price_of(model, self._prices)
            if price is None:
                self._unpriced.setdefault(model)
                return
            cheap = min(cached or 0, tokens_in or 0)
            per_cached = price.input if price.cached is None else price.cached
            dear = (tokens_in or 0) - cheap
            said = (dear * price.input + cheap * per_cached + (tokens_out or 0) * price.output) / _MILLION
        self.amount = (self.amount or 0.0) + said


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
