"""What is known of spans is given back as it was, whether it fits into little space or not."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead._api.receiving.span_table import Known, SpanTable

_HEX = st.text("0123456789abcdef", min_size=16, max_size=16)
_IDS = st.one_of(_HEX, st.builds(lambda one, two: f"{one}{two}:{one}", _HEX, _HEX), st.text(max_size=20))
_TIMES = st.integers(-(2**63), 2**63)
_KNOWN = st.builds(
    Known,
    digests=st.one_of(_HEX, st.builds(lambda one, two: f"{one} {two}", _HEX, _HEX), st.text(max_size=5)),
    opens=st.sampled_from(["step.started", "model.invoked", "tool.called", "http.sent"]),
    opened=st.integers(0, 2**40),
    seq=st.integers(0, 2**40),
    parent=st.one_of(st.none(), _IDS),
    start_us=_TIMES,
    end_us=_TIMES,
    answer=st.one_of(st.none(), st.text(max_size=9)),
    same_as=st.one_of(st.none(), _HEX),
)


@given(st.lists(st.tuples(_IDS, _KNOWN), max_size=20))
def test_what_is_known_of_a_span_comes_back_as_it_was(given_: list[tuple[str, Known]]) -> None:
    table, plain = SpanTable(), dict[str, Known]()
    for id, known in given_:
        table[id] = plain[id] = known
    assert {id: table[id] for id in table} == plain
    assert len(table) == len(plain)
    assert all(id in table for id in plain)


def test_a_span_that_is_not_known_is_not_there() -> None:
    table = SpanTable()
    assert "00f067aa0ba902b7" not in table
    assert table.get("x") is None
    with pytest.raises(KeyError):
        table["00f067aa0ba902b7"]


def test_a_hundred_thousand_spans_take_little() -> None:
    table = SpanTable()
    tracemalloc.start()
    for number in range(1, 100_001):
        table[f"{number:016x}"] = Known(f"{number:016x}", "step.started", 2 * number, 2 * number + 1, f"{1:016x}", 5, 9)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size < 20_000_000
