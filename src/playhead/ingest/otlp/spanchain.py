"""Read what Span Chain's own endpoint takes: `{run_id, spans}`, with times as texts and the status in the span."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from playhead import _limits
from playhead.errors import BadBody
from playhead.ingest.otlp.received import Received, Rejected, check, check_count
from playhead.ingest.otlp.spans import Emitter, Span

_OWN = frozenset(
    {"span_id", "trace_id", "parent_span_id", "name", "started_at", "ended_at", "attributes", "status", "error"}
)
_HEX = frozenset("0123456789abcdef")


def read_spans(body: Any) -> Received:
    """Return the spans of a body; BadBody where it is not one. One that cannot be kept is counted, with why."""
    run, spans = (body.get("run_id"), body.get("spans")) if isinstance(body, dict) else (None, None)
    if not isinstance(run, str) or not run or len(run) > _limits.REFERENCE_CHARACTERS_MAX:
        raise BadBody("run_id is missing, or no text", hint='The body is {"run_id": "…", "spans": [{…}]}.')
    if not isinstance(spans, list) or not spans:
        raise BadBody("spans are missing", hint='The body is {"run_id": "…", "spans": [{…}]}.')
    received = Received()
    attributes = {"service.instance.id": run}
    if isinstance(agent := body.get("agent_id"), str):
        attributes["gf.agent_id"] = agent
    emitter = Emitter({"attributes": attributes}, {})
    for span in spans:
        try:
            if received.full():
                raise Rejected(f"more than {_limits.OTLP_SPANS_MAX:,} spans in one request")
            received.spans.append(_span(span, run, emitter))
        except Rejected as problem:
            received.reject(str(problem))
    return received


def _span(said: Any, run: str, emitter: Emitter) -> Span:
    if not isinstance(said, dict):
        raise Rejected("a span is no object")
    id = said.get("span_id")
    if not isinstance(id, str) or not id:
        raise Rejected("a span has no span_id")
    attributes = said.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise Rejected(f"the attributes of span {id[:40]!r} are no object")
    check_count(len(attributes), _limits.OTLP_ATTRIBUTES_MAX, "attributes")
    check(attributes)
    told = {**{name: value for name, value in said.items() if name not in _OWN}, **attributes}
    told |= {name: said[name] for name in ("status", "error") if said.get(name) is not None}
    trace, parent, name = said.get("trace_id"), said.get("parent_span_id"), said.get("name")
    return Span(
        trace=_hex(trace, 32) if isinstance(trace, str) and trace else _hex(run, 32, always=True),
        span=_hex(id, 16),
        parent=_hex(parent, 16) if isinstance(parent, str) and parent and parent != id else None,
        name=name if isinstance(name, str) else "",
        start_ns=_ns(said.get("started_at")),
        end_ns=_ns(said.get("ended_at")) or _ns(said.get("started_at")),
        attributes=told | ({} if _is_hex(id, 16) else {"gf.span_id": id}),
        emitter=emitter,
    )


def _is_hex(id: str, letters: int) -> bool:
    return len(id) == letters and _HEX.issuperset(id.lower()) and bool(id.strip("0"))


def _hex(id: str, letters: int, *, always: bool = False) -> str:
    """Return an id as it is, where it is one of OpenTelemetry; else a digest of it, which is the same each time."""
    if _is_hex(id, letters) and not always:
        return id.lower()
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:letters]


def _ns(told: Any) -> int:
    if told is None:
        return 0
    try:
        moment = datetime.fromisoformat(told)
    except (TypeError, ValueError):
        raise Rejected(f"not a time: {str(told)[:60]!r}") from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return max(0, (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
