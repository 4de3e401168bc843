"""Say what identity means: two calls with the same key asked the same question.

`k1:` is SHA-256 over RFC 8785 JSON of [kind, name, input]. Another normalisation would be `k2:`, never a silent `k1:`.
A key proves nothing about who asked or when, and two inputs that differ only in what was redacted have one key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import orjson

_SORTED = orjson.OPT_SORT_KEYS


def canonical(value: Any, floats: Iterable[float] | None = None, unusual_keys: bool = True) -> bytes:
    """Encode a plain value as RFC 8785 JSON.

    The fast encoder writes the same bytes except for some floats and for keys outside ASCII. Callers that walked the
    value already say which floats it holds and whether such keys occur; others leave the defaults.
    """
    if floats is None:
        floats = list(_floats(value))
    if not unusual_keys or not _has_unusual_keys(value):
        odd = [number for number in floats if not _plain_float(number)]
        if not odd:
            return orjson.dumps(value, option=_SORTED)
        if all(number.is_integer() and abs(number) < 2**53 for number in odd):
            return orjson.dumps(_whole_floats_as_ints(value), option=_SORTED)
    import rfc8785

    return rfc8785.dumps(value)


def call_key(
    kind: str, name: str | None, value: Any, floats: Iterable[float] | None = None, unusual_keys: bool = True
) -> str:
    """Return the key of a call: digest of its kind, its name, its normalised input."""
    encoded = canonical([kind, name, value], floats, unusual_keys)
    return "k1:" + hashlib.sha256(encoded).hexdigest()


def envelope_hash(intent: str, payload: Any, metadata: Any) -> str:
    """Return the hash of a request: its intent, its whole payload, its metadata; nothing else.

    Numbers keep the form they had (1 and 1.0 are different requests), so this is not RFC 8785; keys are sorted. Floats
    that releases of the encoder write differently (1e21, 1e+21) are hashed as `$float`.
    """
    encoded = orjson.dumps(_stable([intent, payload, metadata]), option=_SORTED)
    return "e1:" + hashlib.sha256(b"playhead/envelope/v1\0" + encoded).hexdigest()


def _stable(value: Any) -> Any:
    if isinstance(value, float):
        return value if value == 0 or 1e-3 <= abs(value) < 1e15 else {"$float": repr(value)}
    if isinstance(value, dict):
        return {key: _stable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_stable(item) for item in value]
    return value


def _plain_float(number: float) -> bool:
    return 1e-3 <= abs(number) < 1e15 and not number.is_integer()


def _floats(value: Any) -> Iterable[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _floats(item)
    elif isinstance(value, list):
        for item in value:
            yield from _floats(item)


def _has_unusual_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return any(not key.isascii() or _has_unusual_keys(item) for key, item in value.items())
    return isinstance(value, list) and any(_has_unusual_keys(item) for item in value)


def _whole_floats_as_ints(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _whole_floats_as_ints(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_floats_as_ints(item) for item in value]
    return value


# What MCP puts beside the question itself: these differ from run to run, and none changes the answer.
_MCP_VOLATILE = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})


def _of_mcp(data: dict[str, Any]) -> tuple[str | None, Any]:
    params = data.get("params")
    if isinstance(params, dict) and isinstance(meta := params.get("_meta"), dict):
        kept = {name: value for name, value in meta.items() if name not in _MCP_VOLATILE}
        params = {name: value for name, value in params.items() if name != "_meta"}
        if kept:
            params["_meta"] = kept
    return data.get("method"), [bool(data.get("from_server")), params or None]


def _of_process(data: dict[str, Any]) -> tuple[str | None, Any]:
    """Ask for a command and how to run it; not for the environment, nor for the folder where it was not given."""
    how = dict(data.get("options") or {})
    if data.get("shell"):
        how["shell"] = True
    return None, [data.get("argv"), data.get("stdin"), *([how] if how else [])]


# What each kind of call asks, from its plain data: its name and its input, for `call_key`.
ASKED: dict[str, Callable[[dict[str, Any]], tuple[str | None, Any]]] = {
    "model.invoked": lambda data: (data.get("model"), data.get("request")),
    "tool.called": lambda data: (data.get("name"), data.get("input")),
    "mcp.requested": _of_mcp,
    "http.sent": lambda data: (data.get("method"), [data.get("url"), data.get("body")]),
    "process.started": _of_process,
}
