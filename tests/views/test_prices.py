from __future__ import annotations

import pytest

from playhead.views.prices import PRICES, Bill, Price, money, price_of, told


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai/gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4-0613", "gpt-4"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("models/gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("GPT-5-Nano", "gpt-5-nano"),
    ],
)
def test_a_model_is_found_by_the_longest_beginning_of_its_name(model: str, known: str) -> None:
    assert price_of(model) == PRICES[known] is not None


@pytest.mark.parametrize(
    "model", ["llama3", "gpt-4.5-preview", "gpt-5.1", "claude-opus-4-7", "gpt-4o-realtime-preview", "ft:gpt-4o:me", ""]
)
def test_a_model_that_is_not_in_the_table_has_no_price(model: str) -> None:
    assert price_of(model) is None
    bill = Bill()
    bill.add(model, 1000, 1000, None)
    assert (bill.amount, bill.unpriced) == (None, [model])
    assert told(bill.amount, bill.unpriced) == f"no price is known for {model}"


def test_what_the_user_says_comes_before_the_table() -> None:
    mine = {"gpt-4o": {"input": 1, "output": 2}, "my-llama": {"input": 0, "cached": 0, "output": 0}}
    assert price_of("gpt-4o-2024-08-06", mine) == Price(1, None, 2)
    assert price_of("my-llama-70b", mine) == Price(0, 0, 0)
    assert price_of("o3", mine) == PRICES["o3"]


def test_a_bill_counts_cached_tokens_at_their_own_price_and_as_part_of_the_input() -> None:
    bill = Bill({"m": {"input": 10, "cached": 1, "output": 100}, "n": {"input": 10, "output": 100}})
    bill.add("m", 1_000_000, 10_000, 400_000)
    assert bill.amount == pytest.approx(6.0 + 0.4 + 1.0)
    bill.add("n", 1_000_000, 0, 400_000)  # no price for cached ones: as dear as the others
    assert bill.amount == pytest.approx(17.4)
    bill.add("m", None, None, None)  # a call that failed
    bill.add("unknown", 5, 5, 0, 0.1)  # the provider said it
    assert bill.amount == pytest.approx(17.5)
    bill.add("unknown", 5, 5, 0)
    assert told(bill.amount, bill.unpriced) == "about $17.50, estimated; no price is known for unknown"


def test_free_is_a_price_and_unknown_is_none() -> None:
    bill = Bill({"local": {"input": 0, "output": 0}})
    bill.add("local", 10, 10, 0)
    assert (bill.amount, told(bill.amount, bill.unpriced)) == (0.0, "about nothing, estimated")
    assert told(None, []) == told(None, [], 2) == ""
    assert told(1, [], 2) == "about $1.00, estimated; 2 calls did not say their tokens"
    assert told(0.00001, []) == "less than $0.0001, estimated"


def test_money_has_the_digits_that_matter() -> None:
    assert [money(amount) for amount in (0, 1234.5, 1.005, 0.0123, 0.00012, 0.0000001)] == [
        "$0.00", "$1,234.50", "$1.00", "$0.0123", "$0.0001", "<$0.0001",
    ]  # fmt: skip
