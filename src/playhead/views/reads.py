"""List what the lanes of a run read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from playhead.event.envelope import Event
from playhead.event.reads import count, read
from playhead.views import text
from playhead.views.text import Resolve

_CONTENTS = ("open", "sqlite3.connect", "sys.stdin")  # what may hold much, and is read for what it holds

# What a function of `random` draws is not yet what it answers: that depends on what it was asked for.
_DRAWN = {"random.getrandbits": "random bits", "random.random": "from 0 to 1"}


class LaneRead(NamedTuple):
    """One value that the program was told."""

    seq: int  # of the event that holds it
    lane: str
    of: str  # the source: `time.time`, `os.urandom`, `os.environ`, `open`
    by: str  # the module that read
    via: str  # the function of the standard library that it called, where it was not the source itself
    value: Any


def reads_of(events: Iterable[Event]) -> Iterator[LaneRead]:
    """Yield every read of a run; those of one lane are in the order in which they happened."""
    for event in events:
        if event.kind == "ambient.read":
            for one in read(event.data):
                yield LaneRead(event.seq, event.lane, *one)


def is_asked_for(
    read: LaneRead, *, source: str | None = None, lane: str | None = None, grep: str | None = None
) -> bool:
    """Say whether a read is among those that somebody looks for.

    `source` is part of the source, or of the function that was called; `grep` of any text or number in it, its module
    included.
    """
    if lane is not None and read.lane != lane:
        return False
    if source is not None and source not in read.of and source not in read.via:
        return False
    return grep is None or any(grep in part for part in (read.of, read.via, read.by)) or _holds(read.value, grep)


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, dict):
        return any(text in key or _holds(item, text) for key, item in value.items())
    if isinstance(value, list):
        return any(_holds(item, text) for item in value)
    if isinstance(value, bytes):
        return text in value.hex() or text.encode() in value
    return text in ("null" if value is None else str(value))


def said(read: LaneRead, width: int) -> str:
    """Say the value of a read in one line: of a file first the path, and not the digest."""
    match read.value:
        case [str(lane), int(), str(outcome), *name] if read.of == "lane.ended":
            return text.cut(" ".join((lane, outcome, *map(str, name))), width)
        case {"path": str(path), **rest}:
            rest.pop("digest", None)
            return text.cut(" ".join(filter(None, (path, text.arguments(rest, width) if rest else ""))), width)
        case {"value": value, **rest} if not rest:
            return text.short(value, width)
        case bytes(raw):
            return text.cut(raw.hex(), width)
        case value if read.via and read.of in _DRAWN:
            return text.cut(f"{value} ({_DRAWN[read.of]}, used by {read.via.rpartition('.')[2]})", width)
        case value:
            return text.short(value, width)


def contents(data: dict[str, Any], resolve: Resolve | None = None) -> list[str]:
    """Name the files that were read, and the standard input."""
    names: dict[str, None] = {}
    groups = text.followed(data.get("reads"), resolve)
    for group in groups if isinstance(groups, list) else ():
        group = text.followed(group, resolve)
        if isinstance(group, dict) and group.get("of") in _CONTENTS:
            values = text.followed(group.get("values"), resolve)
            if resolve is not None and isinstance(values, dict):
                values = resolve(values)  # many small files, or their content, lie elsewhere
            for value in values if isinstance(values, list) else ():
                value = text.followed(value, resolve)
                path = value.get("path") if isinstance(value, dict) else None
                names.setdefault(str(path).rpartition("/")[2] if path else "stdin")
    return list(names)


def told(data: dict[str, Any], resolve: Resolve | None = None) -> str:
    """Say in a few words what was read: the files by name, the rest as a number."""
    files, total = contents(data, resolve), count(data)
    if not files:
        return text.several(total, "read")
    return f"{', '.join(files)}" + (f", {text.several(total, 'read')} in all" if total > len(files) else "")
