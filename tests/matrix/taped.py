"""Read the exchanges of a recording back, in the form in which the provider logs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.matrix.answers import case_of

import playhead
from playhead.event import wire
from playhead.testing import ReceivedRequest

_OPENING = ("model.invoked", "http.sent")
_CLOSING = ("model.responded", "http.received")


@dataclass(frozen=True)
class Taped:
    """One exchange as a recording holds it."""

    kind: str
    request: ReceivedRequest  # its headers have the values that were let through
    answered: bool  # the closing event is there
    status: int | None
    headers: list[tuple[str, Any]]  # of the answer; a secret one is marked as redacted
    chunks: list[bytes]
    error: dict[str, Any] | None


@dataclass(frozen=True)
class RanTool:
    """One tool as a recording holds it."""

    scenario: str | None  # that of the model call that asked for it
    name: str
    input: Any
    output: Any
    error: Any
    inferred: bool


def events_of(store: Path) -> list[Any]:
    """Return all events of the runs of a store."""
    runs = [list(playhead.load(str(folder)).events()) for folder in sorted((store / "runs").iterdir())]
    # Replays of them are runs of their own, with tests of their own.
    return [event for run in runs if (run[0].data.get("origin") or {}).get("mode") != "exact" for event in run]


def taped(events: Iterable[Any]) -> list[Taped]:
    """Return the exchanges of a recording, in the order in which they were begun."""
    opened: dict[str, Any] = {}
    closed: dict[str, Any] = {}
    for event in events:
        if event.kind in _OPENING:
            assert event.span not in opened, f"span {event.span} was opened twice"
            opened[event.span] = event
        elif event.kind in _CLOSING:
            assert event.span not in closed, f"span {event.span} was closed twice"
            closed[event.span] = event
    assert closed.keys() <= opened.keys(), "a response without its request"
    return [_taped(event, closed.get(span)) for span, event in opened.items()]


def tools(events: Iterable[Any]) -> list[RanTool]:
    """Return the tools that were run, in the order in which they were begun."""
    events = list(events)
    asking = {event.span: _taped(event, None) for event in events if event.kind == "model.invoked"}
    returned = {event.span: event.data for event in events if event.kind == "tool.returned"}
    found = []
    for event in events:
        if event.kind == "tool.called":
            data, end = event.data, returned.pop(event.span)
            asked_by = asking.get(data.get("asked_by"))
            scenario = None if asked_by is None else case_of(asked_by.request)[0]
            inferred = bool(data.get("inferred"))
            found.append(
                RanTool(scenario, data["name"], data.get("input"), end.get("output"), end.get("error"), inferred)
            )
    assert returned == {}, "tools that returned twice, or were never called"
    return found


def of_scenario(exchanges: Iterable[Taped], scenario: str) -> list[Taped]:
    """Return those of one scenario."""
    return [exchange for exchange in exchanges if case_of(exchange.request)[0] == scenario]


def _taped(opening: Any, closing: Any) -> Taped:
    sent = opening.data.get("http") or opening.data
    came = closing.data if closing is not None else {}
    path = "/" + sent["url"].split("/", 3)[3]  # as it was sent: a parser would lose an empty query
    headers = [(name, value) for name, value in sent.get("headers", ())]
    return Taped(
        opening.kind,
        ReceivedRequest(sent["method"], path, headers, wire.request_bytes(opening.data)),
        closing is not None,
        (came.get("http") or came).get("status"),
        [(name, value) for name, value in (came.get("http") or came).get("headers", ())],
        _whole(wire.response_chunks(came), (came.get("chunks") or {}).get("unended") or ()),
        came.get("error"),
    )


def _whole(pieces: list[bytes], unended: Iterable[int]) -> list[bytes]:
    """Put those together that came apart: a busy machine may read a chunk in two."""
    out: list[bytes] = []
    parts = frozenset(unended)
    for number, piece in enumerate(pieces):
        if number - 1 in parts:
            out[-1] += piece
        else:
            out.append(piece)
    return out
