"""Say which runs of Pythons that two programs started belong together, and what came of comparing them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.views.diff.comparison import Comparison, Deviation

_MISSING = "only the {side} run started it"


@dataclass(frozen=True, slots=True)
class Started:
    """A run of a Python that a program started."""

    run: str
    name: str
    argv: tuple[str, ...]  # as it was called


Pair = tuple[Started | None, Started | None]


@dataclass(frozen=True)
class Child:
    """What two such runs differ in."""

    name: str
    left: str | None  # the id of the run; None where only the other program started it
    right: str | None
    compared: Comparison | None = None
    problem: str = ""  # why they could not be compared

    @property
    def identical(self) -> bool | None:
        """Say whether nothing differs; None where that could not be told."""
        if self.compared is not None:
            return self.compared.identical
        return None if self.problem else False

    @property
    def headline(self) -> Deviation | None:
        """Return where the two part."""
        return None if self.compared is None else self.compared.headline

    @property
    def why(self) -> str:
        """Say why there is nothing to compare, or why that could not be done."""
        if self.problem or self.compared is not None:
            return self.problem
        return _MISSING.format(side="left" if self.right is None else "right")

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "name": self.name,
            "left": self.left,
            "right": self.right,
            "identical": self.identical,
            "headline": None if self.headline is None else self.headline.as_dict(),
            "why": self.why or None,
        }


def paired(lefts: Sequence[Started], rights: Sequence[Started]) -> list[Pair]:
    """Pair what has the same name and was called the same, one after the other; of what is left the same name."""
    mates: dict[str, Started] = {}
    taken: set[str] = set()
    keys: tuple[Callable[[Started], Hashable], ...] = (lambda one: (one.name, one.argv), lambda one: one.name)
    for key in keys:
        known: dict[Hashable, list[Started]] = {}
        for other in reversed(rights):
            if other.run not in taken:
                known.setdefault(key(other), []).append(other)
        for one in lefts:
            if one.run not in mates and (others := known.get(key(one))):
                mates[one.run] = others.pop()
                taken.add(mates[one.run].run)
    pairs: list[Pair] = [(one, mates.get(one.run)) for one in lefts]
    return pairs + [(None, other) for other in rights if other.run not in taken]
