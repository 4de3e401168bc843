"""Collect what is counted of one run: its calls and its steps, with what they took, and who answered them.

The index has the same facts of many runs (store/index_rows.py), by the same rules. Lines come from files that anybody
may have written: a name of the wrong form is its JSON text, a number that is none is not there, and nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from playhead._clock import moment_us
from playhead.event.envelope import Event
from playhead.event.kinds import CALLS, CLOSING, OPENING_TO_CLOSING
from playhead.event.usage import is_silent, is_talk
from playhead.views.points import mapping
from playhead.views.prices import Bill, Prices, Used
from playhead.views.retries import Retries

COUNT_MAX = 2**53  # as in the index: nobody has counted as many
REFUSED = "playhead.errors.DeviationError"  # the error of a call that nobody answered: a replay did not let it out
LEAVE_THE_TAPE = ("model", "step", "fork", "resume")  # replays that say at their end what they asked of the world

_STEP = "step.started"
_NOTHING = Used()


@dataclass(slots=True)
class Fact:
    """One call, or one step."""

    kind: str  # model, tool, mcp, http, process; step
    span: str
    parent: str | None
    name: str | None
    lane: str | None = None
    key: str | None = None
    at_us: int | None = None  # since 1970
    began_us: int = 0
    ended: bool = False
    took_us: int | None = None  # None too where nobody saw it
    status: str | None = None
    again: bool = False  # after it had failed
    refused: bool = False
    taped: bool | None = None  # answered from a tape; None where nobody says
    provider: str | None = None
    model: str | None = None  # as the provider named it, else as it was asked for
    used: Used = _NOTHING
    talk: bool = True  # of a sort that says its tokens
    silent: bool = True  # nobody knows what it used
    cost: float | None = None  # as the provider said it

    @property
    def is_free(self) -> bool:
        """Say whether a call failed without having used a token."""
        used = self.cost is not None or self.used.tokens_in or self.used.tokens_out
        return self.status == "error" and not (used or self.silent)

    def charge(self, bill: Bill) -> None:
        """Add what a call of a model cost to a bill."""
        bill.add(self.provider, self.model or "", self.used, self.at_us, said=self.cost, silent=int(self.silent))


class Facts:
    """Take the events of one run in order. `resolve` follows a reference inside a value."""

    def __init__(self, resolve: Callable[[Any], Any] | None = None) -> None:
        self.run: str | None = None
        self.started = ""
        self.agent: str | None = None
        self.mode: str | None = None  # how the run came from another one
        self.ended: str | None = None  # ok, error, cancelled
        self.all: list[Fact] = []
        self._resolve = resolve
        self._started_us: int | None = None
        self._first_us = self._last_us = 0
        self._ended_us: int | None = None
        self._open: dict[tuple[str, str], list[Fact]] = {}
        self._known: dict[str, Fact] = {}  # by span
        self._retries = Retries()
        self._reported = 0  # facts that a report tells of, from the first on
        self._live: set[str] = set()

    def take(self, event: Event) -> list[Fact]:
        """Look at the next event, and return what it ended."""
        data = mapping(event.data)
        if self.run is None:
            self._first(event)
        self._last_us = max(self._last_us, event.elapsed_us)
        if event.kind.startswith("run."):
            self._head(event, data)
        elif event.kind == "replay.reported":
            self._reported = len(self.all)
            live = data.get("live_spans")
            live = live if self._resolve is None or isinstance(live, list) else self._resolve(live)
            self._live.update(span for span in (live if isinstance(live, list) else []) if isinstance(span, str))
        elif event.span is not None and (event.kind in CALLS or event.kind == _STEP):
            self._begin(event, event.span, data)
        elif event.span is not None and event.kind in CLOSING:
            ended = self._open.pop((event.kind, event.span), [])
            for fact in ended:
                _end(fact, event, data)
                self._retries.ended(fact)
            return ended
        return []

    @property
    def duration_us(self) -> int:
        """Return how long the run took; up to its last event where it has no end."""
        return (self._last_us if self._ended_us is None else self._ended_us) - self._first_us

    def take_all(self, events: Iterable[Event]) -> Facts:
        """Take several events."""
        for event in events:
            self.take(event)
        return self

    def finish(self) -> list[Fact]:
        """Return them all; now it is known which calls were answered from a tape."""
        told = self._reported if self.mode in LEAVE_THE_TAPE else 0
        told = len(self.all) if self.mode in ("exact", "reingest") else told  # nobody was asked anything
        for fact in self.all[:told]:
            fact.taped = fact.kind != "step" or None
        for span in self._live if self.mode in LEAVE_THE_TAPE else ():
            # What a live call is a part of was not answered from the tape either.
            asked = self._known.get(span)
            if asked is None or asked.kind == "step":
                continue
            asked.taped = False
            if (around := self._known.get(asked.parent or "")) is not None:
                around.taped = False
        return self.all

    def bill(self, prices: Prices | None, *, taped: bool = False) -> Bill:
        """Add up what models were paid; with `taped` also what would have been for what a tape answered.

        Where a tape answered all of it, that is nothing.
        """
        bill = Bill(prices)
        asked = [fact for fact in self.finish() if fact.kind == "model"]
        paid = [fact for fact in asked if taped or fact.taped is not True]
        for fact in paid:
            fact.charge(bill)
        if asked and not paid:
            bill.amount = 0.0
        return bill

    def step_of(self, fact: Fact) -> str | None:
        """Return the name of the innermost step around a call; None where it is in none."""
        passed = set()
        around = fact.parent
        while around is not None and around not in passed:
            passed.add(around)
            known = self._known.get(around)
            if known is None or known.kind == "step":
                return None if known is None else known.name
            around = known.parent
        return None

    def _first(self, event: Event) -> None:
        self.run, self.started, self._first_us = event.run, event.time, event.elapsed_us
        self._last_us = event.elapsed_us
        self._started_us = moment_us(event.time)

    def _head(self, event: Event, data: dict[str, Any]) -> None:
        if event.kind == "run.started":
            mode = mapping(data.get("origin")).get("mode")
            self.mode = mode if isinstance(mode, str) else None
            self._asked(data)
        elif event.kind == "run.finished":
            status = data.get("status")
            self.ended = status if status in ("ok", "error", "cancelled") else "error"
            self._ended_us = event.elapsed_us
        elif event.kind == "run.reopened":
            self.ended = self._ended_us = None

    def _asked(self, data: dict[str, Any]) -> None:
        """Take over who was asked: from the start, or from the agent that adopted the run."""
        agent = mapping(data.get("agent"))
        if agent:
            self.agent = _text(agent.get("name"))

    def _begin(self, event: Event, span: str, data: dict[str, Any]) -> None:
        kind = event.kind.partition(".")[0]
        if kind == "step" and data.get("adopts") is True:  # it is the run itself, and none of its steps
            self._asked(data)
            return
        name = data.get({"model": "model", "mcp": "method"}.get(kind, "name"))
        fact = Fact(kind, span, event.parent, _text(name), event.lane, event.key, began_us=event.elapsed_us)
        attempt = _count(data.get("attempt")) or 1
        if kind == "model":
            fact.provider, fact.model = _text(data.get("provider")), fact.name
            fact.talk = fact.silent = is_talk(data.get("operation"))
            fact.at_us = None if self._started_us is None else self._started_us + event.elapsed_us
        fact.again = self._retries.began(fact, attempt)
        self.all.append(fact)
        self._known.setdefault(span, fact)
        self._open.setdefault((OPENING_TO_CLOSING[event.kind], span), []).append(fact)


def _end(fact: Fact, event: Event, data: dict[str, Any]) -> None:
    fact.ended = True
    fact.status = _text(data.get("outcome" if fact.kind == "http" else "status"))
    fact.refused = mapping(data.get("error")).get("type") == REFUSED
    if not (fact.kind == "tool" and data.get("inferred") is True):  # both events are written at one moment
        fact.took_us = max(0, event.elapsed_us - fact.began_us)
    if fact.kind != "model":
        return
    model = _text(data.get("model"))
    fact.model, fact.name = model or fact.model, model if fact.name is None else fact.name
    usage = mapping(data.get("usage"))
    counted = [_count(usage.get(name)) for name in ("input", "output", "cached", "reasoning")]
    fact.used = Used(*(amount or 0 for amount in counted))
    fact.silent = fact.silent and is_silent(data, counted[0] is not None or counted[1] is not None)
    cost = data.get("cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= COUNT_MAX:
        fact.cost = float(cost)


def _text(value: Any) -> str | None:
    """Return a string as it is, and anything else that is there as its JSON text."""
    if value is None or isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return repr(value)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= COUNT_MAX else None
