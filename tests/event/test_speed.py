"""The compiled inner loops give what the ones in Python give."""

from __future__ import annotations

import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.event.values import json_values

from playhead.capture import redact_quick
from playhead.event import speed
from playhead.event.plainer import Keys, Plainer
from playhead.event.survey import NotPlain, survey, survey_compiled

pytestmark = pytest.mark.skipif(
    speed.survey is None, reason="the compiled part was not built: no compiler, or PLAYHEAD_PURE=1"
)


PIECES = [b"a", b"Z9_", b" ", b"k" * 7, b"k" * 15, b"k" * 16, b"\n", b"\xff", b"=" * 40]


@given(st.one_of(st.lists(st.sampled_from(PIECES)).map(b"".join), st.binary(max_size=300)))
def test_runs_are_the_same(data: bytes) -> None:
    assert speed.find_runs is not None
    found = speed.find_runs(data, (), b"", 0, ())
    assert found is not None
    assert [(start, end) for start, end, _ in found] == list(redact_quick._runs(data))
    assert {needle for _, _, needle in found} <= {-1}
    chosen = speed.find_runs(data, (b"Z9", b"=="), b"\n", 100, ())
    first = {
        start: min((at for n in (b"Z9", b"==") if (at := data.find(n, start, end)) >= 0), default=-1)
        for start, end, _ in found
    }
    assert chosen == [
        (start, end, first[start])
        for start, end, _ in found
        if end - start >= 100 or first[start] >= 0 or data[start - 1 : start] == b"\n"
    ]


def test_of_a_very_long_run_only_the_start_is_told() -> None:
    assert speed.find_runs is not None
    assert speed.find_runs(b" " + b"k" * 5000 + b"Z9", (b"Z9",), b"", 9999, ()) == [(1, 5003, 1)]


def test_every_byte_beside_a_run_at_every_place() -> None:
    assert speed.find_runs is not None
    for byte in range(256):
        for before in range(35):
            data = b" " * before + b"k" * 15 + bytes([byte]) + b"k" * 3 + b" "
            found = [(start, end) for start, end, _ in speed.find_runs(data, (), b"", 0, ()) or ()]
            assert found == list(redact_quick._runs(data)), data


@given(st.lists(st.sampled_from([b"PRIVATE KEY", b"PRIVATE", b"V", b" KEY", b"x", b"\0"])).map(b"".join))
def test_needles_are_found_by_their_rarest_byte(data: bytes) -> None:
    assert speed.find_runs is not None
    needles = [(needle, redact_quick.rarest(needle)) for needle in (b"PRIVATE KEY", b"V", b"KEYP", b"")]
    for chosen in (needles[:1], needles[1:2], needles[2:3], needles[3:], needles[:3], needles[0:3:2], []):
        telling = tuple(chosen)
        told = speed.find_runs(data, (), b"", 0, telling) is None
        assert told == (redact_quick._find_runs(data, (), b"", 0, telling) is None)


@given(st.text(min_size=32, max_size=200), st.integers(0, 10**6))
def test_equal_texts_have_equal_keys_and_others_hardly_ever(text: str, at: int) -> None:
    assert speed.text_key is not None
    key = speed.text_key(text)
    assert key < 0
    assert speed.text_key("".join(list(text))) == key
    at %= len(text)
    changed = text[:at] + ("a" if text[at] != "a" else "b") + text[at + 1 :]
    assert speed.text_key(changed) != key
    assert speed.text_key(text + "x") != key


def surveyed(value: dict[Any, Any], compiled: bool) -> tuple[Any, ...] | None:
    plainer = Plainer(None, Keys())
    try:
        if compiled:
            assert speed.survey is not None
            survey_compiled(plainer, value, speed.survey)
        else:
            survey(plainer, value)
    except NotPlain:
        return None
    return plainer.long, plainer.lists, list(plainer.dense.values()), plainer.floats, plainer.unusual_keys


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=5))
def test_a_plain_value_is_surveyed_alike(value: dict[str, Any]) -> None:
    assert surveyed(value, True) == surveyed(value, False)


