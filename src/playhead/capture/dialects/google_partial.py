"""Put the arguments of a function call together that Vertex streamed piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from playhead.capture.dialects.base import mapping, rows
from playhead.capture.dialects.deltas import joined

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_INDEX_MAX = 10_000  # a larger index is no index


def collapsed(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts with each call that came in several as one; a call that was cut stays as it came."""
    out: list[dict[str, Any]] = []
    pending: list[dict[str, Any]] = []
    for part in parts:
        call = part.get("functionCall")
        if type(call) is not dict or not (pending or call.get("willContinue") is True):
            out += [*pending, part]
            pending = []
            continue
        pending.append(part)
        if call.get("willContinue") is not True:
            calls = [mapping(one["functionCall"]) for one in pending]
            out.append({key: value for one in pending for key, value in one.items()} | {"functionCall": _whole(calls)})
            pending = []
    return out + pending


def _whole(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the call that these are, with `args` from `partialArgs`: each names where its value goes."""
    call: dict[str, Any] = {}
    given: dict[str, Any] = {}
    args: dict[str, Any] = {}
    for part in parts:
        call.update((key, value) for key, value in part.items() if key in ("id", "name") and value)
        given.update(mapping(part.get("args")))
        for piece in rows(part.get("partialArgs")):
            _put(args, piece)
    return {**call, "args": {**given, **args}}


def _put(args: dict[str, Any], piece: dict[str, Any]) -> None:
    path = piece.get("jsonPath")
    field = next((name for name in _VALUES if name in piece), None)
    if type(path) is not str or field is None:
        return
    steps = [int(found[2]) if found[2] else found[1] or found[3] for found in _STEP.finditer(path)]
    if not steps or any(type(step) is int and step >= _INDEX_MAX for step in steps):
        return
    value = None if field == "nullValue" else piece[field]
    target: Any = args
    for step, following in pairwise(steps):
        target = _step(target, step, [] if type(following) is int else {})
        if target is None:
            return
    old = _step(target, steps[-1], None)
    _set(target, steps[-1], joined([old, value]) if type(old) is str and type(value) is str else value)


def _step(target: Any, step: int | str, missing: Any) -> Any:
    """Return what is at a step, put there where nothing is; None where the step does not fit."""
    if type(target) is dict and type(step) is str:
        held = target.get(step)
    elif type(target) is list and type(step) is int:
        held = target[step] if step < len(target) else None
    else:
        return None
    if held is None and missing is not None:
        _set(target, step, missing)
        return missing
    return held


def _set(target: Any, step: int | str, value: Any) -> None:
    if type(target) is dict and type(step) is str:
        target[step] = value
    elif type(target) is list and type(step) is int:
        target.extend([None] * (step + 1 - len(target)))
        target[step] = value
