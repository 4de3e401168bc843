"""Look into marked values by the names of what is in them: in `{"$dict": [[3, "a"]]}`, "a" is at `3`."""

from __future__ import annotations

from typing import Any, TypeGuard

from playhead.views import text

_INTO = {"$object": "fields", "$as": "value", "$tuple": "$tuple"}  # where each has its fields or items
_KEY_WIDTH = 60  # of a key that is no text

Container = dict[str, Any] | list[Any]


def is_marked(value: Any) -> TypeGuard[dict[str, Any]]:
    """Say whether a value is one in the form of an object, such as `{"$bytes": …}`."""
    return type(value) is dict and next(iter(value), "").startswith("$")


def inside(value: dict[str, Any]) -> Container | None:
    """Return what a marked value holds, as an object or an array; None where it is not made of others."""
    pairs = value.get("$dict")
    if isinstance(pairs, list):
        named = {_named(pair[0]): pair[1] for pair in pairs if isinstance(pair, list) and len(pair) == 2}
        return named if len(named) == len(pairs) else None  # two keys that are called alike are not told apart
    held = value.get(_INTO.get(next(iter(value), ""), ""))
    return held if isinstance(held, (dict, list)) and not is_marked(held) else None


def around(value: dict[str, Any]) -> dict[str, Any]:
    """Return a marked value without what is in it: two that have the same are of one sort. An object has none."""
    if not is_marked(value) or "$dict" in value:
        return {}
    into = _INTO.get(next(iter(value)))
    return {name: None if name == into else part for name, part in value.items()}


def holding(value: dict[str, Any], held: Any) -> dict[str, Any]:
    """Return a marked value with some of what is in it."""
    if "$dict" in value:
        pairs = [[key, held[_named(key)]] for key, _ in value["$dict"] if _named(key) in held]
        return {**value, "$dict": pairs}
    return {**value, _INTO[next(iter(value))]: held}


def _named(key: Any) -> str:
    return key if isinstance(key, str) else text.short(key, _KEY_WIDTH)
