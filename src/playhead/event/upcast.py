"""Bring lines of older formats up to the present one, by pure functions in a table.

The lines on disk are never changed: their hashes cover them. `TABLE[v]` takes the fields of a line of format `v` and
returns those of format `v + 1`. A line of a newer format than ours is returned as it is: fields are only ever added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead.errors import BrokenLine

Fields = dict[str, Any]

CURRENT = 1
TABLE: dict[int, Callable[[Fields], Fields]] = {}


def upcast(
    fields: Fields, table: dict[int, Callable[[Fields], Fields]] | None = None, current: int = CURRENT
) -> Fields:
    """Return the fields of a line in the present format."""
    steps = TABLE if table is None else table
    version = fields.get("v")
    if not isinstance(version, int) or version < 1:
        raise BrokenLine(f"a line has no format version: {version!r}")
    while version < current:
        fields = steps[version](fields)
        version += 1
    return fields
