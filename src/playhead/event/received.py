"""Type the payloads of what came from outside and has no other kind: who spoke, what was logged, what was corrected."""

from __future__ import annotations

from typing import Any

from playhead.event.payload import Payload


class EmitterDescribed(Payload):
    """Say once who the spans and logs come from that name this event: a process, and a library in it."""

    KIND = "emitter.described"
    resource: dict[str, Any] = {}
    scope: dict[str, Any] = {}
    digest: str | None = None  # by which it is known again


class LogEmitted(Payload):
    """Keep a log record that came from outside; the span that it belongs to is its parent."""

    KIND = "log.emitted"
    name: str | None = None  # of the event, where the record is one
    severity: str | None = None
    body: Any = None
    otlp: dict[str, Any] | None = None  # everything else that was said of it


class SpanRevised(Payload):
    """Say anew what a span was: it came a second time, or more became known of it. The first line stays as it is."""

    KIND = "span.revised"
    why: str  # sent_again, joined: with its logs, or with what another library saw of the same call
    opened: dict[str, Any] = {}  # what its opening event says now
    closed: dict[str, Any] = {}  # what its closing event says now
    opens: str | None = None  # the kind of its opening event, where that is another one now
    parent: str | None = None  # where it is another one now
    elapsed_us: list[int] = []  # when it began and ended, by the clock of the run
