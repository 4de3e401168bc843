"""Follow what a run spent, from event to event: the tokens that its models used, and what was paid for them.

Who answered a call of a replay that left its tape is known only from what that says at its end: with it, all that was
counted before is counted anew, so that a moment before it has the same money as the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from playhead.event.envelope import Event
from playhead.views.facts import LEAVE_THE_TAPE, Fact, Facts
from playhead.views.points import mapping
from playhead.views.prices import Bill, Prices

_OF_MODELS = ("run.started", "model.invoked", "model.responded", "replay.reported")


class Paid(NamedTuple):
    """What was paid by a place."""

    place: int
    cost: float | None  # nothing, where a tape answered all of it
    unpriced: int  # models without a price, so many of all
    silent: int  # calls that had not said their tokens, those among them that were not answered yet


class Spending:
    """Take the events of one run in order; `tokens` and `paid` say what was spent by a place.

    `resolve` follows a reference inside a value.
    """

    def __init__(self, prices: Prices | None = None, resolve: Callable[[Any], Any] | None = None) -> None:
        self._facts, self._prices = Facts(resolve), prices
        self._tokens: list[tuple[int, int, int]] = [(-1, 0, 0)]  # place, in, out
        self._calls: list[tuple[int, Fact, bool]] = []  # where each of models was asked, and where it was answered
        self._counted = 0  # of these
        self._begin()

    def take(self, event: Event, place: int) -> None:
        """Look at the next event."""
        if event.kind not in _OF_MODELS and not self.is_told_at_the_end:
            return
        known = len(self._facts.all)
        ended = self._facts.take(event)
        if event.kind == "model.invoked":
            self._calls += [(place, fact, False) for fact in self._facts.all[known:]]
        elif event.kind == "model.responded":
            self._calls += [(place, fact, True) for fact in ended]
            usage = mapping(mapping(event.data).get("usage"))
            used = (usage.get(name) for name in ("input", "output"))
            more = [max(0, amount) if type(amount) is int else 0 for amount in used]
            _, tokens_in, tokens_out = self._tokens[-1]
            self._tokens.append((place, tokens_in + more[0], tokens_out + more[1]))
        elif event.kind == "replay.reported":
            self._facts.finish()
            self._begin()

    @property
    def is_told_at_the_end(self) -> bool:
        """Say whether what was paid is known from the end of the run alone."""
        return self._facts.mode in LEAVE_THE_TAPE

    def tokens(self, place: int) -> tuple[int, int]:
        """Return the tokens in and out."""
        return self._tokens[bisect_right(self._tokens, place, key=lambda one: one[0]) - 1][1:]

    def paid(self, place: int) -> tuple[Paid, list[str]]:
        """Return what was paid, and the models without a price: in this list may be more than were known then."""
        while self._counted < len(self._calls):
            self._count(*self._calls[self._counted])
            self._counted += 1
        return self._paid[bisect_right(self._paid, place, key=lambda one: one.place) - 1], self._bill.unpriced

    def _begin(self) -> None:
        self._bill, self._free, self._waiting, self._counted = Bill(self._prices), True, 0, 0
        self._paid = [Paid(-1, None, 0, 0)]

    def _count(self, place: int, fact: Fact, answered: bool) -> None:
        bill = self._bill
        if self._facts.mode not in ("exact", "reingest") and fact.taped is not True:
            self._free = False
            self._waiting += -fact.talk if answered else fact.talk
            if answered:
                fact.charge(bill)
        self._paid.append(
            Paid(place, 0.0 if self._free else bill.amount, len(bill.unpriced), bill.silent + self._waiting)
        )
