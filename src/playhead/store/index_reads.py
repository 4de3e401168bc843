"""Turn what a lane read into rows of the index: by source and module; files, variables and lanes by their name.

What was said is not taken over, only that it was asked and how often: `playhead show --reads` has the values. A field
of the wrong form, or one that is written as a reference, has no name here, and nothing raises for it. Blobs are looked
into, since the files that a lane read one after the other are more than fits a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from playhead import _limits
from playhead.errors import PlayheadError
from playhead.store import layout

Load = Callable[[str], bytes]  # the content of a blob, by its digest
# Source, via, module, target, times, detail.
Row = tuple[str | None, str | None, str | None, str | None, int, str | None]

_TOLD = ("size", "digest", "error", "omitted", "special", "live")  # of a file
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # as in event/reads.py


def loader(root: Path) -> Load:
    """Return what reads the blobs of a store; of one that is too large to be held, nothing."""

    def load(digest: str) -> bytes:
        path = layout.blob(root, digest)
        if not path.is_file():  # gone; or a pipe, which nobody may ever write to
            return b""
        with open(path, "rb") as file:
            content = file.read(_limits.LINE_BYTES_MAX + 1)
        return content if len(content) <= _limits.LINE_BYTES_MAX else b""

    return load


def rows_of(data: dict[str, Any], load: Load | None = None) -> list[Row]:
    """Return the rows of one `ambient.read`: one for each group, and of what has a name one for each name."""
    from playhead.event.reads import count  # here: a list of runs without reads does not need it

    found: dict[Row, int] = {}
    packed, reads = data.get("packed"), whole(data.get("reads"), load)
    groups = [(group, True) for group in (packed if type(packed) is list else [])]
    groups += [(whole(group, load), False) for group in (reads if type(reads) is list else [])]
    for place, (group, is_packed) in enumerate(groups):
        if type(group) is not dict:
            continue
        source, via, module = _text(group.get("of")), _text(group.get("via")), _text(group.get("by"))
        values = whole(group.get("values"), load)
        if is_packed or type(values) is not list:
            times = count({"packed": [group]}) if is_packed else _ordered(data, place)
            _add(found, (source, via, module, None, 0, None), times)
            continue
        for value in values:
            for target, detail in _named(source, value):
                _add(found, (source, via, module, target, 0, detail), 1)
    return [(*row[:4], times, row[5]) for row, times in found.items()]


def whole(value: Any, load: Load | None) -> Any:
    """Return what lies in a blob in its place."""
    if load is None or type(value) is not dict or type(digest := value.get("$blob")) is not str:
        return value
    try:
        return orjson.loads(load(digest))
    except (OSError, PlayheadError, orjson.JSONDecodeError):
        return value  # gone or altered, which `verify` says


def _ordered(data: dict[str, Any], place: int) -> int:
    """Return how often a group was read from, by the order in which that was."""
    order = data.get("order")
    if type(order) is not str or place >= len(_LETTERS):
        return 1
    return sum(int(times or 1) for times in re.findall(rf"{_LETTERS[place]}([0-9]{{0,9}})", order)) or 1


def _add(found: dict[Row, int], row: Row, times: int) -> None:
    found[row] = found.get(row, 0) + times


def _named(source: str | None, value: Any) -> list[tuple[str | None, str | None]]:
    """Return the names that a value is about, and what else is known of each."""
    match source, value:
        case "os.environ", {"*": _}:
            return [("*", None)]
        case "os.environ", dict():
            return [(name, None) for name in value]
        case "open" | "sqlite3.connect" | "import", {"path": str(path)}:
            told = {name: value[name] for name in _TOLD if type(value.get(name)) in (str, int, bool)}
            return [(path, orjson.dumps(told).decode())]
        case "lane.ended", [str(lane), int(at_us), str(outcome), *rest]:
            named = {"name": rest[0]} if rest and type(rest[0]) is str else {}
            return [(lane, orjson.dumps({"outcome": outcome, "at_us": at_us, **named}).decode())]
        case _:
            return [(None, None)]


def _text(value: Any) -> str | None:
    return value if type(value) is str and value else None
