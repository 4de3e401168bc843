"""Say values in few words: durations, sizes, moments, and the beginning of anything."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Resolve = Callable[[Any], Any]

_ELLIPSIS = "…"
_SHORT_ITEMS_MAX = 40  # of a list or an object; nothing longer fits a line
_SHORT_DEPTH_MAX = 4
_LETTERS_PER_CELL_MAX = 4  # marks take no room, and a heap of them shall not make a line endless
_GROUP_SHOWN_MAX = 3  # errors of a group
_ERROR_DEPTH_MAX = 10
# The same everywhere: a run may be read on another system than it was recorded on.
_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL",
            11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM"}  # fmt: skip
# Files of packages, of Python itself and of Playhead.
_SLASH = re.compile(r"[/\\]")
_LIBRARIES = re.compile(
    r"[/\\](site-packages|dist-packages|lib\d*[/\\](python|pypy)\d[\d.]*|playhead[/\\](_api|capture|replay))[/\\]"
    r"|[/\\]Python\d*[/\\]Lib[/\\]|^<frozen "
)


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


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes: East Asian letters take two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_letter_cells, text))


@functools.lru_cache(maxsize=4096)
def _letter_cells(letter: str) -> int:
    if unicodedata.east_asian_width(letter) in "WF":
        return 2
    return 0 if unicodedata.category(letter) in ("Mn", "Me", "Cf") else 1


def cut(text: str, width: int) -> str:
    """Return the beginning of a text that takes at most `width` columns, marked where something is left out."""
    if text.isascii():
        return text if len(text) <= width else text[: max(0, width - 1)] + _ELLIPSIS
    if 2 * len(text) <= width:
        return text  # even if all of it is wide
    used = fitting = 0  # fitting: letters that leave room for the mark
    letters_max = width * _LETTERS_PER_CELL_MAX
    for at, letter in enumerate(text[:letters_max]):
        used += _letter_cells(letter)
        if used > width:
            return text[:fitting] + _ELLIPSIS
        if used < width:
            fitting = at + 1
    return text if len(text) <= letters_max else text[:fitting] + _ELLIPSIS


def wrap(text: str, width: int, *, fold: bool = False) -> list[str]:
    """Break a text at its spaces into lines of at most `width` columns.

    A longer word is kept in one piece, so that ids and paths can be copied; with `fold` it is broken too.
    """
    if cells(text) <= width:
        return [text]
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if line and cells(line) + 1 + cells(word) > width:
            lines.append(line.rstrip())
            line = ""
        line = f"{line} {word}" if line else word
        while fold and cells(line) > width:
            letters = fitting(line, width)
            lines.append(line[:letters])
            line = line[letters:]
    return [*lines, line.rstrip()]


def fitting(text: str, width: int) -> int:
    """Return how many letters of a text fit, at least one."""
    used = 0
    for at, letter in enumerate(text):
        used += _letter_cells(letter)
        if used > width:
            return max(1, at)
    return len(text)


def error_place(error: Any) -> str | None:
    """Say where a recorded error was raised: file, line and function of the program's own last frame.

    That of a library where the program has none in it.
    """
    frames = error.get("frames") if isinstance(error, dict) else None
    if not isinstance(frames, list) or not frames or not isinstance(frames[-1], dict):
        return None
    named = (frame for frame in reversed(frames) if isinstance(frame, dict))
    last = next((frame for frame in named if not _LIBRARIES.search(str(frame.get("file")))), frames[-1])
    place = f"{re.split(_SLASH, str(last.get('file')))[-1]}:{last.get('line')}"
    return f"{place} in {last['name']}" if last.get("name") else place


def error_line(error: Any) -> str | None:
    """Say a recorded error as `type: message`."""
    if not isinstance(error, dict):
        return None if error is None else short(error, 200)
    kind, message = error.get("type"), error.get("message")
    if not isinstance(kind, str):
        return short(error, 200)
    return f"{kind}: {message}" if isinstance(message, str) and message else kind


def error_causes(error: Any) -> list[str]:
    """Say what lies behind a recorded error, in lines: its innermost cause, and the first errors of a group."""
    out: list[str] = []
    inner = _innermost(error)
    if inner is not error:
        out.append(f"caused by {_placed(inner)}")
    members = [member for one in ([error] if inner is error else [error, inner]) for member in _members(one, 0)]
    for member in members[:_GROUP_SHOWN_MAX]:
        behind = _innermost(member)
        out.append(f"- {_placed(member)}" + (f", caused by {error_line(behind)}" if behind is not member else ""))
    if len(members) > _GROUP_SHOWN_MAX:
        out.append(f"- and {len(members) - _GROUP_SHOWN_MAX:,} more")
    return out


def _placed(error: Any) -> str:
    place = error_place(error)
    return f"{error_line(error)}" + (f" ({place})" if place else "")


def error_whole(error: Any) -> str | None:
    """Say a recorded error and what lies behind it, in one line."""
    line = error_line(error)
    return None if line is None else "; ".join((line, *listed(error_causes(error))))


def listed(causes: Iterable[str]) -> list[str]:
    """Return causes as they are said one after the other, and not in lines."""
    return [cause.removeprefix("- ") for cause in causes]


def _innermost(error: Any) -> Any:
    for _ in range(_ERROR_DEPTH_MAX):
        cause = error.get("cause") if isinstance(error, dict) else None
        if not isinstance(cause, dict):
            break
        error = cause
    return error


def _members(error: Any, depth: int) -> Iterator[Any]:
    """Yield the errors of a group, those of groups inside it too."""
    errors = error.get("errors") if isinstance(error, dict) else None
    for member in errors if isinstance(errors, list) else ():
        inner = list(_members(member, depth + 1)) if depth < _ERROR_DEPTH_MAX else []
        yield from inner or [member]


def signal_name(number: int) -> str:
    """Say which signal a number means: `SIGKILL`; or `signal 34`, where that differs between systems."""
    return _SIGNALS.get(number, f"signal {number}")


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
    value = followed(value, resolve)
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


def quoted(value: str) -> str:
    """Return a text in quotes that do not stand in it; in double ones, with escapes, where both do."""
    if '"' not in value:
        return f'"{value}"'
    return f"'{value}'" if "'" not in value else '"' + value.replace('"', '\\"') + '"'


def legible(mark: dict[str, Any]) -> str:
    """Return text that is not valid Unicode, which is marked (`$str`), with escapes for what is not: `\\udcff`."""
    from playhead.event.plain import restore  # here: a list of runs does not need it

    told = restore(mark)
    return str(told if isinstance(told, str) else mark["$str"]).encode("utf-8", "backslashreplace").decode()


def followed(value: Any, resolve: Resolve | None) -> Any:
    """Follow a reference within the run; content that lies elsewhere is only named."""
    first = next(iter(value), "") if isinstance(value, dict) else ""
    return resolve(value) if resolve is not None and first in ("$same", "$extends") else value


def _said(value: Any, width: int, resolve: Resolve | None, depth: int) -> str:
    value = followed(value, resolve)
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(cut(value, width).replace("\n", "⏎"))
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
        case "$str":
            return _said(legible(value), width, resolve, depth)
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
