"""Say where a replay leaves the tape, and what the world answers from there on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

NOWHERE = -1  # the tape ends before its first event
EVERYWHERE = 2**53  # it never ends

# What is live after the cut, by the word that the user gives.
LIVE = {"": (), "model": ("model",), "tool": ("tool",), "all": ("model", "tool")}
UNKNOWN = ("refuse", "nearest", "live")
IN_FLIGHT = ("retry", "skip", "fail")


class Alone(msgspec.Struct, frozen=True, kw_only=True):
    """One function of a program that is run without the rest."""

    module: str
    qualname: str
    file: str
    spec: str  # the name that imports it, where the program was started by that
    argv: list[str]  # as the program has them
    given: dict[str, Any]  # its arguments by name, as they were recorded
    lane: str
    spawned: int  # children of the lane before it, and timers
    timers: int
    first: int  # the event with which it began


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program is stopped for somebody to look around."""

    at: int | None  # an event; None for the first difference
    reads: int  # what is open at these numbers, to speak with whoever looks around
    writes: int
    last: int = 0  # the last event of the tape
    header: str = ""  # what is said when it stops
    state: str = ""

    @property
    def at_deviation(self) -> bool:
        """Say whether it is stopped at the first difference."""
        return self.at is None


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay is to do with the questions of the program; as it is made, everything is answered from the tape."""

    mode: str = "exact"
    live: str = ""  # one of LIVE: what is asked of the world after the cut
    cut: int = EVERYWHERE  # the last event that counts: what was asked or answered later is live, as far as it may be
    unknown: str = "refuse"  # one of UNKNOWN: a tool, a process, a request that is not on the tape, where tools are not
    in_flight: dict[str, str] = {}  # by the seq of a call that was not answered before the cut: one of IN_FLIGHT
    never: dict[str, list[str]] = {}  # by the same: what of it cannot be undone, as `known_by` names it
    never_again: list[str] = []  # what was so in the run that this one goes on from
    unanswered: int | None = None  # the seq of a call whose answer does not count: it failed, and the run with it
    edits: dict[str, Any] = {}  # by the seq of an answer: what it says instead
    swaps: dict[str, int] = {}  # by the seq of an answer: that of the other run which is given in its place
    other: tuple[str, str] | None = None  # the other run: the root of its store, and its id
    restored: list[tuple[str, int | None]] = []  # files that are to be as they were, with their size, when it goes on
    until_us: int | None = None  # when the program ended that goes on: what it wrote is not touched since
    may_undo: bool = False  # tools that cannot be undone may run: it is the run itself that goes on, and no trial
    stop: tuple[str, int] | None = None  # the step at whose end the program is stopped: its name, and which of those
    alone: Alone | None = None
    debug: Stop | None = None
    models: str = ""  # the socket at which questions to models are asked for the program
    told: dict[str, Any] = {}  # what the origin of the run says besides

    @property
    def is_exact(self) -> bool:
        """Say whether nothing but the tape answers, as it was recorded."""
        return not (self.live or self.edits or self.swaps or self.in_flight or self.stop or self.debug)

    @property
    def in_world(self) -> bool:
        """Say whether the program itself is let into the world after the cut, and does not only have models asked."""
        return "tool" in LIVE[self.live]

    @property
    def needs_network(self) -> bool:
        """Say whether the program may have to use the network by itself."""
        return self.in_world or self.unknown == "live"

    def origin_at(self, head: int) -> int:
        """Return the event that the origin of the run names."""
        return head if self.cut == EVERYWHERE else max(self.cut, 0)


def known_by(kind: str, key: str | None, data: Mapping[str, Any]) -> str:
    """Return by what a call is known that is not to be made again: a tool by its name, whatever it is given."""
    return f"tool {data.get('name')}" if kind == "tool.called" else str(key)


def named(kind: str, data: Mapping[str, Any]) -> str:
    """Return what people call a call."""
    if kind == "tool.called":
        return f"the tool {data.get('name')}"
    if kind == "process.started":
        return f"the process {' '.join(map(str, data.get('argv') or ()))}"
    if kind == "http.sent":
        return f"{data.get('method')} {data.get('url')}"
    if kind == "mcp.requested":
        return f"the MCP request {data.get('method')}"
    return "the question to a model"
