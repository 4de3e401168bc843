"""Make what an exporter of OpenTelemetry sends, as JSON and as protobuf."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any

PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}
START_NS = 1_790_000_000_000_000_000


def trace_id(name: object) -> str:
    """Return an id of a trace that is the same for the same name."""
    return hashlib.sha256(f"trace {name}".encode()).hexdigest()[:32]


def span_id(name: object) -> str:
    """Return an id of a span that is the same for the same name."""
    return hashlib.sha256(f"span {name}".encode()).hexdigest()[:16]


def span(
    trace: str, id: str, parent: str | None = None, name: str = "work", at: int = 0, **attributes: Any
) -> dict[str, Any]:
    """Return a span in the JSON of OTLP; `at` is its place among the others, in milliseconds."""
    found: dict[str, Any] = {
        "traceId": trace, "spanId": id, "name": name, "kind": 1,
        "startTimeUnixNano": str(START_NS + at * 1_000_000), "endTimeUnixNano": str(START_NS + at * 1_000_000 + 500_000),
    }  # fmt: skip
    if parent is not None:
        found["parentSpanId"] = parent
    if attributes:
        found["attributes"] = pairs(attributes)
    return found


def model_span(trace: str, id: str, parent: str, at: int = 0, **attributes: Any) -> dict[str, Any]:
    """Return a span of a model being asked, as the conventions of OpenTelemetry have it."""
    said = [{"role": "user", "parts": [{"type": "text", "content": f"question {id}"}]}]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": f"answer {id}"}], "finish_reason": "stop"}]
    told = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
        "gen_ai.response.model": "gpt-5", "gen_ai.response.id": f"resp_{id}", "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7, "gen_ai.input.messages": json.dumps(said),
        "gen_ai.output.messages": json.dumps(answered),
    }  # fmt: skip
    found = span(trace, id, parent, "chat gpt-5", at)
    found["kind"] = 3
    found["attributes"] = pairs({**told, **attributes})
    return found


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them."""
    return [{"key": name, "value": value(one)} for name, one in attributes.items()]


def value(one: Any) -> dict[str, Any]:
    """Return one value as OTLP's JSON has it."""
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
            odd = "NaN" if math.isnan(one) else ("Infinity" if one > 0 else "-Infinity") if math.isinf(one) else None
            return {"doubleValue": one if odd is None else odd}
        case bytes():
            return {"bytesValue": base64.b64encode(one).decode()}
        case list():
            return {"arrayValue": {"values": [value(item) for item in one]}}
        case dict():
            return {"kvlistValue": {"values": pairs(one)}}
    raise AssertionError(type(one))


def export(spans: Iterable[dict[str, Any]], **resource: Any) -> dict[str, Any]:
    """Return a request with these spans of one process."""
    told = {"service.name": "agent", "telemetry.sdk.name": "opentelemetry", **resource}
    about = pairs({name: one for name, one in told.items() if one is not None})
    scope = {"scope": {"name": "tests", "version": "1"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": about}, "scopeSpans": [scope]}]}


def exported(spans: Iterable[dict[str, Any]], **resource: Any) -> bytes:
    """Return the bytes of such a request as JSON."""
    return json.dumps(export(spans, **resource)).encode()


def logs(records: Iterable[dict[str, Any]], **resource: Any) -> bytes:
    """Return the bytes of a request with log records as JSON."""
    about = pairs({"service.name": "agent", **resource})
    scope = {"scope": {"name": "tests"}, "logRecords": list(records)}
    return json.dumps({"resourceLogs": [{"resource": {"attributes": about}, "scopeLogs": [scope]}]}).encode()


def as_protobuf(document: dict[str, Any]) -> bytes:
    """Return the same request as protobuf."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    for of_resource in document["resourceSpans"]:
        group = request.resource_spans.add()
        _fill(group.resource.attributes, of_resource["resource"]["attributes"])
        for of_scope in of_resource["scopeSpans"]:
            scope = group.scope_spans.add()
            scope.scope.name, scope.scope.version = of_scope["scope"]["name"], of_scope["scope"]["version"]
            for one in of_scope["spans"]:
                _fill_span(scope.spans.add(), one)
    return request.SerializeToString()


def _fill_span(message: Any, one: dict[str, Any]) -> None:
    message.trace_id, message.span_id = bytes.fromhex(one["traceId"]), bytes.fromhex(one["spanId"])
    message.parent_span_id = bytes.fromhex(one.get("parentSpanId", ""))
    message.name, message.kind = one["name"], one["kind"]
    message.start_time_unix_nano = int(one["startTimeUnixNano"])
    message.end_time_unix_nano = int(one["endTimeUnixNano"])
    message.trace_state, message.flags = one.get("traceState", ""), one.get("flags", 0)
    _fill(message.attributes, one.get("attributes", []))
    for told in one.get("events", []):
        event = message.events.add()
        event.name, event.time_unix_nano = told["name"], int(told["timeUnixNano"])
        _fill(event.attributes, told.get("attributes", []))
    for told in one.get("links", []):
        link = message.links.add()
        link.trace_id, link.span_id = bytes.fromhex(told["traceId"]), bytes.fromhex(told["spanId"])
        _fill(link.attributes, told.get("attributes", []))
    if "status" in one:
        message.status.code, message.status.message = one["status"]["code"], one["status"]["message"]


def _fill(to: Any, told: list[dict[str, Any]]) -> None:
    for pair in told:
        one = to.add()
        one.key = pair["key"]
        _set(one.value, pair["value"])


def _set(message: Any, said: dict[str, Any]) -> None:
    for kind, one in said.items():
        match kind:
            case "stringValue":
                message.string_value = one
            case "boolValue":
                message.bool_value = one
            case "intValue":
                message.int_value = int(one)
            case "doubleValue":
                message.double_value = float(one)
            case "bytesValue":
                message.bytes_value = base64.b64decode(one)
            case "arrayValue":
                message.array_value.SetInParent()
                for item in one["values"]:
                    _set(message.array_value.values.add(), item)
            case "kvlistValue":
                message.kvlist_value.SetInParent()
                _fill(message.kvlist_value.values, one["values"])
