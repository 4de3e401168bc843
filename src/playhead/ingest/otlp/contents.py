"""Digest what spans hold, and keep texts of JSON as values where that gives the same text back."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from playhead import _limits
from playhead.event import wire

_OPENS = ("{", "[")
_CONTAINERS = (dict, list)
_SPACED = json.JSONEncoder(ensure_ascii=False).encode  # made once: these are what `wire.write` makes for each text
_FORMS_KEPT_MAX, _FORM_CHARACTERS = 1024, 256  # short texts come again: `{"temperature": 0}`
_COMPACT_ASCII = json.JSONEncoder(separators=(",", ":")).encode
_SPACED_ASCII = json.JSONEncoder().encode


class NotJson:
    """Stand for a text that is no JSON."""


NOT_JSON = NotJson()


def parsed(text: Any) -> Any:
    """Return the object or the array that a text is; NOT_JSON for any other value, and for one that is too deep."""
    if type(text) is not str or text[:1] not in _OPENS:
        return NOT_JSON
    try:
        value = orjson.loads(text)
    except ValueError:  # also of a text that is not valid Unicode
        return NOT_JSON
    most = _limits.OTLP_JSON_DEPTH_MAX
    if text.count("{") + text.count("[") > most and deeper(value, most):
        return NOT_JSON
    return value


def parsed_or(value: Any) -> Any:
    """Return the object or array that a text of JSON is, any other value as it is."""
    read = parsed(value)
    return value if read is NOT_JSON else read


def formed(text: str, value: Any) -> list[Any] | None:
    """Return the form and the value of a text of JSON; None where no form gives the same text back."""
    form = _form_again(text) if len(text) <= _FORM_CHARACTERS else _form(text, value)
    return None if form is None else [form, value]


@lru_cache(maxsize=_FORMS_KEPT_MAX)
def _form_again(text: str) -> str | None:
    return _form(text, orjson.loads(text))


def _form(text: str, value: Any) -> str | None:
    data = text.encode()
    colon = data.find(b'":')
    escaped = b"\\u" in data
    if data[colon + 2 : colon + 3] == b" ":  # written with spaces, by Python
        name, encode = ("json:spaced-ascii", _SPACED_ASCII) if escaped else ("json:spaced", _SPACED)
        if encode(value) == text:
            return name
    elif not escaped:
        if orjson.dumps(value) == data:
            return "json:compact"
    elif _COMPACT_ASCII(value) == text:
        return "json:compact-ascii"
    return wire.json_form(value, data)


def unformed(kept: list[Any]) -> str:
    """Return the text of JSON that was kept as a value."""
    form, value = kept
    return wire.write(value, form).decode()


def deeper(value: Any, most: int) -> bool:
    """Say whether lists and maps lie deeper within each other; a map that has to be marked takes three levels."""
    level = [value]
    depths = [0]
    while level:
        item, depth = level.pop(), depths.pop()
        if type(item) is dict:
            depth += 3 if any(key[:1] == "$" for key in item) else 1
            inside: list[Any] = [one for one in item.values() if type(one) in _CONTAINERS]
        elif type(item) is list:
            depth += 1
            inside = [one for one in item if type(one) in _CONTAINERS]
        else:
            continue
        if depth > most:
            return True
        level += inside
        depths += [depth] * len(inside)
    return False


def digest(parts: list[Any], *given: Any) -> bytes:
    """Return the SHA-256 of values: the same for the same, in whatever order maps have them.

    `given` are those of them that may hold numbers which are none; where nothing is given, all may.
    """
    try:
        data = orjson.dumps(parts, default=_marked, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # what only Python has: an integer of any size, half of a surrogate pair
        data = orjson.dumps(_exact(parts), option=orjson.OPT_SORT_KEYS)
    else:
        if b"null" in data and any(
            map(_has_odd_floats, filter(None, given or parts))
        ):  # the encoder writes them as null
            data = orjson.dumps(_exact(parts), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(data).digest()


def _marked(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    return {"$repr": repr(value)}


def _has_odd_floats(value: Any) -> bool:
    if type(value) not in _CONTAINERS:
        return type(value) is float and value - value != 0.0
    items = value.values() if type(value) is dict else value
    kinds = set(map(type, items))
    if float in kinds:
        for item in items:
            if type(item) is float and item - item != 0.0:
                return True
    if dict in kinds or list in kinds:
        for item in items:
            if item and type(item) in _CONTAINERS and _has_odd_floats(item):
                return True
    return False


def _exact(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return {"$str": value.encode("utf-8", "surrogatepass").hex()}
        return value
    if isinstance(value, float):
        return value if value - value == 0.0 else {"$float": repr(value)}
    if isinstance(value, int):
        return value if isinstance(value, bool) or -(2**63) <= value < 2**64 else {"$int": hex(value)}
    if isinstance(value, Mapping):
        pairs = [[_exact(key), _exact(item)] for key, item in value.items()]
        if all(type(key) is str for key, _ in pairs):
            return dict(pairs)
        return {"$dict": sorted(pairs, key=orjson.dumps)}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return value if value is None else _marked(value)
