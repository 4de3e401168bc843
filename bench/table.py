"""One row of a bench: what was measured, what came out, what it must be."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A measurement and whether it is within its limit."""

    name: str
    value: str
    against: str
    ok: bool = True
