"""Make requests of OTLP, and read those that real instrumentations sent."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.shared_data import shared

from playhead.ingest.otlp.decoding import read_logs, read_traces
from playhead.ingest.otlp.facts import Facts, facts
from playhead.ingest.otlp.spans import Emitter, LogRecord, Span

TRACE, SPAN, OTHER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def span(name: str = "a span", **fields: Any) -> Span:
    attributes = fields.pop("attributes", {})
    scope = fields.pop("scope", None)
    emitter = Emitter(fields.pop("resource", {}), {"name": scope} if scope else {})
    given = {"trace": TRACE, "span": SPAN, "start_ns": 1_000, "end_ns": 2_000, "emitter": emitter, **fields}
    return Span(name=name, attributes=attributes, **given)


def value(one: Any) -> dict[str, Any]:
    """Write a value as OTLP's JSON has it."""
    match one:
        case None:
            return {}
        case bool():
            return {"boolValue": one}
        case str():
            return {"stringValue": one}
        case int():
            return {"intValue": str(one)}
        case float():
            return {
                "doubleValue": one
                if one - one == 0
                else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(one)]
            }
        case bytes():
            return {"bytesValue": base64.b64encode(one).decode()}
        case list():
            return {"arrayValue": {"values": [value(item) for item in one]}}
        case dict():
            return {"kvlistValue": {"values": attributes(one)}}
    raise AssertionError(one)


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value(one)} for name, one in given.items()]


def message(**fields: Any) -> dict[str, Any]:
    """Return a span in OTLP's JSON."""
    return {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "a span",
        "startTimeUnixNano": "1000",
        "endTimeUnixNano": "2000",
        **fields,
    }


def request(*spans: Any, **resource: Any) -> bytes:
    of = {"attributes": attributes(resource)}
    return json.dumps(
        {"resourceSpans": [{"resource": of, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}
    ).encode()


def sample(name: str) -> list[tuple[Span, Facts]]:
    """Return the spans of a sample and what they are, with the log records beside them."""
    folder = shared("otlp")
    received = read_traces((folder / f"{name}_traces.pb").read_bytes(), "protobuf")
    beside = folder / f"{name}_logs.pb"
    logs = read_logs(beside.read_bytes(), "protobuf").logs if beside.exists() else []
    assert received.rejected == 0
    return [(one, facts(one, [log for log in logs if belongs(log, one)])) for one in received.spans]


def belongs(log: LogRecord, to: Span) -> bool:
    return (log.trace, log.span) == (to.trace, to.span)
