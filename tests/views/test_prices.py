from __future__ import annotations

import pytest

from playhead.views.prices import DAY_US, UNNAMED, Bill, Breaks, Used, breaks, cost, money, told

FLAT = [{"input": [[0, 10.0]], "cached": [[0, 1.0]], "output": [[0, 100.0]]}]
M = 1_000_000


def sold(**models: list[dict]):
    return lambda provider, model: models.get(model)


def test_cached_tokens_have_their_own_price_and_are_part_of_the_input() -> None:
    assert cost(FLAT, Used(M, 10_000, 400_000), None) == pytest.approx(6.0 + 0.4 + 1.0)
    without = [{"input": [[0, 10.0]], "output": [[0, 100.0]]}]  # no price for cached ones: as dear as the others
    assert cost(without, Used(M, 0, 400_000), None) == pytest.approx(10.0)
    assert cost(FLAT, Used(100, 0, 5000), None) == pytest.approx(100 / M)  # more from the cache than there was


def test_thought_costs_what_is_said_of_it_and_a_call_may_cost_by_itself() -> None:
    thinking = [{"input": [[0, 0.0]], "output": [[0, 1.0]], "reasoning": [[0, 3.0]], "request": 0.005}]
    assert cost(thinking, Used(0, M, 0, 250_000, calls=2), None) == pytest.approx(0.75 + 0.75 + 0.01)


def test_long_input_is_sold_at_the_price_of_its_size_and_all_of_it() -> None:
    terms = [{"input": [[0, 1.0], [200_000, 2.0]], "output": [[0, 10.0], [200_000, 20.0]]}]
    assert cost(terms, Used(200_000, M), None) == pytest.approx(0.2 + 10)
    assert cost(terms, Used(200_001, M), None) == pytest.approx(0.400002 + 20)
    assert cost(terms, Used(400_000, 0, calls=4), None, largest=100_000) == pytest.approx(0.4)  # none of them was long


def test_the_last_price_in_force_at_the_time_of_the_call_counts() -> None:
    day, night = 1000 * DAY_US, [20 * DAY_US // 24, 4 * DAY_US // 24]
    terms = [
        {"input": [[0, 1.0]]},
        {"input": [[0, 2.0]], "since_us": day},
        {"input": [[0, 0.5]], "daily_us": night},
    ]
    moments = {day - DAY_US // 2: 1.0, day - 1: 0.5, day: 0.5, day + 4 * DAY_US // 24: 2.0, day + DAY_US // 2: 2.0}
    assert {at: cost(terms, Used(M), at) for at in moments} == moments
    assert cost(terms, Used(M), None) == 2.0  # nobody knows when
    later = [{"input": [[0, 7.0]], "since_us": day}]
    assert cost(later, Used(M), 0) == 7.0  # before the first price that is known


def test_where_terms_change_is_known_and_only_what_lies_between_calls_counts() -> None:
    terms = [
        {"input": [[0, 1.0], [9, 2.0]]},
        {"output": [[0, 1.0], [20, 2.0]], "since_us": 50, "cached": [[0, 1.0]]},
        {"input": [[0, 1.0]], "daily_us": [3, 4]},
    ]
    assert breaks([terms, None, FLAT]) == Breaks(frozenset({50}), frozenset({3, 4}), frozenset({9, 20}))
    assert breaks([terms]).among(50, 70, 20) == Breaks(frozenset(), frozenset({3, 4}), frozenset({9}))
    assert breaks([terms]).among(49, 50, 9) == Breaks(frozenset({50}), frozenset({3, 4}), frozenset())


def test_a_bill_says_what_it_could_not_price() -> None:
    bill = Bill(sold(m=FLAT))
    bill.add("acme", "m", Used())  # a call that failed
    assert (bill.amount, bill.unpriced) == (None, [])
    bill.add("acme", "unknown", Used(5, 5), said=0.1)  # the provider said it
    bill.add("acme", "m", Used(M))
    assert bill.amount == pytest.approx(10.1)
    bill.add(None, "unknown", Used(5, 5))
    bill.add(None, "", Used(5, 5))
    assert bill.unpriced == ["unknown", UNNAMED]
    assert told(bill.amount, bill.unpriced[:1]) == "about $10.10, estimated; no price is known for unknown"
    nobody = Bill()
    nobody.add("acme", "m", Used(1))
    assert (nobody.amount, told(nobody.amount, nobody.unpriced)) == (None, "no price is known for m")


def test_free_is_a_price_and_unknown_is_none() -> None:
    bill = Bill(sold(local=[{"input": [[0, 0.0]], "output": [[0, 0.0]]}]))
    bill.add(None, "local", Used(10, 10))
    assert (bill.amount, told(bill.amount, bill.unpriced)) == (0.0, "about nothing, estimated")
    assert told(None, []) == told(None, [], 2) == ""
    assert told(1, [], 2) == "about $1.00, estimated; 2 calls did not say their tokens"
    assert told(0.00001, []) == "less than $0.0001, estimated"


def test_money_has_the_digits_that_matter() -> None:
    assert [money(amount) for amount in (0, 1234.5, 1.005, 0.0123, 0.00012, 0.0000001)] == [
        "$0.00", "$1,234.50", "$1.00", "$0.0123", "$0.0001", "<$0.0001",
    ]  # fmt: skip
