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
import time
import zoneinfo
from collections.abc import Iterator
from typing import Any

import msgspec
import orjson
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.event.plain import MARKS, class_name, describe_error, restore
from playhead.event.plainer import plain
from tests.event.values import SUBCLASS_SAMPLES, Point, alike, json_values, restorable


def stored(value: Any) -> Any:
    """Return what a reader gets: the plain form, through JSON text."""
    return orjson.loads(orjson.dumps(plain(value)))


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


# Hostile objects


class _NoRepr:
    def __repr__(self) -> str:
        raise ValueError("no")


class _EndlessRepr:
    def __repr__(self) -> str:
        return repr(self)


class _NoAttributes:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class _BadMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(name)


class _BadClass(metaclass=_BadMeta):
    pass


class _Liar:
    @property
    def __class__(self) -> Any:
        return ValueError

    def __getattr__(self, name: str) -> Any:
        return self


class _ClassRaises:
    @property
    def __class__(self) -> Any:
        raise KeyError("class")


class _WrongRepr:
    def __repr__(self) -> str:
        return 5  # type: ignore[return-value]


class _SurrogateRepr:
    def __repr__(self) -> str:
        return "\ud800"


class _BadInt(int):
    def __int__(self) -> int:
        raise ValueError

    def __index__(self) -> int:
        raise ValueError


class _BadDict(dict[Any, Any]):
    def keys(self) -> Any:
        raise RuntimeError

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError


@dataclasses.dataclass
class _HalfMade:
    there: int
    gone: int

    def __post_init__(self) -> None:
        del self.gone


class _BadModel(pydantic.BaseModel):
    number: int

    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise OSError("no")


class _Array:
    """Like an array of numpy: `==` gives no bool, and truth raises."""

    dtype = "float64"
    __array_interface__: dict[str, Any] = {}

    def __eq__(self, other: object) -> Any:
        return [False]

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "array([0., 1.])"


