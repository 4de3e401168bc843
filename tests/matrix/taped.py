"""Read the exchanges of a recording back, in the form in which the provider logs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

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
    chunks: list[bytes]
    error: dict[str, Any] | None


def events_of(store: Path) -> list[Any]:
    """Return all events of the runs of a store."""
    return [event for folder in sorted((store / "runs").iterdir()) for event in playhead.load(str(folder)).events()]


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


def of_scenario(exchanges: Iterable[Taped], scenario: str) -> list[Taped]:
    """Return those of one scenario."""
    return [exchange for exchange in exchanges if case_of(exchange.request)[0] == scenario]


def _taped(opening: Any, closing: Any) -> Taped:
    sent = opening.data.get("http") or opening.data
    came = closing.data if closing is not None else {}
    address = urlsplit(sent["url"])
    path = address.path + (f"?{address.query}" if address.query else "")
    headers = [(name, value) for name, value in sent.get("headers", ())]
    return Taped(
        opening.kind,
        ReceivedRequest(sent["method"], path, headers, wire.request_bytes(opening.data)),
        closing is not None,
        (came.get("http") or came).get("status"),
        wire.response_chunks(came),
        came.get("error"),
    )
