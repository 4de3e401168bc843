"""Write CSV that a spreadsheet shows and never calculates."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_rows(target: TextIO, rows: Iterable[Sequence[Any]]) -> int:
    """Write rows and return how many; text that a spreadsheet would take for a formula gets a leading apostrophe."""
    writer = csv.writer(target, lineterminator="\n")
    count = 0
    for row in rows:
        writer.writerow([_cell(value) for value in row])
        count += 1
    return count


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    if isinstance(value, bytes):
        return value.hex()
    return value
