"""Say values in few words: durations, sizes, moments, and the beginning of anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Resolve = Callable[[Any], Any]

_ELLIPSIS = "…"
_SHORT_ITEMS_MAX = 40  # of a list or an object; nothing longer fits a line
_SHORT_DEPTH_MAX = 4


def duration(us: int | float | None) -> str:
    """Say how long something took: `950 µs`, `1.2 ms`, `3.45 s`, `2 min 5 s`, `1 h 4 min`."""
    if us is None:
        return ""
    if us < 1000:
        return f"{us:.0f} µs"
    if us < 1_000_000:
        millis = us / 1000
        return f"{millis:.1f} ms" if millis < 10 else f"{millis:.0f} ms"
    seconds = us / 1_000_000
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def ago(then_us: int | None, now_us: int) -> str:
    """Say how long ago a moment was, in one unit."""
    if then_us is None:
        return ""
    seconds = (now_us - then_us) // 1_000_000
    if seconds < 0:
        return "in the future"
    if seconds < 10:
        return "just now"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def size(count: int) -> str:
    """Say how many bytes: `512 B`, `4.1 kB`, `2.0 MB`."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 1000 or unit == "GB":
            break
    return f"{amount:.1f} {unit}"


def number(count: int | None) -> str:
    """Say a number with a comma at every third digit."""
    return "" if count is None else f"{count:,}"


def several(count: int, noun: str) -> str:
    """Say a number of things: `1 event`, `2 events`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def cut(text: str, width: int) -> str:
    """Return the beginning of a text, marked where something is left out."""
    return text if len(text) <= width else text[: max(0, width - 1)] + _ELLIPSIS


def error_place(error: Any) -> str | None:
    """Say where a recorded error was raised: the file's name, line and function of its innermost frame."""
    frames = error.get("frames") if isinstance(error, dict) else None
    if not isinstance(frames, list) or not frames or not isinstance(frames[-1], dict):
        return None
    last = frames[-1]
    return f"{str(last.get('file')).rpartition('/')[2]}:{last.get('line')} in {last.get('name')}"


def error_line(error: Any) -> str | None:
    """Say a recorded error as `type: message`."""
    if not isinstance(error, dict):
        return None if error is None else short(error, 200)
    kind, message = error.get("type"), error.get("message")
    if not isinstance(kind, str):
        return short(error, 200)
    return f"{kind}: {message}" if isinstance(message, str) and message else kind


def unique_prefix(id: str, neighbours: Iterable[str | None], shortest: int) -> str:
    """Return the shortest beginning of an id that neither neighbour in the sorted order shares."""
    length = shortest
    for other in neighbours:
        if other is not None:
            same = 0
            while same < min(len(id), len(other)) and id[same] == other[same]:
                same += 1
            length = max(length, same + 1)
    return id[:length]


def arguments(value: Any, width: int, resolve: Resolve | None = None) -> str:
    """Say the input of a call as `name=value, name=value`."""
    value = _followed(value, resolve)
    if not isinstance(value, dict) or next(iter(value), "").startswith("$"):
        return short(value, width, resolve)
    if set(value) == {"args", "kwargs"} and isinstance(value["kwargs"], dict) and isinstance(value["args"], list):
        parts = [short(item, width, resolve) for item in value["args"][:_SHORT_ITEMS_MAX]]
        value = value["kwargs"]
    else:
        parts = []
    parts += [f"{key}={short(item, width, resolve)}" for key, item in list(value.items())[:_SHORT_ITEMS_MAX]]
    return cut(", ".join(parts), width)


def short(value: Any, width: int, resolve: Resolve | None = None) -> str:
    """Say a plain value in one line of at most `width` characters. Marks are said in words; nothing large is loaded."""
    return cut(_said(value, width, resolve, 0), width)


def _followed(value: Any, resolve: Resolve | None) -> Any:
    """Follow a reference within the run; content that lies elsewhere is only named."""
    first = next(iter(value), "") if isinstance(value, dict) else ""
    return resolve(value) if resolve is not None and first in ("$same", "$extends") else value


def _said(value: Any, width: int, resolve: Resolve | None, depth: int) -> str:
    value = _followed(value, resolve)
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + cut(value, width).replace('"', "'").replace("\n", "⏎") + '"'
        case int() | float():
            return str(value)
        case list() | dict() if depth >= _SHORT_DEPTH_MAX:
            return "[…]" if isinstance(value, list) else "{…}"
        case list():
            return "[" + _joined((_said(item, width, resolve, depth + 1) for item in value), width) + "]"
        case dict() if next(iter(value), "").startswith("$"):
            return _marked(value, width, resolve, depth)
        case dict():
            items = (f"{key}: {_said(item, width, resolve, depth + 1)}" for key, item in value.items())
            return "{" + _joined(items, width) + "}"
        case _:
            return str(value)


def _joined(parts: Iterable[str], width: int) -> str:
    """Join parts until the line is full, without looking at the rest."""
    out: list[str] = []
    length = 0
    for part in parts:
        if length > width or len(out) >= _SHORT_ITEMS_MAX:
            out.append(_ELLIPSIS)
            break
        out.append(part)
        length += len(part) + 2
    return ", ".join(out)


def _marked(value: dict[str, Any], width: int, resolve: Resolve | None, depth: int) -> str:
    name = next(iter(value))
    inner = value[name]
    match name:
        case "$blob":
            length = value.get("len")
            return f"<{value.get('as', 'bytes')}, {size(length)}>" if isinstance(length, int) else "<blob>"
        case "$bytes" | "$bytearray":
            return f"<{size(len(str(inner)) * 3 // 4)} of bytes>"
        case "$redacted":
            return f"<redacted: {inner}>"
        case "$commit":
            return "<erasable>"
        case "$same" | "$extends":
            return f"<as in {inner}>"
        case "$object":
            return f"{str(inner).rpartition('.')[2]}({arguments(value.get('fields'), width, resolve)})"
        case "$error":
            return error_line(inner) or "<error>"
        case "$as":
            return _said(value.get("value"), width, resolve, depth + 1)
        case "$enum":
            return str(inner).rpartition(".")[2]
        case "$dict" if isinstance(inner, list):
            pairs = (pair for pair in inner if isinstance(pair, list))
            said = (": ".join(_said(part, width, resolve, depth + 1) for part in pair) for pair in pairs)
            return "{" + _joined(said, width) + "}"
        case "$tuple" | "$set" | "$frozenset" if isinstance(inner, list):
            opens, closes = ("(", ")") if name == "$tuple" else ("{", "}")
            return opens + _joined((_said(item, width, resolve, depth + 1) for item in inner), width) + closes
        case _:
            return str(inner) if isinstance(inner, (str, int, float)) else f"<{name[1:]}>"
