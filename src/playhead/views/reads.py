"""List what the lanes of a run read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from playhead.event.envelope import Event
from playhead.event.reads import count, read
from playhead.views import text
from playhead.views.text import Resolve

_CONTENTS = ("open", "sqlite3.connect", "sys.stdin")  # what may hold much, and is read for what it holds


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


def contents(data: dict[str, Any], resolve: Resolve | None = None) -> list[str]:
    """Name the files that were read, and the standard input."""
    names: dict[str, None] = {}
    groups = text.followed(data.get("reads"), resolve)
    for group in groups if isinstance(groups, list) else ():
        group = text.followed(group, resolve)
        if isinstance(group, dict) and group.get("of") in _CONTENTS:
            values = text.followed(group.get("values"), resolve)
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
