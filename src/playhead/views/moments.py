"""Say how things stood at any event of a run: what was open, asked, answered, allowed, made, read and spent by then.

Events are taken once, in order, and only where something changed is kept. After that every moment is found by looking
up places in sorted lists: going back and forth in a run of a million events costs no more than in a small one.

What ran beside a lane (neither began it nor was begun by it) has another conversation and another context: a moment has
the last of those that led to it. The events of a run that came from outside are taken in the order of their times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from playhead.errors import BrokenLine
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING, UNSEEN
from playhead.event.reads import count
from playhead.views.imported import is_imported, settled
from playhead.views.open_spans import OpenSpans
from playhead.views.points import mapping
from playhead.views.prices import Prices
from playhead.views.prompts import messages_of
from playhead.views.reads import LaneRead, reads_of
from playhead.views.spans import SpanView
from playhead.views.spending import Spending

_LAST_READS = 10
_POLICY = ("capability", "resource", "decision", "rule", "reason", "mode")
_ARTIFACT = ("name", "role", "media", "digest", "size")

Fetch = Callable[[int], Event]  # one event with every value as it was
_Known = tuple[list[int], list[int]]  # places from which on something is in force, and where each was done


class Beginning(Sequence[Any]):
    """The first items of a list that may go on."""

    def __init__(self, items: Sequence[Any], length: int) -> None:
        self._items, self._length = items, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self._items[place] for place in range(*at.indices(self._length))]
        if not -self._length <= at < self._length:
            raise IndexError(at)
        return self._items[at + self._length if at < 0 else at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class _Lanes:
    """Places where something was done, by who led to what: a lane and those that it began since, else what began it."""

    def __init__(self, began: dict[str, int]) -> None:
        self._began = began  # by lane: the place of its first event, or of the first that it led to
        self._own: dict[str, _Known] = {}
        self._below: dict[str, _Known] = {}  # of a lane and all that it led to

    def add(self, lane: str, place: int, what: int | None = None) -> None:
        """Note that something was done at a place; `what` was done before, and is in force again from there on."""
        what = place if what is None else what
        _append(self._own.setdefault(lane, ([], [])), place, what)
        at = inner = lane
        while at:
            own = self._own.get(at)
            # What a lane began, and then did something itself, goes on beside it.
            if at == lane or own is None or own[0][-1] < self._began[inner]:
                _append(self._below.setdefault(at, ([], [])), place, what)
            at, inner = at.rpartition(".")[0], at

    def keep(self, lane: str, since: int, place: int) -> None:
        """Have in force what was so at an earlier place, whatever was done beside the lane since then."""
        what, own = self.last(lane, since), self._own.get(lane)
        if what is not None and (own is None or own[0][-1] <= since):
            self.add(lane, place, what)

    def last(self, lane: str, place: int) -> int | None:
        found = _known(self._below.get(lane), place)
        while found is None and lane:
            # What a lane does after it began another one is its own: the other one goes on beside it.
            place = min(place, self._began.get(lane, place))
            lane = lane.rpartition(".")[0]
            found = _known(self._own.get(lane), place)
        return found


class Moments:
    """Take the events of one run in order; `at` says how things stood. More events may be taken later."""

    def __init__(self, fetch: Fetch, prices: Prices | None = None, resolve: Callable[[Any], Any] | None = None) -> None:
        self._fetch = fetch
        self.taken = 0  # events
        self._order: list[int] = []  # of every event that was taken, its seq; below, places in this list are kept
        self._places: dict[int, int] | None = None  # the other way round, where that is not the same
        self._kinds: list[tuple[str, str, str, int]] = []  # of every event: kind, time, lane, elapsed_us
        self._lines: int | None = None  # that were there, of a run that came from outside
        self._resolve = resolve
        self._spending = Spending(prices, resolve)
        self._seqs: dict[str, list[int]] = {"model.invoked": [], "tool.called": [], "gap.noted": [], "ended": []}
        self._began: dict[str, int] = {}  # by lane: the place of its first event, or of the first that it led to
        self._calls: dict[str | None, int] = {}  # of models, by span: where they were asked
        self._asked, self._answered, self._packs, self._reads = (_Lanes(self._began) for _ in range(4))
        self._checks: tuple[list[int], list[dict[str, Any]]] = ([], [])
        self._artifacts: tuple[list[int], list[dict[str, Any]]] = ([], [])
        self._read_counts: tuple[list[int], list[int]] = ([], [])
        self._variables: dict[str, tuple[list[int], list[Any]]] = {}  # by name, in the order of their first reads
        self.spans, self.run, self.started = OpenSpans(), "", mapping(None)

    def take(self, event: Event) -> None:
        """Look at the next event."""
        place = self.taken
        self.taken += 1
        self._order.append(event.seq)
        if event.seq != place:
            self._places = self._places or {seq: number for number, seq in enumerate(self._order)}
        if self._places is not None:
            self._places[event.seq] = place
        self._kinds.append((event.kind, event.time, event.lane, event.elapsed_us))
        lane = event.lane
        while lane and lane not in self._began:
            self._began[lane] = place
            lane = lane.rpartition(".")[0]
        if event.span is not None and (event.kind in OPENING_TO_CLOSING or event.kind in CLOSING):
            self.spans.turn(event.span, place, opens=event.kind in OPENING_TO_CLOSING)
        self._spending.take(event, place)
        data = mapping(event.data)
        match event.kind:
            case "run.started":
                self.run, self.started = event.run, data
                self._packs.add(event.lane, place)
            case "model.invoked":
                self._asked.add(event.lane, place)
                self._calls.setdefault(event.span, place)
                self._seqs["model.invoked"].append(place)
            case "model.responded":
                self._answered.add(event.lane, place)
                if (asked := self._calls.pop(event.span, None)) is not None:
                    self._asked.add(event.lane, place, asked)
                    self._packs.keep(event.lane, asked, place)
            case "tool.called":
                self._seqs["tool.called"].append(place)
            case "gap.noted" if data.get("reason") not in tuple(UNSEEN):
                self._seqs["gap.noted"].append(place)
            case "run.finished" | "run.reopened":
                self._seqs["ended"].append(place)
            case "policy.checked":
                _append(self._checks, place, {"seq": event.seq, **{name: data.get(name) for name in _POLICY}})
            case "artifact.created":
                _append(self._artifacts, place, {"seq": event.seq, **{name: data.get(name) for name in _ARTIFACT}})
                if data.get("role") == "context_pack":
                    self._packs.add(event.lane, place)
            case "ambient.read":
                self._read(event, place, data)

    def follow(self, events_from: Callable[[int], Iterable[Event]], seq: int) -> None:
        """Take the events up to one that were not taken yet.

        All of them where their times say the order, and where the end says what a tape answered.
        """
        if self.taken == 0:
            first = next(iter(events_from(0)), None)
            if first and is_imported(mapping(first.data)):
                self._settle(list(events_from(0)))
        if self._lines is None and self.taken <= seq:
            for event in events_from(self.taken):
                self.take(event)
                if event.seq >= seq and not self._spending.is_told_at_the_end:
                    break

    def _settle(self, events: Sequence[Event]) -> None:
        """Take all events of a run that came from outside, in the order of their times."""
        opened: dict[str | None, int] = {}
        for place, event in enumerate(settled(events, self._resolve)):
            self.take(event)
            opened.setdefault(event.span, place)
        # What was only half written when it came first stands where its span does.
        places = {event.seq: opened.get(event.span, 0) for event in events}
        self._places = places | {seq: place for place, seq in enumerate(self._order)}
        self._lines = len(events)

    def is_behind(self, seq: int) -> bool:
        """Say whether a run that came from outside had not this event yet when it was taken."""
        return self._lines is not None and seq >= self._lines

    def at(self, seq: int) -> Moment:
        """Return how things stood right after an event that was taken."""
        place = seq if self._places is None else self._places.get(seq, -1)
        if not 0 <= place < self.taken:
            raise IndexError(seq)
        return Moment(self, place)

    def event(self, place: int) -> Event:
        """Return an event by its place, every value as it was."""
        return self._fetch(self._order[place])

    def seq(self, place: int) -> int:
        """Return the number of the event at a place."""
        return self._order[place]

    def _read(self, event: Event, place: int, data: dict[str, Any]) -> None:
        self._reads.add(event.lane, place)
        counts = self._read_counts[1]
        _append(self._read_counts, place, (counts[-1] if counts else 0) + count(data))
        groups = data.get("reads")
        for group in groups if isinstance(groups, list) else ():
            values = mapping(group).get("values") if mapping(group).get("of") == "os.environ" else None
            for one in values if isinstance(values, list) else ():
                for name, value in mapping(one).items():
                    told = self._variables.setdefault(name, ([], []))
                    if not told[1] or told[1][-1] != value:
                        _append(told, place, value)


class Moment:
    """How a run stood right after one event. What has to be looked up is, when it is asked for."""

    def __init__(self, moments: Moments, place: int) -> None:
        self._moments, self._place = moments, place
        self.run, self.seq = moments.run, moments.seq(place)
        self.kind, self.time, self.lane, self.elapsed_us = moments._kinds[place]
        self.model_calls = self._before("model.invoked")
        self.tool_calls = self._before("tool.called")
        self.gaps = self._before("gap.noted")
        self.tokens_in, self.tokens_out = moments._spending.tokens(place)
        paid, unpriced = moments._spending.paid(place)
        self.cost, self.calls_without_usage = paid.cost, paid.silent
        self._unpriced = Beginning(unpriced, paid.unpriced)
        self.policy_checks = Beginning(moments._checks[1], bisect_right(moments._checks[0], place))
        self.artifacts = Beginning(moments._artifacts[1], bisect_right(moments._artifacts[0], place))

    def __repr__(self) -> str:
        return f"<playhead.Moment {self.run} after event {self.seq}>"

    @cached_property
    def open_spans(self) -> list[dict[str, Any]]:
        """List what was going on, outermost first, without the run itself: seq, kind, name, lane, since_us."""
        found = []
        for place in self._moments.spans.at(self._place):
            kind, _, lane, since_us = self._moments._kinds[place]
            if kind != "run.started":
                name, seq = SpanView(self._moments.event(place)).name, self._moments.seq(place)
                found.append({"seq": seq, "kind": kind, "name": name, "lane": lane, "since_us": since_us})
        return found

    @property
    def steps(self) -> list[str]:
        """Return the names of the steps that were open in this lane and in those that led to it."""
        return [
            one["name"]
            for one in self.open_spans
            if one["kind"] == "step.started" and f"{self.lane}.".startswith(f"{one['lane']}.")
        ]

    @property
    def cost_unpriced(self) -> list[str]:
        """Return the models whose calls are not in the cost."""
        return list(self._unpriced)

    @cached_property
    def last_request(self) -> dict[str, Any] | None:
        """Return the question that a model was asked last: seq, provider, model, request as it was."""
        return self._picked(self._moments._asked, ("provider", "model", "request"))

    @cached_property
    def last_answer(self) -> dict[str, Any] | None:
        """Return what a model answered last: seq, status, response, finish, usage, error."""
        return self._picked(self._moments._answered, ("status", "response", "finish", "usage", "error"))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the conversation of the last request, the system prompt first, each message with its role."""
        return [] if self.last_request is None else messages_of(self.last_request.get("request"))

    @cached_property
    def context_pack(self) -> dict[str, Any] | None:
        """Name the context pack in force: seq, digest, name; the name is None for the empty one at the start."""
        place = self._moments._packs.last(self.lane, self._place)
        if place is None:
            return None
        seq, data = self._moments.seq(place), mapping(self._moments.event(place).data)
        if self._moments._kinds[place][0] == "run.started":
            return {"seq": seq, "digest": data.get("context_pack"), "name": None}
        return {"seq": seq, "digest": data.get("digest"), "name": data.get("name")}

    @property
    def policy(self) -> dict[str, Any] | None:
        """Return mode and digest of the policy that the run began with."""
        found = self._moments.started.get("policy")
        return found if isinstance(found, dict) else None

    @property
    def ended(self) -> str | None:
        """Return how the run had ended: ok, error, cancelled; None where it had not."""
        return None if self._end is None else str(self._end.get("status"))

    @property
    def is_settled(self) -> bool:
        """Say whether the run came from outside, and what was before this event is told by the times."""
        return self._moments._lines is not None

    @property
    def finished(self) -> bool:
        """Say whether the run had ended."""
        return self._end is not None

    @property
    def error(self) -> Any:
        """Return the error that had ended the run."""
        return None if self._end is None else self._end.get("error")

    @cached_property
    def _end(self) -> dict[str, Any] | None:
        seqs = self._moments._seqs["ended"]
        place = _last(seqs, self._place)
        if place is None or self._moments._kinds[place][0] == "run.reopened":
            return None
        return mapping(self._moments.event(place).data)

    @cached_property
    def ambient(self) -> dict[str, Any]:
        """Return what the world had told the program: reads so far, variables by name, and the last few values."""
        moments = self._moments
        counts = bisect_right(moments._read_counts[0], self._place)
        return {
            "reads": moments._read_counts[1][counts - 1] if counts else 0,
            "variables": dict(self._variables()),
            "last": [one._asdict() for one in self._last_reads()],
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead show --at`."""
        names = (
            "run", "seq", "kind", "time", "elapsed_us", "lane", "steps", "finished", "ended", "error", "open_spans",
            "last_request", "messages", "last_answer", "context_pack", "policy", "tokens_in", "tokens_out", "cost",
            "cost_unpriced", "calls_without_usage", "model_calls", "tool_calls", "gaps", "ambient",
        )  # fmt: skip
        found = {name: getattr(self, name) for name in names}
        return {**found, "policy_checks": list(self.policy_checks), "artifacts": list(self.artifacts)}

    def _before(self, name: str) -> int:
        return bisect_right(self._moments._seqs[name], self._place)

    def _picked(self, lanes: _Lanes, names: tuple[str, ...]) -> dict[str, Any] | None:
        place = lanes.last(self.lane, self._place)
        if place is None:
            return None
        data = mapping(self._moments.event(place).data)
        return {"seq": self._moments.seq(place), **{name: data[name] for name in names if name in data}}

    def _variables(self) -> Iterator[tuple[str, Any]]:
        for name, (places, values) in self._moments._variables.items():
            known = bisect_right(places, self._place)
            if not known:
                return
            yield name, values[known - 1]

    def _last_reads(self) -> Iterator[LaneRead]:
        found: list[LaneRead] = []
        place = self._moments._reads.last(self.lane, self._place)
        for _ in range(_LAST_READS):  # events; each of ours has one or more
            if place is None or len(found) >= _LAST_READS:
                break
            found = [*_reads(self._moments.event(place)), *found]
            place = self._moments._reads.last(self.lane, place - 1)
        yield from found[-_LAST_READS:]


def _reads(event: Event) -> list[LaneRead]:
    try:
        return list(reads_of([event]))
    except BrokenLine:  # which nobody of ours wrote
        return []


def _last(seqs: Sequence[int], until: int) -> int | None:
    place = bisect_right(seqs, until)
    return seqs[place - 1] if place else None


def _known(found: _Known | None, until: int) -> int | None:
    at = 0 if found is None else bisect_right(found[0], until)
    return found[1][at - 1] if found is not None and at else None


def _append(lists: tuple[list[int], list[Any]], seq: int, value: Any) -> None:
    lists[0].append(seq)
    lists[1].append(value)