class Color(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    "value",
    [
        {"x": float("nan")},
        {"x": float("-inf")},
        {"x": 2**53},
        {"x": -(2**53)},
        {"x": 2**53 - 1},
        {"x": 10**30},
        {"x": (1,)},
        {"x": {1}},
        {"x": b"b"},
        {"x": Color.RED},
        {Color.RED: 1},
        {1: 2},
        {"$x": 1},
        {"é": [1.5, -0.0, True, None, "y" * 300]},
        {"x": [[[]]], "y": {}, "z": [{"a": "b" * 256}, {"a": "b" * 257}]},
        {f"key {number}": "v" * 30 for number in range(20)},
    ],
)
def test_odd_values_are_surveyed_alike(value: dict[Any, Any]) -> None:
    assert surveyed(value, True) == surveyed(value, False)


def test_a_cycle_is_given_up_by_both() -> None:
    loop: dict[str, Any] = {"a": [1]}
    loop["self"] = [loop, loop]
    assert surveyed(loop, True) is None
    assert surveyed(loop, False) is None


def measured(value: dict[str, Any], compiled: bool, monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Return the sizes of the containers that are over the limit."""
    plainer = Plainer(None, Keys())
    assert plainer.value(value) is value
    assert plainer.surveyed
    dense = set(plainer.dense)
    with monkeypatch.context() as patch:
        if not compiled:
            patch.setattr(speed, "sizes", None)
        plainer.measure(value)
    assert dense <= set(plainer.big)
    return plainer.big


texts = st.sampled_from(["", "a", "ü" * 20, "b" * 100, "c" * 250, "d" * 256, "e" * 257, "f" * 5000])
bulky = st.recursive(
    texts | st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=30),
    max_leaves=60,
)


@given(st.dictionaries(st.text("abc", max_size=3), bulky, max_size=5))
def test_containers_are_measured_alike(value: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert measured(value, True, patch) == measured(value, False, patch)


def test_containers_are_measured_alike_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    for depth in range(1, Plainer.depth_max + 1):
        value: dict[str, Any] = {"text": "x" * 300}
        for _ in range(depth):
            value = {"inner": value}
        plainer = Plainer(None, Keys())
        if plainer.value(value) is not value or not plainer.surveyed:
            break
        assert measured(value, True, monkeypatch) == measured(value, False, monkeypatch)
    assert depth > 10


def test_a_part_that_is_there_twice_is_measured_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    part = {"text": "x" * 300, "list": ["y" * 100] * 3}
    value = {"a": part, "b": [part, part], "c": {"d": part["list"]}}
    assert measured(value, True, monkeypatch) == measured(value, False, monkeypatch)


def test_wrong_arguments_are_errors_and_not_crashes() -> None:
    assert speed.sizes is not None
    for arguments in ((), ([], 1, 1), ({},), ({}, "1", 1)):
        with pytest.raises(TypeError):
            speed.sizes(*arguments)  # type: ignore[arg-type]
    loop: dict[str, Any] = {"text": "x" * 300}
    loop["self"] = loop
    assert set(speed.sizes(loop, 256, 50)) == {id(loop)}
    assert speed.find_runs is not None
    assert speed.survey is not None
    assert speed.names_secret is not None
    for needles in (("ab",), (b"",), (b"a",), [b"ab"]):
        with pytest.raises((TypeError, ValueError)):
            speed.find_runs(b"x", needles, b"", 0, ())  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError)):
            speed.names_secret(b"x", needles, False)  # type: ignore[arg-type]
    for wrong in (((b"ab", b""),), ((b"ab", b"z"),), ((b"ab", b"ab"),), ((b"ab",),), (b"ab",), [(b"ab", b"a")]):
        with pytest.raises((TypeError, ValueError)):
            speed.find_runs(b"x", (), b"", 0, wrong)  # type: ignore[arg-type]
    assert speed.text_key is not None
    for text in ("short", b"x" * 100):
        with pytest.raises(ValueError, match="long text"):
            speed.text_key(text)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        speed.survey([], set(), 1, 1, 1, 1)  # type: ignore[arg-type]
