"""No object makes the gate raise, hang or explode."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson
import pydantic
import pytest
from tests.event.values import alike, stored

from playhead import _limits
from playhead.event.fingerprint import fingerprint
from playhead.event.plain import class_name, describe_error, restore
from playhead.event.plainer import Plainer, plain


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
    "function": lambda: stored, "module": lambda: sys, "class": lambda: int,
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
    assert stored(stored) == stored(stored)


def test_a_long_repr_is_cut_and_says_how_much_is_missing() -> None:
    class Long:
        def __init__(self, end: str) -> None:
            self.end = end

        def __repr__(self) -> str:
            return "x" * 24_999 + self.end

    assert "… and 15000 more characters, sha256 " in stored(Long("x"))["$repr"]
    assert stored(Long("x")) != stored(Long("y")), "what is left out still counts"


def test_two_values_that_differ_only_below_the_deepest_level_stay_different() -> None:
    def nested(core: Any) -> Any:
        value = core
        for _ in range(150):
            value = [value]
        return (value,)  # a tuple, so that the general walk is taken

    assert stored(nested(1)) == stored(nested(1))
    assert stored(nested(1)) != stored(nested(2))


# Cycles and depth


def test_a_cycle_ends_with_a_mark() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert stored(ring) == [1, {"$cycle": 1}]
    table: dict[str, Any] = {"a": {}}
    table["a"]["up"] = table
    assert stored(table) == {"a": {"up": {"$cycle": 2}}}


@dataclasses.dataclass(frozen=True)
class _Pair:
    left: Any
    right: Any


PAIRS: dict[str, Any] = {
    "list": lambda x: [x, x],
    "dict": lambda x: {"a": x, "b": x},
    "tuple": lambda x: (x, x),
    "object": lambda x: _Pair(x, x),
    "set of pairs": lambda x: frozenset([(x, 1), (x, 2)]),
    "objects in lists": lambda x: [_Pair(x, 1), (x, 2)],
}


@pytest.mark.parametrize("pair", PAIRS)
def test_shared_parts_do_not_explode(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "PARTS_MAX", 2_000)
    monkeypatch.setattr(Plainer, "room", 2_000)
    monkeypatch.setattr(_limits, "DEPTH_MAX", 400)
    monkeypatch.setattr(Plainer, "depth_max", 400)

    def deep(first: Any) -> Any:
        for _ in range(33):  # 2^33 when written out
            first = PAIRS[pair](first)
        return first

    for make in (lambda x: {"v": deep(x)}, lambda x: [deep(x), b"odd"]):
        written = orjson.dumps(plain(make("x")))
        assert len(written) < 2_000_000
        assert b"<more of a value whose parts are shared too often>" in written
        assert orjson.dumps(plain(make("x"))) == written
        assert orjson.dumps(plain(make("y"))) != written


def test_what_is_shared_often_on_one_level_is_only_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "PARTS_MAX", 2_000)
    monkeypatch.setattr(Plainer, "room", 2_000)
    value = {"same": [(0, 0)] * 30_000, "lists": [[0]] * 30_000, "number": [Decimal(1)] * 30_000}
    assert restore(stored(value)) == value


def test_sets_in_sets_have_a_digest_too() -> None:
    deep: Any = frozenset([1])
    for _ in range(3000):
        deep = frozenset([deep])
    assert fingerprint(deep)


def test_a_value_is_cut_for_what_is_shared_and_never_for_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "PARTS_MAX", 2_000)
    monkeypatch.setattr(Plainer, "room", 2_000)
    value = {"many": list(range(300_000)), "tuples": [(number, (number,)) for number in range(30_000)], 1: {2: 3}}
    assert restore(stored(value)) == value


def test_two_values_that_differ_only_in_what_is_cut_off_stay_different() -> None:
    def tree(leaf: str) -> Any:
        nodes = [{"name": str(number)} for number in range(40)]
        nodes[-1]["name"] = leaf
        for node in nodes:
            node["all"] = [*nodes]  # type: ignore[assignment]
        return nodes

    one, same, other = (orjson.dumps(plain({"tree": tree(leaf)})) for leaf in ("A", "A", "B"))
    assert b'"digest"' in one
    assert one == same != other


def test_a_subclass_is_recorded_by_what_it_holds_and_not_by_what_it_answers() -> None:
    class Endless(list[int]):
        def __iter__(self) -> Iterator[int]:
            while True:
                yield 1

    class Lying(dict[str, int]):
        def keys(self) -> Any:
            raise RuntimeError

        def __iter__(self) -> Iterator[str]:
            raise RuntimeError

    assert stored(Endless([1, 2]))["value"] == [1, 2]
    assert stored(Lying({"a": 1}))["value"] == {"a": 1}


def test_an_object_that_wants_to_exit_when_it_is_looked_at_does_not() -> None:
    class Exits:
        def __repr__(self) -> str:
            raise SystemExit(3)

    assert "SystemExit" in stored(Exits())["$repr"]


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


def test_the_digest_of_what_is_too_deep_goes_by_content_alone() -> None:
    shared = [1]
    assert fingerprint([shared, shared]) == fingerprint([[1], [1]])
    assert fingerprint([Decimal(1)]) != fingerprint([Decimal(2)])
    assert fingerprint({1, 2, 3}) == fingerprint({3, 2, 1}) != fingerprint({1, 2, 4})
    assert fingerprint([10**5000]) != fingerprint([10**5000 + 1])

    class Hostile(str):
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert fingerprint([Hostile("x")])
    loop: list[Any] = []
    loop.append(loop)
    assert fingerprint(loop)
