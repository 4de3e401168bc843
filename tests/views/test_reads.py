"""Reads are told so that nobody takes what a generator drew for what a function answered."""

from __future__ import annotations

from typing import Any

import pytest

from playhead.views.reads import LaneRead, said


@pytest.mark.parametrize(
    ("of", "via", "value", "expected"),
    [
        ("random.getrandbits", "random.Random.randint", 5, "5 (random bits, used by randint)"),
        ("random.random", "random.Random.uniform", 0.5, "0.5 (from 0 to 1, used by uniform)"),
        ("random.random", "", 0.5, "0.5"),
        ("random.getrandbits", "", 48851, "48851"),
        ("time.time", "random.Random.randint", 1.5, "1.5"),
    ],
)
def test_what_was_drawn_is_told_apart_from_what_was_answered(of: str, via: str, value: Any, expected: str) -> None:
    assert said(LaneRead(4, "0", of, "__main__", via, value), 100) == expected
