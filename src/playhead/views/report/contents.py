"""Find what large values say, which lines name by a digest alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from playhead.errors import PlayheadError

_FIRST = ("model.invoked", "model.responded")  # what a report is opened for


def contents_of(
    lines: Iterable[str], blob: Callable[[str], bytes], most: int
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return what large values say, in `most` bytes of all, and how many were left out, with their bytes.

    Prompts and answers of models come first. What is no text is left out.
    """
    waiting = _marks(lines)
    known: set[str] = set()
    found: list[dict[str, Any]] = []
    left_out = {"count": 0, "bytes": 0}
    for mark in waiting:  # which grows
        digest, size = str(mark["$blob"]), mark.get("len")
        if digest in known:
            continue
        known.add(digest)
        size = size if type(size) is int else 0
        told = _told(digest, str(mark.get("as")), blob) if size <= most else None
        if told is None or len(told.encode()) > most:
            left_out = {"count": left_out["count"] + 1, "bytes": left_out["bytes"] + size}
            continue
        most -= len(told.encode())
        found.append({"digest": digest, "as": mark.get("as"), "text": told})
        waiting += _marks_in(told) if mark.get("as") == "json" else []
    return found, left_out


def _marks(lines: Iterable[str]) -> list[dict[str, Any]]:
    first: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for line in lines:
        if '"$blob"' in line:
            marks = _marks_in(line)
            (first if any(f'"kind":"{kind}"' in line for kind in _FIRST) else rest).extend(marks)
    return first + rest


def _marks_in(text: str) -> list[dict[str, Any]]:
    try:
        return list(_walked(orjson.loads(text)))
    except orjson.JSONDecodeError:  # which is said where the line is verified
        return []


def _walked(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if isinstance(one.get("$blob"), str):
                yield one
            waiting += reversed(one.values())
        elif isinstance(one, list):
            waiting += reversed(one)


def _told(digest: str, form: str, blob: Callable[[str], bytes]) -> str | None:
    """Return the text of a blob; None where it is none, or is not there."""
    if form not in ("text", "json"):
        return None
    try:
        return blob(digest).decode()
    except (PlayheadError, UnicodeDecodeError):
        return None
