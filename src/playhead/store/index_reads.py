"""Turn what a lane read into rows of the index: by source and module, files, variables and lanes by their name.

What was said is not taken over, only that it was asked and how often: `playhead show --reads` has the values. A field
of the wrong form, or one that is written as a reference, has no name here, and nothing raises for it.
"""

from __future__ import annotations

from typing import Any

import orjson

# Source, via, module, target, times, detail.
Row = tuple[str | None, str | None, str | None, str | None, int, str | None]

_TOLD = ("size", "digest", "error", "omitted", "special")  # of a file


def rows_of(data: dict[str, Any]) -> list[Row]:
    """Return the rows of one `ambient.read`: one for each group, and of what has a name one for each name."""
    from playhead.event.reads import count  # here: a list of runs without reads does not need it

    found: dict[Row, int] = {}
    for field in ("packed", "reads"):
        groups = data.get(field)
        for group in groups if type(groups) is list else []:
            if type(group) is not dict:
                continue
            source, via, module = _text(group.get("of")), _text(group.get("via")), _text(group.get("by"))
            values = group.get("values")
            if field == "packed" or type(values) is not list:
                _add(found, (source, via, module, None, 0, None), count({"packed": [group]}))
                continue
            for value in values:
                for target, detail in _named(source, value):
                    _add(found, (source, via, module, target, 0, detail), 1)
    return [(*row[:4], times, row[5]) for row, times in found.items()]


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
