"""Put a run that came from outside into the order of its times, and let its spans say what is known of them by now.

Its lines are sealed as they arrived: children before their parents, some after the end, some told anew. Views see it
settled: by (elapsed_us, depth), of what is the same in both what ended first, and never anything before what it is in.
So the same spans make the same run for every view, in whatever order and in however many pieces they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from playhead._clock import parse_utc, utc_text
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.views.placing import Placing
from playhead.views.points import mapping

_SPANS = {opens: closes for opens, closes in OPENING_TO_CLOSING.items() if opens != "run.started"}
_CLOSES = CLOSING - {"run.finished"}
_TURNS = ("run.finished", "run.reopened")
_OF_THE_RUN = frozenset({"run.invalidated", "content.erased", "run.graded"})
_CAME = frozenset({*_SPANS, *_CLOSES, "emitter.described", "log.emitted", "span.revised"})  # at any time
_ANEW = ("opened", "closed")  # of a revision: what is said by the events of its span then

Resolve = Callable[[Any], Any]


def is_imported(started: dict[str, Any]) -> bool:
    """Say from the data of `run.started` whether a run came from outside, and its events in the order of arrival."""
    return started.get("received") is not None or mapping(started.get("origin")).get("mode") == "import"


def told(received: Any, external_id: Any) -> str:
    """Say what made a run of what came from outside, and in which order views show it; nothing of any other run."""
    if not isinstance(received, dict):
        return ""
    of = " ".join(str(part) for part in (received.get("rule"), external_id) if part is not None)
    return f"{received.get('by')}, {of or 'as one run'}; in the order of the times"


def standing(events: Iterable[Event], resolve: Resolve | None = None) -> Iterator[Event]:
    """Yield the events of a run as views take them: settled where it came from outside, else one by one as they are."""
    going_on = iter(events)
    first = next(going_on, None)
    if first is None:
        return
    whole = chain([first], going_on)
    yield from settled(whole, resolve) if is_imported(mapping(first.data)) else whole


def settled(events: Iterable[Event], resolve: Resolve | None = None) -> list[Event]:
    """Return the events of a run that came from outside in the order of their times, as they stand now.

    What was revised says the newest in the events of its span; the revisions stay as points. Times count from the
    earliest event, at which `run.started` stands. Ends of the run come after its body, then what was added later.
    `resolve` follows a reference inside a value.
    """
    events = sorted(events, key=lambda event: event.seq)
    settlement = Settlement(events, resolve)
    return [settlement.amended(events[at]) for at in settlement.order]


class _Now(NamedTuple):
    """What a span is now."""

    opens: str | None
    opened: Any
    closed: Any
    key: str | None
    parent: str | None
    times: tuple[int, int] | None


class Settlement:
    """Know of a run that came from outside how each of its events stands now, and in which order."""

    def __init__(self, events: Sequence[Event], resolve: Resolve | None = None) -> None:
        self._resolve = resolve
        self.taken = len(events)
        self._now = _revisions(events)
        self._started = next((event for event in events if event.kind == "run.started"), None)
        started = {} if self._started is None else mapping(self._started.data)
        self._is_received = started.get("received") is not None
        self._root = None if self._started is None else self._started.span
        self._top: frozenset[str] = frozenset()  # spans that would be in themselves, and stand at the top
        self._base_us = _base_us(self._started)
        self._start_us = self._end_us = 0
        self.order = self._ordered(events)  # of the events that stand, their places

    def amended(self, event: Event) -> Event:
        """Return an event as it stands now."""
        kind, at_us = event.kind, event.elapsed_us
        changes: dict[str, Any] = {}
        if (self._started is not None and event.seq == self._started.seq) or kind == "emitter.described":
            at_us = self._start_us
        elif kind in _TURNS and self._is_received:
            at_us = self._end_us
        elif kind == "span.revised":
            changes["data"] = {name: value for name, value in mapping(event.data).items() if name not in _ANEW}
        elif event.span is not None and (kind in _SPANS or kind in _CLOSES):
            if (now := self._now.get(event.span)) is not None:
                at_us, changes = self._revised(event, now)
            if event.span in self._top:
                changes["parent"] = self._root
        if at_us != event.elapsed_us and (time := _time(self._base_us, at_us)) is not None:
            changes["time"] = time
        if at_us - self._start_us != event.elapsed_us:
            changes["elapsed_us"] = at_us - self._start_us
        return msgspec.structs.replace(event, **changes) if changes else event

    def _revised(self, event: Event, now: _Now) -> tuple[int, dict[str, Any]]:
        """Return when an event of a span that was told anew stands now, and what else is another."""
        at_us, opening = event.elapsed_us, event.kind in _SPANS
        if now.times is not None:
            at_us = now.times[0 if opening else 1]
        changes: dict[str, Any] = {"data": self._followed(now.opened if opening else now.closed)}
        if now.opens is not None:
            changes["kind"] = now.opens if opening else _SPANS[now.opens]
        kind = changes.get("kind", event.kind)
        if opening:
            same = kind == event.kind and changes["data"] == event.data
            changes["key"] = event.key if now.key is None and same else now.key
        if mapping(event.data).get("adopts") is True and kind.startswith("step."):
            changes["data"] = {**changes["data"], "adopts": True}  # which its writer says, and not the span
        if now.parent is not None:
            changes["parent"] = now.parent
        return at_us, changes

    def _followed(self, value: Any) -> dict[str, Any]:
        """Return what a revision says; all of it may be a reference to what was said before."""
        if self._resolve is not None and isinstance(value, dict) and next(iter(value), "").startswith("$"):
            value = self._resolve(value)
        return mapping(value)

    def _ordered(self, events: Sequence[Event]) -> list[int]:
        first: list[int] = []
        turns: list[int] = []
        later: list[int] = []
        body: list[int] = []
        finished = False
        for at, event in enumerate(events):
            kind = event.kind
            if event is self._started:
                first.insert(0, at)
            elif kind in _TURNS:
                turns.append(at)
                finished = kind == "run.finished"
            elif kind == "emitter.described":
                first.append(at)
            elif kind in _OF_THE_RUN or (finished and kind not in _CAME):
                later.append(at)
            else:
                body.append(at)
        return first + self._placed(events, body) + turns + later

    def _placed(self, events: Sequence[Event], body: list[int]) -> list[int]:
        """Return the events of the body in the order of their times."""
        placing = Placing()
        moments: list[int] = []
        for at in body:
            event = events[at]
            at_us, changes = event.elapsed_us, dict[str, Any]()
            is_span = event.span is not None and (event.kind in _SPANS or event.kind in _CLOSES)
            if is_span and (now := self._now.get(event.span or "")) is not None:
                at_us = at_us if now.times is None else now.times[0 if event.kind in _SPANS else 1]
                changes = {} if now.parent is None else {"parent": now.parent}
            if is_span and event.kind in _SPANS:
                placing.opens(event.span or "", changes.get("parent", event.parent), at_us, at)
            elif is_span:
                placing.closes(event.span or "", at_us, at)
            elif event.kind == "span.revised":
                placing.revises(event.span, event.parent, at_us, at)
            else:
                digest = mapping(mapping(event.data).get("otlp")).get("digest")
                placing.happens(event.parent, at_us, at, digest if isinstance(digest, str) else "")
            if event.kind != "span.revised":  # which came when more was known
                moments.append(at_us)
        own_us = [] if self._started is None or (self._is_received and moments) else [self._started.elapsed_us]
        self._start_us, self._end_us = min(own_us + moments, default=0), max(own_us + moments, default=0)
        order = placing.order()
        self._top = frozenset(placing.cut)
        return order


def _revisions(events: Iterable[Event]) -> dict[str, _Now]:
    """Return what was said last of every span that was told anew; what one leaves out is as it was before."""
    found: dict[str, _Now] = {}
    for event in events:
        if event.kind != "span.revised" or event.span is None:
            continue
        data, before = mapping(event.data), found.get(event.span)
        opens, parent, times = data.get("opens"), data.get("parent"), data.get("elapsed_us")
        if not (isinstance(opens, str) and opens in _SPANS):
            opens = None if before is None else before.opens
        if not isinstance(parent, str):
            parent = event.parent if event.parent is not None or before is None else before.parent
        if isinstance(times, list) and [type(one) for one in times] == [int, int]:
            told: tuple[int, int] | None = (times[0], times[1])
        else:
            told = None if before is None else before.times
        found[event.span] = _Now(opens, data.get("opened"), data.get("closed"), event.key, parent, told)
    return found


def _base_us(started: Event | None) -> int | None:
    """Return the moment that counts as 0 in the lines of a run."""
    try:
        return None if started is None else parse_utc(started.time) - started.elapsed_us
    except (ValueError, OverflowError):  # which nobody of ours wrote
        return None


def _time(base_us: int | None, at_us: int) -> str | None:
    try:
        return None if base_us is None else utc_text(base_us + at_us)
    except (ValueError, OverflowError, OSError):
        return None
