"""Tell which questions to models, and which steps, come once more after they had failed.

The index tells it of many runs by the same rules (store/index_retries.py).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.views.facts import Fact

_Question = tuple[str | None, str]  # provider and key
_Place = tuple[str | None, str | None]  # a parent and a name: what attempts at a step have in common


class Retries:
    """Take calls of models and steps, where they begin and where they end."""

    def __init__(self) -> None:
        self._failed: dict[_Question, bool] = {}  # whether it had when it was last asked
        self._unlucky: dict[tuple[_Place, str | None], bool] = {}  # whether the last step there had; and of one lane
        self._open: Counter[_Place] = Counter()

    def began(self, fact: Fact, attempt: int) -> bool:
        """Say whether one is a retry that begins here; `attempt` is which one it says that it is."""
        if fact.kind == "model":
            return attempt > 1 or (fact.key is not None and self._failed.get((fact.provider, fact.key), False))
        if fact.kind != "step":
            return False
        place = fact.parent, fact.name
        others, self._open[place] = self._open[place], self._open[place] + 1
        # One of another lane is an attempt at the same only where nothing like it goes on beside.
        found = self._unlucky.get((place, fact.lane), not others and self._unlucky.get((place, None), False))
        return attempt > 1 and found

    def ended(self, fact: Fact) -> None:
        """Take over how one ended."""
        failed = fact.status not in (None, "ok")
        if fact.kind == "model" and fact.key is not None:
            self._failed[fact.provider, fact.key] = failed
        elif fact.kind == "step":
            place = fact.parent, fact.name
            self._open[place] -= 1
            self._unlucky[place, None] = self._unlucky[place, fact.lane] = failed
