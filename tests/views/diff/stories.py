"""Write runs by hand: a body of calls, steps and notes, as nested as it is meant."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from playhead.errors import EventNotFound
from playhead.event.envelope import Event
from playhead.event.keys import ASKED, call_key
from playhead.event.kinds import OPENING_TO_CLOSING
from playhead.views.diff.comparison import Comparison, compare
from playhead.views.diff.source import Options, Recorded


@dataclass(frozen=True)
class Part:
    """One span or one point, with what is inside of it."""

    kind: str
    data: dict[str, Any]
    closing: dict[str, Any] | None = None
    inside: tuple[Any, ...] = ()
    lane: str | None = None
    span: str | None = None
    parent: str | None = None

    def on(self, lane: str) -> Part:
        return replace(self, lane=lane)


@dataclass(frozen=True)
class Together:
    """Calls that all begin before one of them ends."""

    parts: tuple[Part, ...]
    ends: tuple[int, ...]


def tool(name: str, input: Any = None, output: Any = "ok", *inside: Any, status: str = "ok") -> Part:
    closing = (
        {"status": status, "output": output}
        if status == "ok"
        else {"status": status, "error": {"type": "E", "message": str(output)}}
    )
    return Part("tool.called", {"name": name, "input": input}, closing, inside)


def unfinished(part: Part) -> Part:
    return replace(part, closing=None)


def model(request: Any, response: Any, name: str = "gpt-5") -> Part:
    return Part("model.invoked", {"model": name, "request": request}, {"status": "ok", "response": response})


def step(name: str, *inside: Any, output: Any = None, **attributes: Any) -> Part:
    closing = {"status": "ok"} if output is None else {"status": "ok", "output": output}
    data = {"name": name, "attributes": attributes} if attributes else {"name": name}
    return Part("step.started", data, closing, inside)


def note(text: str) -> Part:
    return Part("note.added", {"text": text})


def policy(resource: str, decision: str = "allow") -> Part:
    return Part("policy.checked", {"capability": "fs.write", "resource": resource, "decision": decision})


def effect(target: str) -> Part:
    return Part("effect.observed", {"what": "file.written", "target": target})


def together(*parts: Part, ends: Sequence[int] | None = None) -> Together:
    return Together(parts, tuple(ends if ends is not None else range(len(parts))))


@dataclass
class Writer:
    run: str = "run_a"
    imported: bool = False
    events: list[Event] = field(default_factory=list)
    spans: int = 0

    def emit(self, kind: str, data: dict[str, Any], span: str | None, parent: str | None, lane: str) -> None:
        seq = len(self.events)
        key = None
        if kind in ASKED:
            name, value = ASKED[kind](data)
            key = call_key(kind, name, value)
        digest = hashlib.sha256(f"{self.run} {seq}".encode()).hexdigest()
        self.events.append(
            Event(
                v=1, run=self.run, seq=seq, time="2026-01-01T00:00:00.000000Z", elapsed_us=seq * 1000, kind=kind,
                span=span, parent=parent, lane=lane, key=key, data=data, prev="", hash=digest,
            )
        )  # fmt: skip

    def write(self, part: Any, parent: str, lane: str) -> None:
        if isinstance(part, Together):
            spans = [self.open(one, parent, one.lane or lane) for one in part.parts]
            for at in part.ends:
                self.close(part.parts[at], spans[at], parent, part.parts[at].lane or lane)
        else:
            lane = part.lane or lane
            span = self.open(part, parent, lane)
            self.close(part, span, parent, lane)

    def open(self, part: Part, parent: str, lane: str) -> str | None:
        span = None
        if part.kind in OPENING_TO_CLOSING:
            self.spans += 1
            span = part.span or str(self.spans)
        self.emit(part.kind, part.data, span, part.parent or parent, lane)
        for inner in part.inside:
            self.write(inner, span or parent, lane)
        return span

    def close(self, part: Part, span: str | None, parent: str, lane: str) -> None:
        if part.closing is not None:
            self.emit(OPENING_TO_CLOSING[part.kind], part.closing, span, part.parent or parent, lane)


def run(*body: Any, run: str = "run_a", output: Any = "done", finished: bool = True, **started: Any) -> list[Event]:
    writer = Writer(run)
    data = {"name": "agent", "agent": {"name": "agent"}, "input": {"intent": "agent", "payload": {}}, **started}
    writer.emit("run.started", data, "0", None, "0")
    for part in body:
        writer.write(part, "0", "0")
    if finished:
        writer.emit("run.finished", {"status": "ok", "output": output}, "0", None, "0")
    return writer.events


def recorded(events: list[Event]) -> Recorded:
    def event(seq: int) -> Event:
        for one in events:
            if one.seq == seq:
                return one
        raise EventNotFound(f"no event {seq}")

    return Recorded(lambda: events, event, lambda value: value)


def diffed(left: list[Event], right: list[Event], **options: Any) -> Comparison:
    return compare(recorded(left), recorded(right), Options(**options))


def told(found: Comparison) -> list[tuple[str, str | None, str]]:
    """Return type, cause and name of each deviation."""
    return [(one.type, one.cause, one.name) for one in found.deviations]


def both_ways(left: list[Event], right: list[Event], **options: Any) -> list[tuple[str, str | None, str]]:
    """Compare, check that the other way round mirrors it, and return what differs."""
    options = {"durations": True, **options}
    found, mirror = diffed(left, right, **options), diffed(right, left, **options)
    turned = {"added": "removed", "removed": "added"}
    assert [
        (turned.get(one.type, one.type), one.cause, one.right_seq, one.left_seq, one.deviation_point)
        for one in mirror.deviations
    ] == [(one.type, one.cause, one.left_seq, one.right_seq, one.deviation_point) for one in found.deviations]
    for one, other in zip(found.deviations, mirror.deviations, strict=True):
        assert [change.mirrored() for change in other.changes] == one.changes
    assert [change.mirrored() for change in mirror.config] == found.config
    times = ("left_us", "right_us", "left_seq", "right_seq", "unknown")  # path and name are those of the left one
    assert [turned_round(one, times) for one in mirror.durations or ()] == [
        {name: one[name] for name in times} for one in found.durations or ()
    ]
    assert turned_round(mirror.failures) == found.failures
    for name, one in found.metrics.items():
        assert {side: mirror.metrics[name][side] for side in ("left", "right")} == turned_round(one, ("left", "right"))
    assert (mirror.output_differs, mirror.identical) == (found.output_differs, found.identical)
    return told(found)


def turned_round(one: dict[str, Any], names: Any = None) -> dict[str, Any]:
    """Return something that has fields of both sides with the sides exchanged."""
    sides = {"left": "right", "right": "left", "left_us": "right_us", "right_us": "left_us",
             "left_seq": "right_seq", "right_seq": "left_seq"}  # fmt: skip
    return {name: one[sides.get(name, name)] for name in names or one}


A_FEW = [tool(f"tool {at}", at, at) for at in range(6)]
