"""Read JSON strictly: what two readers could read differently is refused, and no text can exhaust the stack."""

from __future__ import annotations

import re
from typing import Any

import orjson

from playhead.errors import BadBody

_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"([ \t\r\n]*:)?', re.DOTALL)
_SPACED_COLON = re.compile(rb'"[ \t\r\n]+:')
_CONTAINERS = (dict, list)
_NUMBER_TOO_LARGE = ("infinity", "number")


def loads(data: bytes) -> Any:
    """Return the value of a text of JSON."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        raise BadBody(f"it is no JSON that can be read exactly: {problem}", hint=_hint(data)) from None
    if _has_twice(data, _keys_read(value)):
        raise BadBody("an object in it has a key twice", hint="Which of the two counts differs from reader to reader.")
    return value


def _hint(data: bytes) -> str | None:
    if b"NaN" in data or b"Infinity" in data:
        return 'JSON has no NaN and no Infinity: OTLP writes them as texts, `"NaN"` and `"Infinity"`.'
    if data[:1] not in (b"{", b"[", b" ", b"\n", b"\r", b"\t"):
        return "If this is protobuf, send it as application/x-protobuf."
    return None


def _keys_read(value: Any) -> int:
    count = 0
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            count += len(item)
            todo += [one for one in item.values() if type(one) in _CONTAINERS]
        elif type(item) is list:
            todo += [one for one in item if type(one) in _CONTAINERS]
    return count


def _has_twice(data: bytes, read: int) -> bool:
    """Say whether more keys are written than were read: counted where a quote and a colon follow each other.

    Inside of a text the quote has a backslash before it; a text that begins with a colon counts too much. Only where
    that does not decide are all texts looked at.
    """
    decides = b'\\\\":' not in data and not _SPACED_COLON.search(data)
    if decides and data.count(b'":') - data.count(b'\\":') <= read:
        return False
    return sum(1 for found in _TEXT.finditer(data) if found[1] is not None) > read
