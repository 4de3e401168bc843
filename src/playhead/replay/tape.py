"""Hold what a run recorded so that it can be asked again: each call by lane, key and occurrence, each read in order.

One pass over the lines builds it, up to the head that it is pinned to. Values are read when they are asked for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from playhead._clock import parse_utc
from playhead.capture.writing import WROTE
from playhead.errors import BrokenLine
from playhead.event import wire
from playhead.event.envelope import HASH_AT, Event, parse, seq_of
from playhead.event.kinds import CALLS, OPENING_TO_CLOSING
from playhead.event.reads import Read
from playhead.event.reads import read as reads_in
from playhead.replay.outputs import Outputs
from playhead.store.reader import RunReader

_OF_MCP = frozenset({"mcp.notified", "mcp.requested"})
# The fields before the data, in the form in which this release writes them.
_HEAD = re.compile(
    rb'\{"v":1,"run":"[^"\\]*","seq":(\d+),"time":"[^"\\]*","elapsed_us":(\d+),"kind":"([^"\\]*)",'
    rb'"span":(?:null|"([^"\\]*)"),"parent":(?:null|"([^"\\]*)"),"lane":"([^"\\]*)","key":(?:null|"([^"\\]*)"),"data":'
)
# Kinds of which the tape has to know more than that.
_WHOLE = frozenset(
    {b"run.started", b"run.finished", b"tool.called", b"mcp.requested", b"mcp.notified", b"process.started"}
    | {b"effect.observed"}
)
# Kinds that only matter inside of a tool; as they stand in a line.
_PASSED_OVER = tuple(
    b'"kind":"%b"' % kind
    for kind in (b"step.started", b"step.finished", b"output.written", b"note.added", b"gap.noted", b"artifact.created")
)
_KIND_WITHIN = 300  # bytes from the beginning of a line
_TOLD_OF_TOOLS = re.compile(rb'"(?:inferred|from_server|server)":')
_CLOSING = {opening: closing.encode() for opening, closing in OPENING_TO_CLOSING.items()}
_NOTHING: dict[str, Any] = {}
LANE_ENDED, TIMER = "lane.ended", "asyncio.timer"


class Call:
    """One call that was recorded: who asked what, and where its answer is."""

    __slots__ = (
        "_reader", "began_us", "closing", "ended_us", "key", "kind", "lane", "occurrence", "seq", "span", "spawned",
        "taken",
    )  # fmt: skip

    def __init__(self, reader: RunReader, event: Event | _Looked) -> None:
        self._reader = reader
        self.seq, self.kind, self.lane, self.key = event.seq, event.kind, event.lane, str(event.key)
        self.span = event.span
        self.began_us = self.ended_us = event.elapsed_us
        self.closing: int | None = None  # the seq of its answer; None where it never came
        self.occurrence = 0  # among those of its lane and key
        self.spawned = 0  # of a tool: the last child that its lane had when it returned, where it had one inside of it
        self.taken = False

    @property
    def data(self) -> dict[str, Any]:
        """Return what the answer says, every value as it was recorded."""
        assert self.closing is not None, "only what was answered is handed out"
        return self._reader.data(self.closing)

    def whole(self) -> tuple[dict[str, Any], bytes] | None:
        """Return head and body of an answer over HTTP that came whole, where its line has them as they are."""
        found = None if self.closing is None else wire.whole_answer(self._reader.line(self.closing))
        if found is None or type(found[0].get("headers")) is list:
            return found
        return self._reader.value(found[0]), found[1]  # they are a reference to those of another answer

    @property
    def line(self) -> bytes:
        """Return the line in which it was asked."""
        return self._reader.line(self.seq)

    @property
    def question(self) -> Event:
        """Return the event in which it was asked."""
        return self._reader.event(self.seq)


class Said:
    """What an MCP server said by itself."""

    __slots__ = ("_reader", "at_us", "kind", "seq", "server")

    def __init__(self, reader: RunReader, event: Event | _Looked) -> None:
        self._reader = reader
        self.seq, self.kind, self.at_us = event.seq, event.kind, event.elapsed_us
        self.server = event.data.get("server")

    @property
    def data(self) -> dict[str, Any]:
        """Return what it said, every value as it was recorded."""
        return self._reader.event(self.seq).data


def hides(event: Event | _Looked) -> bool:
    """Say whether what is inside of a span is not done again in a replay: a tool in this process, that has a body."""
    if event.data.get("inferred") or event.data.get("from_server"):
        return False
    server = event.data.get("server")
    return server == "in-process" or (event.kind == "tool.called" and server is None)


class Tape:
    """The recorded outcomes of one run."""

    def __init__(
        self, reader: RunReader, head: int | None = None, *, first: int | None = None, lane: str | None = None
    ) -> None:
        """Build it from the events of a run, up to and including `head`; all of them where that is None.

        With `first` and `lane`, of those of this lane and what it began, from this event on.
        """
        self.reader = reader
        self._first, self._lane = first, lane
        self.run = reader.id
        self.head: tuple[int, str] = (-1, "")
        self._last = head
        self.outputs = Outputs(reader, head)
        self.started: Event | None = None
        self.finished: Event | None = None
        self.calls: list[Call] = []  # in the order in which they were asked; not those inside of tools
        self.changed: dict[str, int] = {}  # by variable: the event in which the program first changed it itself
        self._effects: list[int] = []
        self.start_us = 0  # of the run, since the epoch
        self._said: dict[str | None, list[Said]] = defaultdict(list)  # by the span in which a server said it
        self._by_place: dict[tuple[str, str], list[Call]] = defaultdict(list)
        self._by_key: dict[str, list[Call]] = defaultdict(list)
        self._by_lane: dict[str, list[Call]] = {}  # made when it is asked for
        self._passed: dict[int, int] = {}  # by the id of such a list: how many at its beginning are taken
        self._packs: dict[str, list[int]] = defaultdict(list)  # by lane: the events that hold its reads
        self._hidden: set[int] = set()  # those of them that lie inside of tools
        self.before: dict[str, list[int]] = defaultdict(list)  # by lane: those that come before the part that is meant
        self._build()

    def _build(self) -> None:
        open_calls: dict[bytes, Call] = {}  # by span
        inside: dict[str, Call] = {}  # by span: the tool that it is in, whose body does not run again
        of_server: dict[str | None, str] = {}  # by span: the keys of calls that an MCP server answers
        last = b""
        for line in self.reader.lines():
            if self._last is not None and (seq_of(line) or 0) > self._last:
                break
            last = line
            if self._first is not None and not self._is_of_part(line):
                if b'"kind":"ambient.read"' in line and (earlier := parse(line)).seq < self._first:
                    self.before[earlier.lane].append(earlier.seq)
                continue
            if not inside and line.startswith(_PASSED_OVER, line.find(b'"kind":"', 0, _KIND_WITHIN)):
                continue
            head = _HEAD.match(line)
            answered = None if head is None else open_calls.get(head[4])
            if head is not None and answered is not None and head[3] == _CLOSING[answered.kind]:
                del open_calls[head[4]]
                answered.closing, answered.ended_us = int(head[1]), int(head[2])
                continue
            event = _looked_at(line, head)
            kind, span, parent = event.kind, event.span, event.parent
            tool = None if parent is None else inside.get(parent)
            if kind in _OF_MCP and event.data.get("from_server") is True:
                if tool is not None and tool.span == parent and tool.key == of_server.get(parent):
                    tool = None  # a server in this process does not run again, and what it asked is asked again
                if tool is None:
                    self._said[parent if parent in of_server else None].append(Said(self.reader, event))
            if tool is not None:
                _count_spawned(tool, event)
            if kind in OPENING_TO_CLOSING and span is not None:
                if tool is not None:
                    inside[span] = tool
                elif kind in CALLS and event.key is not None and not (event.data and self._is_told_only(event)):
                    call = open_calls[span.encode()] = self._opened(event)
                    if (event.data or kind == "tool.called") and hides(event):
                        inside[span] = call
                    if event.data and event.data.get("server") is not None:
                        of_server[span] = event.key
            elif (found := open_calls.get((span or "").encode())) and _CLOSING[found.kind] == kind.encode():
                del open_calls[(span or "").encode()]
                found.closing, found.ended_us = event.seq, event.elapsed_us
            elif kind == "ambient.read":
                self._packs[event.lane].append(event.seq)
                if tool is not None:
                    self._hidden.add(event.seq)
            elif kind == "effect.observed":
                self._effects.append(event.seq)
                if event.data.get("what") == "environment.changed":
                    self.changed.setdefault(str(event.data.get("target")), event.seq)
            elif isinstance(event, Event) and kind == "run.finished":
                self.finished = event
            if kind == "run.started" and self.started is None and isinstance(event, Event):
                self.started = event
                self.start_us = parse_utc(event.time) - event.elapsed_us
        if last:
            self.head = seq_of(last) or 0, last[HASH_AT].decode()
        if self.started is None:
            raise BrokenLine(f"{self.run} has no run.started", hint="`playhead verify` says what is wrong with it.")

    def _is_of_part(self, line: bytes) -> bool:
        """Say whether an event belongs to the part of the run that is meant; its beginning always does."""
        head = _HEAD.match(line)
        event = parse(line) if head is None else None
        seq, lane = (int(head[1]), head[6].decode()) if head is not None else (event.seq, event.lane)  # type: ignore[union-attr]
        if seq == 0:
            return True
        return seq > (self._first or 0) and (lane == self._lane or lane.startswith(f"{self._lane}."))

    def _opened(self, event: Event | _Looked) -> Call:
        call = Call(self.reader, event)
        self._put(call)
        self.calls.append(call)
        return call

    def _put(self, call: Call) -> None:
        place = self._by_place[call.lane, call.key]
        call.occurrence = len(place)
        place.append(call)
        self._by_key[call.key].append(call)

    def sort_again(self) -> None:
        """Look calls up by the keys that they have now."""
        for held in (self._by_place, self._by_key, self._passed):
            held.clear()
        for call in self.calls:
            self._put(call)

    def _is_told_only(self, event: Event | _Looked) -> bool:
        """Say whether the agent's code does not ask this: it was seen in other traffic, or it is the program itself."""
        if event.kind == "process.started" and self.started is not None and event.parent == self.started.span:
            entry = self.started.data.get("entrypoint") or {}
            first = not any(call.kind == event.kind for call in self.calls)
            # A long command is written as a reference to that of the beginning.
            own = (entry.get("argv"), {"$same": f"{self.started.seq}#/entrypoint/argv"})
            return first and not event.data.get("streams") and event.data.get("argv") in own
        return event.data.get("inferred") is True or event.data.get("from_server") is True

    # Calls.

    def take(self, lane: str, key: str) -> Call | None:
        """Hand out the next recorded call of this question in this lane, else the first anywhere; None for none left.

        One from another lane says so by its own lane.
        """
        call = self._first_left(self._by_place.get((lane, key))) or self._first_left(self._by_key.get(key))
        if call is not None:
            call.taken = True
        return call

    def _first_left(self, calls: list[Call] | None) -> Call | None:
        """Return the first of these that nobody has taken; those before it are looked at once."""
        if not calls:
            return None
        at = self._passed.get(id(calls), 0)
        while at < len(calls) and calls[at].taken:
            at += 1
        if at:
            self._passed[id(calls)] = at
        return calls[at] if at < len(calls) else None

    def next_in(self, lane: str) -> Call | None:
        """Return the first question of a lane that nobody has asked yet, without handing it out."""
        if not self._by_lane:
            for call in self.calls:
                self._by_lane.setdefault(call.lane, []).append(call)
        return self._first_left(self._by_lane.get(lane))

    def asked(self, key: str) -> int:
        """Say how often a question was recorded, in all lanes."""
        return len(self._by_key.get(key, ()))

    def unasked(self) -> list[Call]:
        """Return the calls that nobody has asked for."""
        return [call for call in self.calls if not call.taken]

    def said(self, span: str | None, server: str | None) -> list[Said]:
        """Hand out, once, what an MCP server said by itself in a span; beside all calls, where that is None."""
        found = self._said.pop(span, [])
        if span is None and server is not None:
            self._said[None] = [one for one in found if one.server not in (None, server)]
            found = [one for one in found if one.server in (None, server)]
        return found

    def effects(self) -> list[dict[str, Any]]:
        """Return what the run did to the world, in order."""
        found = [self.reader.event(seq).data for seq in self._effects]
        return [data for data in found if isinstance(data.get("what"), str) and isinstance(data.get("target"), str)]

    def size_before(self, path: str) -> int | None:
        """Return how long a file was when the program first added to it; None where that is not known."""
        for effect in self.effects():
            if effect["what"] == "file.written" and effect["target"] == path:
                size = (effect.get("detail") or {}).get("size")
                return size if isinstance(size, int) else None
        return None

    # Reads.

    def packs(self, lane: str) -> int:
        """Say how many events hold reads of a lane."""
        return len(self._packs.get(lane, ()))

    def pack_seq(self, lane: str, number: int) -> int:
        """Return which event one of these is."""
        return self._packs[lane][number]

    def lanes(self) -> list[str]:
        """Return the lanes that read something."""
        return list(dict.fromkeys([*self._packs, *self.before]))

    def reads(self, lane: str, number: int, *, hidden: bool = False) -> Iterator[Read]:
        """Yield what one of these events holds, as it was kept.

        Of those inside of tools only what is asked for by number, since a timer around a tool may fire while it runs;
        unless those that are `hidden` are wanted too.
        """
        seq = self._packs[lane][number]
        for one in reads_in(self.reader.event(seq).data, raw=True):
            if hidden or seq not in self._hidden or one.of in (LANE_ENDED, TIMER, WROTE):
                yield one

    def reads_before(self, lane: str) -> Iterator[Read]:
        """Yield what a lane had read before the part that is meant."""
        for seq in self.before.get(lane, ()):
            yield from reads_in(self.reader.event(seq).data, raw=True)

    def elapsed(self, wall_us: int) -> int:
        """Turn a time since the epoch into one since the run began."""
        return wall_us - self.start_us


class _Looked(NamedTuple):
    """As much of an event as the tape needs of most: what they are about is looked at when it is asked for."""

    seq: int
    elapsed_us: int
    kind: str
    span: str | None
    parent: str | None
    lane: str
    key: str | None
    data: dict[str, Any]
    time: str = ""


def _looked_at(line: bytes, head: re.Match[bytes] | None) -> Event | _Looked:
    if head is None or (head[3] in _WHOLE and (head[3] != b"tool.called" or _TOLD_OF_TOOLS.search(line))):
        return parse(line)
    seq, elapsed, kind, span, parent, lane, key = head.groups()
    return _Looked(
        int(seq),
        int(elapsed),
        kind.decode(),
        None if span is None else span.decode(),
        None if parent is None else parent.decode(),
        lane.decode(),
        None if key is None else key.decode(),
        _NOTHING,
    )


def _count_spawned(tool: Call, event: Event | _Looked) -> None:
    """Note which children the lane of a tool had by the time that it returned: the next one has the next number."""
    lane, _, number = event.lane.rpartition(".")
    if lane == tool.lane and number.isdecimal():
        tool.spawned = max(tool.spawned, int(number))
