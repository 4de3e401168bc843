"""Turn measurements into the lines of one table: name, value, ratio, goal, and whether it is met."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """One line of the table. Without a goal there is nothing to miss."""

    name: str
    value: str = ""
    ratio: str = ""
    goal: str = ""
    ok: bool | None = None

    def __str__(self) -> str:
        verdict = {None: "", True: "ok", False: "MISS"}[self.ok]
        return f"{verdict:4s}  {self.name:42s} {self.value:>17s}  {self.ratio:24s} {self.goal}".rstrip()


def at_least(name: str, value: str, ratio: float, of: str, goal: float, aim: float | None = None) -> Line:
    """Return a line whose ratio must be that high."""
    wanted = f"≥ {goal:g}" + (f" (aim {aim:g})" if aim else "")
    return Line(name, value, f"{_short(ratio)} × {of}", wanted, ratio >= goal)


def at_most(name: str, value: str, ratio: float, of: str, goal: float) -> Line:
    """Return a line whose ratio must be that low."""
    return Line(name, value, f"{_short(ratio)} × {of}", f"≤ {goal:g}", ratio <= goal)


def within(name: str, value: float, unit: str, most: float) -> Line:
    """Return a line whose value must be that low."""
    return Line(name, f"{_short(value)} {unit}", "", f"≤ {most:g} {unit}", value <= most)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of the rounds: what slows the machine down slows both."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