HOSTILE: dict[str, Any] = {
    "no repr": _NoRepr, "endless repr": _EndlessRepr, "no attributes": _NoAttributes, "bad metaclass": _BadClass,
    "a liar about its class": _Liar, "class raises": _ClassRaises, "wrong repr": _WrongRepr,
    "surrogates in repr": _SurrogateRepr, "bad int": lambda: _BadInt(7), "bad dict": lambda: _BadDict({1: 2}),
    "half made": lambda: _HalfMade(1, 2), "bad model": lambda: _BadModel(number=1), "like numpy": _Array, "object": object,
    "function": lambda: test_library_types_are_encoded, "module": lambda: sys, "class": lambda: int,
    "generator": lambda: (number for number in ()), "memory view": lambda: memoryview(b"abc"), "range": lambda: range(3),
    "ellipsis": lambda: ..., "made class": lambda: type("X", (), {})(), "file": lambda: sys.stderr,
}  # fmt: skip
WRAPS: dict[str, Any] = {
    "bare": lambda x: x, "list": lambda x: [x], "dict": lambda x: {"k": x}, "deep": lambda x: (x, {"d": [[[[{"e": x}]]]]}),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("wrap", WRAPS)
def test_no_object_makes_plain_raise_and_what_is_lost_is_marked(name: str, wrap: str) -> None:
    encoded = orjson.dumps(plain(WRAPS[wrap](HOSTILE[name]())))
    assert b'"$' in encoded
    orjson.loads(encoded)


def test_an_address_in_memory_never_gets_into_a_value() -> None:
    assert stored(object()) == {"$repr": "<object object at 0x…>", "type": "builtins.object"}
    assert stored(test_library_types_are_encoded) == stored(test_library_types_are_encoded)


def test_a_long_repr_is_cut_and_says_how_much_is_missing() -> None:
    class Long:
        def __repr__(self) -> str:
            return "x" * 25_000

    assert stored(Long())["$repr"].endswith("… and 15000 more characters")


# Cycles and depth


def test_a_cycle_ends_with_a_mark() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert stored(ring) == [1, {"$cycle": 1}]
    table: dict[str, Any] = {"a": {}}
    table["a"]["up"] = table
    assert stored(table) == {"a": {"up": {"$cycle": 2}}}


def test_the_same_value_twice_is_no_cycle() -> None:
    shared = [1, {"a": 2}]
    assert stored([shared, shared, {"x": shared}]) == [shared, shared, {"x": shared}]


def _ring(branches: int) -> list[Any]:
    ring: list[Any] = []
    ring.extend([ring] * branches)
    return ring


def _all_know_all(count: int) -> list[Any]:
    nodes: list[list[Any]] = [[] for _ in range(count)]
    for node in nodes:
        node.extend(nodes)
    return nodes


def _parents(count: int) -> Any:
    root: dict[str, Any] = {"children": []}
    for number in range(count):
        root["children"].append({"parent": root, "number": number, "siblings": root["children"]})
    return root


@pytest.mark.parametrize(
    "make", [lambda: _ring(50), lambda: {"a": _ring(200)}, lambda: _all_know_all(20), lambda: {"n": _all_know_all(12)},
             lambda: _parents(100)],
    ids=["ring", "ring in a dict", "all know all", "all know all in a dict", "parents"],
)  # fmt: skip
def test_branching_cycles_do_not_explode(make: Any) -> None:
    start = time.process_time()
    encoded = orjson.dumps(plain(make()))
    assert b'"$' in encoded
    assert len(encoded) < 20_000_000
    assert time.process_time() - start < 10


def test_nested_dollar_keys_do_not_explode() -> None:
    value: Any = {"z": 1}
    for number in range(20):
        value = {"a": value, "b": {"c": number}, "$ref": "#", "\ud800": 1}
    start = time.process_time()
    assert alike(restore(stored(value)), value)
    assert time.process_time() - start < 5


def test_a_value_deeper_than_the_limit_is_cut_visibly() -> None:
    value: Any = "bottom"
    for _ in range(5000):
        value = [value]
    assert b"nested more than" in orjson.dumps(plain(value))


def test_errors_that_refer_to_each_other_do_not_explode() -> None:
    inner = [ValueError(number) for number in range(50)]
    group = ExceptionGroup("all", inner)
    for error in inner:
        error.__context__ = group
        error.__cause__ = inner[0]
    assert len(orjson.dumps(plain(group))) < 100_000


# Errors


def test_an_error_keeps_its_type_message_notes_place_and_causes() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as problem:
            problem.add_note("look here")
            raise ExceptionGroup("outer", [ValueError("one"), OSError(2, "two")]) from problem
    except ExceptionGroup as group:
        described = stored(group)["$error"]
    assert described["type"] == "ExceptionGroup"
    assert described["message"] == "outer (2 sub-exceptions)"
    assert described["cause"]["type"] == "KeyError"
    assert described["cause"]["notes"] == ["look here"]
    assert [item["message"] for item in described["errors"]] == ["one", "[Errno 2] two"]
    assert described["frames"][0]["name"] == "test_an_error_keeps_its_type_message_notes_place_and_causes"


class _BadError(Exception):
    def __str__(self) -> str:
        raise RuntimeError

    @property
    def __notes__(self) -> Any:
        raise RuntimeError

    @property
    def __cause__(self) -> Any:
        raise RuntimeError


def test_an_error_that_cannot_be_looked_at_is_still_described() -> None:
    described = describe_error(_BadError())
    assert described["type"] == class_name(_BadError)
    assert "RuntimeError" in described["message"]
    assert stored(_BadError())["$error"]["type"] == class_name(_BadError)


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
        forms.add(subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout)
    assert len(forms) == 1


def test_every_mark_that_is_written_is_in_the_table() -> None:
    samples: list[Any] = [
        b"", bytearray(), "\ud800", math.nan, 2**60, 1j, (), set(), frozenset(), {1: 2}, dt.datetime(1, 1, 1), dt.date(1, 1, 1),
        dt.time(), dt.timedelta(), decimal.Decimal(1), SUBCLASS_SAMPLES[2], SUBCLASS_SAMPLES[3], Colour.RED, Patch("", []),
        Word("name"), ValueError(), object(), signal.SIGINT, _Whole(1),
    ]  # fmt: skip
    for sample in samples:
        assert next(iter(stored(sample))) in MARKS
