"""Values become JSON, lossless or visibly marked, and come back."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import itertools
import math
import os
import signal
import subprocess
import sys
import zoneinfo
from typing import Any

import msgspec
import orjson
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.event.values import SUBCLASS_SAMPLES, Point, alike, json_values, restorable, stored

from playhead.event.plain import MARKS, class_name, restore
from playhead.event.plainer import plain


class Colour(enum.Enum):
    RED = 1
    PAIR = (1, "two")


class Word(enum.StrEnum):
    NAME = "name"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Patch:
    path: str
    lines: list[Any]


class Ticket(pydantic.BaseModel):
    number: int
    patch: Any = None


class Struct(msgspec.Struct):
    left: int
    right: Any = None


TYPES: dict[str, type] = {class_name(kind): kind for kind in (Colour, Word, Rights, Patch, Ticket, Struct, Point)}


@given(restorable)
@settings(max_examples=300)
def test_a_value_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    assert alike(restore(stored(value)), value)


@pytest.mark.hard
@given(restorable)
@settings(max_examples=20_000)
def test_a_value_comes_back_equal_and_of_the_same_type_many_times(value: Any) -> None:
    assert alike(restore(stored(value)), value)


@given(json_values)
def test_json_is_left_as_it_is(value: Any) -> None:
    if not _has_dollar_key(value):
        assert orjson.dumps(plain(value)) == orjson.dumps(value)


def _has_dollar_key(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key[:1] == "$" or _has_dollar_key(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_dollar_key, value))


@pytest.mark.parametrize(
    "value",
    [
        float("nan"), float("inf"), float("-inf"), -0.0, 2**53, -(2**53), 10**400, 10**5000, -(10**5000),
        dt.datetime(2024, 10, 27, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        dt.datetime.max, dt.datetime.min, dt.time(1, 2, 3, 4, tzinfo=zoneinfo.ZoneInfo("Asia/Kathmandu")),
        dt.time(1, fold=1), dt.timedelta.max, dt.timedelta.min,
        decimal.Decimal("sNaN"), decimal.Decimal("-0E-999"), decimal.Decimal("1.10"),
        "\ud800", "a\udfffb", "\udc00\ud800", {"\ud800": "\udfff"}, ["\ud800" * 9000], {"k": "\ud800" * 40_000},
        {"$same": "0#/x"}, {"$bytes": "AAAA"}, {"$": 1}, {"a": {"$dict": []}}, {1: {2: {3: 4}}}, {None: 1, True: 2},
        {(1, 2): [3]}, {b"k": b"v"}, (), ((),), [[]], {}, set(), frozenset(), b"", bytearray(b""), b"x" * 100_000,
        bytearray(b"y" * 1000), {"a": [b"z" * 300] * 2}, "\x00", {"\x00": "\x7f"}, "😀" * 300,
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_an_awkward_value_comes_back(value: Any) -> None:
    assert alike(restore(stored(value)), value)


@pytest.mark.parametrize(
    "value",
    [Colour.RED, Colour.PAIR, Word.NAME, Rights.READ, Rights.READ | Rights.WRITE, Patch("a", [(1, 2)]), Point(1, b"2"),
     Struct(1, {2}), {Colour.RED: Word.NAME}, {Point(1, 2), Point(3, 4)}, [Patch("b", [Patch("c", [])])]],
    ids=repr,
)  # fmt: skip
def test_an_object_comes_back_when_its_class_is_given(value: Any) -> None:
    assert restore(stored(value), TYPES) == value


def test_a_pydantic_model_comes_back_when_its_class_is_given() -> None:
    ticket = Ticket(number=7, patch={"deep": [1.5, None]})
    assert restore(stored(ticket), TYPES) == ticket
    assert stored(ticket) == {"$object": class_name(Ticket), "fields": {"number": 7, "patch": {"deep": [1.5, None]}}}


@pytest.mark.parametrize("value", [{Colour.RED}, {Colour.RED: 1}, {Point(1, 2)}, frozenset({Rights.READ})], ids=repr)
def test_what_needs_a_foreign_class_stays_marked_instead_of_raising(value: Any) -> None:
    form = stored(value)
    assert restore(form) == form
    assert next(iter(form)) in MARKS


@pytest.mark.parametrize(
    "form",
    [{"$bytes": "no base64!"}, {"$bytes": {"$redacted": "rule"}}, {"$decimal": "[redacted]"}, {"$int": "x"},
     {"$datetime": "never"}, {"$datetime": {"$redacted": "r"}}, {"$timedelta": ["a"]}, {"$uuid": "x"}, {"$complex": [1, 2, 3]},
     {"$tuple": 5}, {"$dict": [[1]]}, {"$fraction": [1, 0]}, {"$time": "25:00"}, {"$set": [[1]]}],
    ids=str,
)  # fmt: skip
def test_a_mark_that_cannot_be_undone_stays_as_it_is(form: dict[str, Any]) -> None:
    assert restore(form) == form


@pytest.mark.parametrize("zone", ["Nowhere/Atlantis", "../../etc/passwd", "Europe", "/etc/passwd", ""])
def test_an_unknown_zone_keeps_the_recorded_offset(zone: str) -> None:
    got = restore({"$datetime": "2024-01-01T00:00:00+02:00", "zone": zone})
    assert got.utcoffset() == dt.timedelta(hours=2)


class _Text(str):
    __slots__ = ()


class _Whole(int):
    pass


class _Table(dict[str, Any]):
    pass


class _Moment(dt.datetime):
    pass


@pytest.mark.parametrize(
    ("value", "inner"),
    [(_Text("x"), "x"), (_Whole(5), 5), (_Whole(2**60), {"$int": str(2**60)}), (_Table(a=(1,)), {"a": {"$tuple": [1]}}),
     (_Moment(2020, 1, 1), {"$datetime": "2020-01-01T00:00:00"}), (_Table({"$same": "0#"}), {"$dict": [["$same", "0#"]]})],
)  # fmt: skip
def test_a_subclass_says_so_and_keeps_its_value(value: Any, inner: Any) -> None:
    assert stored(value) == {"$as": class_name(type(value)), "value": inner}
    if not isinstance(value, dt.datetime):  # a datetime is not made from a datetime
        assert alike(restore(stored(value), {class_name(type(value)): type(value)}), value)


@pytest.mark.parametrize("value", SUBCLASS_SAMPLES, ids=repr)
def test_library_types_are_encoded(value: Any) -> None:
    assert stored(value) is not None


def test_keys_that_are_equal_to_usual_ones_but_of_another_type_are_told_apart() -> None:
    plain({"name": 1})  # now a usual key
    assert stored({Word.NAME: 1}) == {"$dict": [[{"$enum": f"{class_name(Word)}.NAME", "value": "name"}, 1]]}
    assert stored({_Text("name"): 1}) == {"$dict": [[{"$as": class_name(_Text), "value": "name"}, 1]]}


def test_one_true_and_one_point_zero_stay_different() -> None:
    assert orjson.dumps(plain([1, True, 1.0, {"a": 1}, {"a": True}, {"a": 1.0}])) == (
        b'[1,true,1.0,{"a":1},{"a":true},{"a":1.0}]'
    )


# Determinism


@given(st.sets(st.text(max_size=5) | st.integers() | st.tuples(st.integers(), st.text(max_size=3))), st.randoms())
def test_a_set_has_one_form_whatever_order_it_was_built_in(value: set[Any], random: Any) -> None:
    items = list(value)
    random.shuffle(items)
    assert orjson.dumps(plain(set(items))) == orjson.dumps(plain(value))


def test_a_set_has_one_form_in_every_process() -> None:
    program = (
        "import orjson; from playhead.event.plainer import plain;"
        "print(orjson.dumps(plain({'a', 'b', 'c', ('d', 1), frozenset({'e', 'f'}), 5, None})).decode())"
    )
    forms = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        forms.add(
            subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
        )
    assert len(forms) == 1


def test_every_mark_that_is_written_is_in_the_table() -> None:
    samples: list[Any] = [
        b"", bytearray(), "\ud800", math.nan, 2**60, 1j, (), set(), frozenset(), {1: 2}, dt.datetime(1, 1, 1), dt.date(1, 1, 1),
        dt.time(), dt.timedelta(), decimal.Decimal(1), SUBCLASS_SAMPLES[2], SUBCLASS_SAMPLES[3], Colour.RED, Patch("", []),
        Word("name"), ValueError(), object(), signal.SIGINT, _Whole(1),
    ]  # fmt: skip
    for sample in samples:
        assert next(iter(stored(sample))) in MARKS
