"""Know what models cost, for the limit of a policy in dollars, and of which of them nobody knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from playhead._clock import SystemClock
from playhead.capture import answering, guard
from playhead.policy.rules import UNPRICED
from playhead.store.price_list import PriceList
from playhead.views.prices import Used, priced


class Charges:
    """What models cost a run under a limit of dollars."""

    def __init__(self, own: Mapping[str, Mapping[str, float]], root: Path | None) -> None:
        """Take the user's own prices, and the store in which is kept what other models cost."""
        self._sold = PriceList(own, root)
        self._told = False

    def cost(self, provider: str | None, models: Sequence[str | None], counts: Sequence[int]) -> float:
        """Return what an answer cost, by the first of the model's names that has a price."""
        used, now_us = Used(*counts), SystemClock().wall_us()
        amounts = (priced(self._sold, provider, model, used, now_us)[0] for model in models if model)
        return next((amount for amount in amounts if amount is not None), 0.0)

    def knows(self, asked: str) -> bool:
        """Say whether it can be told what a model costs; of what a tape answers, whether it could be."""
        player = answering.player
        if player is not None and not player.is_in_world():
            return asked not in player.denied(UNPRICED)
        return self._sold.knows(asked)

    @property
    def hint(self) -> str:
        """Say how to go on where a model is denied since nobody knows what it costs."""
        return f"To ask it: {self._sold.to_know_more}, or take limits.cost out of the policy."

    def tell(self, about: str) -> None:
        """Say once that a model is denied for that: libraries may wrap the refusal, or ask again and again."""
        if not self._told:
            self._told = True
            guard.tell(f"{about}. {self.hint}")
