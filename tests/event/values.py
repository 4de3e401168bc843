"""Generate values: JSON as an agent sends it, and everything else that Python has."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import math
import pathlib
import uuid
from collections import Counter, OrderedDict
from typing import Any, NamedTuple

import orjson
from hypothesis import strategies as st

from playhead.event.plainer import plain

EXACT = 2**53 - 1

json_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_numbers = (
    st.integers(-EXACT, EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 1e15, 1e16, 1e21, 1e-7, 0.001, 5e-324, 1.7976931348623157e308, 2.0**53, 1e22])
)
json_leaves = st.none() | st.booleans() | json_numbers | json_text
json_values = st.recursive(
    json_leaves,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(json_text, inner, max_size=5),
    max_leaves=20,
)

zones = st.sampled_from(
    [dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=45)), dt.timezone(dt.timedelta(seconds=-3661))]
)
named_zones = st.timezones(no_cache=False)
any_text = st.text(st.characters(), max_size=20)  # lone surrogates included

# What comes back equal, whatever it was.
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**53, 2**70)
    | st.floats()
    | any_text
    | st.binary(max_size=400)
    | st.binary(max_size=20).map(bytearray)
    | st.complex_numbers()
    | st.datetimes(timezones=st.none() | zones | named_zones, allow_imaginary=True)
    | st.dates()
    | st.times(timezones=st.none() | zones | named_zones)
    | st.timedeltas()
    | st.decimals()
    | st.fractions()
    | st.uuids()
    | st.sampled_from(["a/b", "/etc", ".", "ünï"]).map(pathlib.PurePath)
)
hashable = (
    st.none() | st.integers() | any_text | st.binary(max_size=10) | st.dates() | st.tuples(st.integers(), any_text)
)
restorable = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$same", "$bytes", "$extends", "$", "a"]), inner, max_size=3)
        | st.sets(hashable, max_size=4)
        | st.frozensets(hashable, max_size=4)
    ),
    max_leaves=15,
)


def alike(left: Any, right: Any) -> bool:
    """Compare values exactly: types too, nan with nan, 0.0 with -0.0 apart, the zone and fold of a time."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    if isinstance(left, complex):
        return alike(left.real, right.real) and alike(left.imag, right.imag)
    if isinstance(left, decimal.Decimal):
        return str(left) == str(right)
    if isinstance(left, (dt.datetime, dt.time)):
        return (
            left.replace(tzinfo=None) == right.replace(tzinfo=None)
            and left.fold == right.fold
            and getattr(left.tzinfo, "key", None) == getattr(right.tzinfo, "key", None)
            and (left.tzinfo is None) == (right.tzinfo is None)
            and left.utcoffset() == right.utcoffset()
        )
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            alike(a, b) and alike(left[a], right[b]) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, (set, frozenset)):
        return sorted(map(repr, left)) == sorted(map(repr, right))
    return bool(left == right)


class Point(NamedTuple):
    x: int
    y: Any


SUBCLASS_SAMPLES: list[Any] = [
    Counter("abca"), OrderedDict([("b", 1), ("a", 2)]), fractions.Fraction(1, 3), uuid.UUID(int=7), Point(1, None),
]  # fmt: skip


def stored(value: Any) -> Any:
    """Return what a reader gets: the plain form, through JSON text."""
    return orjson.loads(orjson.dumps(plain(value)))
