"""Read a line for the index, and the fields of its payload.

Lines come from files that anybody may have written: a field of the wrong type becomes null or its JSON text, and
nothing here raises.
"""

from __future__ import annotations

from typing import Any

import orjson

from playhead import _limits

Line = dict[str, Any]

EXACT_MAX = 2**53  # sums and differences of a few such numbers still fit SQLite's integers
CALL_OPENS = {
    "model.invoked": "model",
    "tool.called": "tool",
    "mcp.requested": "mcp",
    "http.sent": "http",
    "process.started": "process",
}
CALL_CLOSES = {
    "model.responded": "model",
    "tool.returned": "tool",
    "mcp.answered": "mcp",
    "http.received": "http",
    "process.exited": "process",
}
# The kinds of spans that may come from outside, each with the one that closes it.
CLOSED_BY = {
    "step.started": "step.finished",
    "model.invoked": "model.responded",
    "tool.called": "tool.returned",
}
_TEXTS = ("time", "kind", "hash")
_TEXT_OR_NULL = (str, type(None))
_TEXTS_OR_NULL = ("span", "parent", "lane", "key")
_SPANS = {*CALL_OPENS, *CALL_CLOSES, "step.started", "step.finished"}


def text(value: Any) -> str | None:
    """Return a string as it is, and anything else that is there as its JSON text."""
    if value is None or type(value) is str:
        return value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # read from JSON, so it can only be nested too deeply
        return '{"$repr":"nested too deeply for the index"}'


def count(value: Any) -> int | None:
    """Return a number of things, or None where the value is not one."""
    return value if type(value) is int and 0 <= value <= EXACT_MAX else None


def money(value: Any) -> float | None:
    """Return a sum of money, or None where the value is not one."""
    return float(value) if type(value) in (int, float) and 0 <= value <= EXACT_MAX else None


def mapping(value: Any) -> dict[str, Any]:
    """Return an object as it is, and an empty one in the place of anything else."""
    return value if type(value) is dict else {}


def error_text(value: Any) -> str | None:
    """Return a recorded error as one short text: `type: message`."""
    kind, message = mapping(value).get("type"), mapping(value).get("message")
    whole = f"{kind}: {message}" if type(kind) is str and type(message) is str else text(value)
    if whole is None or len(whole) <= _limits.INDEX_ERROR_CHARACTERS_MAX:
        return whole
    return whole[: _limits.INDEX_ERROR_CHARACTERS_MAX - 1] + "…"


def read_line(raw: bytes, run_id: str, after: int) -> Line | None:
    """Return a line of this run that comes after seq `after`, or None where the bytes are not one."""
    try:
        line = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if type(line) is not dict or line.get("run") != run_id:
        return None
    seq, elapsed_us = count(line.get("seq")), line.get("elapsed_us")
    if seq is None or seq <= after or type(elapsed_us) is not int or abs(elapsed_us) > EXACT_MAX:
        return None
    if type(line.get("data")) is not dict:
        return None
    for field in _TEXTS:
        if type(line.get(field)) is not str:
            return None
    for field in _TEXTS_OR_NULL:
        if type(line.get(field)) not in _TEXT_OR_NULL:
            return None
    if line["kind"] in _SPANS and line.get("span") is None:
        return None
    return line


def orjson_text(value: Any) -> str:
    """Return the JSON text of a value, of a string too, so that the column always holds JSON."""
    if type(value) is str:
        return orjson.dumps(value).decode()
    return text(value) or "null"
