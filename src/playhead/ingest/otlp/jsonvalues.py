"""Read the values of attributes in OTLP's JSON: `{"stringValue": …}`, `{"intValue": "5"}` and their like."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from typing import Any

from playhead import _limits
from playhead.ingest.otlp.received import Rejected, check, check_count
from playhead.ingest.otlp.spans import Repeated

_U32 = 2**32
_ODD_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_INTEGER = re.compile(r"-?[0-9]{1,20}")


def integer(value: Any, name: str) -> int:
    """Return an integer that is written as a number, as a text, or in two halves as older clients have it."""
    if value is None or value == "":
        return 0
    if type(value) is int:
        return value
    if type(value) is str and _INTEGER.fullmatch(value):
        return int(value)
    if type(value) is float and value.is_integer() and abs(value) < 2**64:
        return int(value)  # 1.79e18: as exact as the sender was
    if type(value) is dict and type(low := value.get("low")) is int and type(high := value.get("high")) is int:
        return ((high % _U32) << 32) | (low % _U32)
    raise Rejected(f"{name} is no integer")


def attributes_of(pairs: list[Any]) -> tuple[dict[str, Any], Repeated]:
    """Return attributes by name, and those whose name came again later."""
    check_count(len(pairs), _limits.OTLP_ATTRIBUTES_MAX, "attributes")
    found: dict[str, Any] = {}
    told: list[tuple[str, Any]] = []
    for pair in pairs:
        name, said = _pair(pair)
        if type(said) is dict and len(said) == 1 and type(text := said.get("stringValue")) is str:
            value: Any = text
        else:
            value = value_of(said)
            if type(value) in (dict, list):
                check(value)
        told.append((name, value))
        found[name] = value
    if len(found) == len(told):
        return found, []
    last = {name: number for number, (name, _) in enumerate(told)}
    return found, [[name, value] for number, (name, value) in enumerate(told) if last[name] != number]


def _pair(pair: Any) -> tuple[str, Any]:
    if type(pair) is not dict or type(name := pair.get("key", "")) is not str or not {"key", "value"}.issuperset(pair):
        raise Rejected("an attribute is no pair of key and value")
    return name, pair.get("value")


def value_of(value: Any, depth: int = 0) -> Any:
    """Return the Python value."""
    if value is None:
        return None
    if type(value) is not dict or len(value) > 1:
        raise Rejected("a value is no object with one field")
    if depth > _limits.OTLP_DEPTH_MAX:
        raise Rejected(f"a value has more than {_limits.OTLP_DEPTH_MAX} lists and maps within each other")
    for kind, said in value.items():
        read = _VALUES.get(kind)
        if read is None:
            raise Rejected(f"nobody knows what a {kind[:40]!r} is")
        return None if said is None else read(said, depth)
    return None


def _text(said: Any, depth: int) -> str:
    if type(said) is not str:
        raise Rejected("a stringValue is no text")
    return said


def _bool(said: Any, depth: int) -> bool:
    if type(said) is not bool:
        raise Rejected("a boolValue is neither true nor false")
    return said


def _int(said: Any, depth: int) -> int:
    number = integer(said, "an intValue")
    if not -(2**63) <= number < 2**63:
        raise Rejected("an intValue is beyond 64 bits")
    return number


def _double(said: Any, depth: int) -> float:
    if type(said) in (int, float):
        return float(said)
    if type(said) is str:
        if said in _ODD_FLOATS:
            return _ODD_FLOATS[said]
        try:
            number = float(said) if len(said) <= 400 else math.inf
        except ValueError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise Rejected("a doubleValue is no number")


def _bytes(said: Any, depth: int) -> bytes:
    try:
        padded = said.replace("-", "+").replace("_", "/") + "=" * (-len(said) % 4)
        return base64.b64decode(padded, validate=True)
    except (AttributeError, TypeError, ValueError, binascii.Error):
        raise Rejected("a bytesValue is no base64") from None


def _array(said: Any, depth: int) -> list[Any]:
    values = said.get("values") if type(said) is dict else said
    if values is not None and type(values) is not list:
        raise Rejected("an arrayValue has no list of values")
    return [value_of(item, depth + 1) for item in values or ()]


def _map(said: Any, depth: int) -> dict[str, Any]:
    pairs = said.get("values") if type(said) is dict else said
    if pairs is not None and type(pairs) is not list:
        raise Rejected("a kvlistValue has no list of values")
    told = [(name, value_of(value, depth + 1)) for name, value in map(_pair, pairs or ())]
    found = dict(told)
    return found if len(found) == len(told) else {"$pairs": [list(pair) for pair in told]}


_VALUES: dict[str, Callable[[Any, int], Any]] = {
    "stringValue": _text, "string_value": _text, "boolValue": _bool, "bool_value": _bool,
    "intValue": _int, "int_value": _int, "doubleValue": _double, "double_value": _double,
    "bytesValue": _bytes, "bytes_value": _bytes, "arrayValue": _array, "array_value": _array,
    "kvlistValue": _map, "kvlist_value": _map,
}  # fmt: skip
