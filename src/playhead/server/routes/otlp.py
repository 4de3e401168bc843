"""Take in what OpenTelemetry sends: spans and logs, answered when they are on the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import orjson

from playhead.errors import UnknownMedia
from playhead.ingest.otlp.decoding import Received, read_logs, read_traces
from playhead.server.answering import Answer
from playhead.server.asking import Ask
from playhead.server.routing import route

PROTOBUF = ("application/x-protobuf", "application/protobuf")
JSON = "application/json"
_TAKES = (PROTOBUF[0], JSON, PROTOBUF[1])
_METRICS = "metrics are not kept: Playhead keeps traces and logs (OTEL_METRICS_EXPORTER=none stops sending them)"


@route("POST", "/v1/traces", scope="ingest", group="OTLP", takes=_TAKES, media=_TAKES, runs="writing")
def take_traces(ask: Ask) -> Answer:
    """Take in spans: `ExportTraceServiceRequest`, as protobuf or JSON.

    Answered when all of it is on the disk. What cannot be kept is counted in `partialSuccess`, and does not keep the
    rest out. Sent again, nothing is written twice.
    """
    received = read_traces(ask.body, _form(ask))
    ask.project.intake.take(spans=received.spans)
    ask.server.counters.add("spans", len(received.spans))
    return _told(ask, received, "rejectedSpans", "trace")


@route("POST", "/v1/logs", scope="ingest", group="OTLP", takes=_TAKES, media=_TAKES, runs="writing")
def take_logs(ask: Ask) -> Answer:
    """Take in log records: `ExportLogsServiceRequest`; those of a span say more of it."""
    received = read_logs(ask.body, _form(ask))
    ask.project.intake.take(logs=received.logs)
    ask.server.counters.add("logs", len(received.logs))
    return _told(ask, received, "rejectedLogRecords", "logs")


@route("POST", "/v1/metrics", scope="ingest", group="OTLP", takes=_TAKES, media=_TAKES, runs="writing")
def take_metrics(ask: Ask) -> Answer:
    """Say that metrics are not kept: an exporter that sends all three signals goes on."""
    if _form(ask) == "json":
        return _json({"partialSuccess": {"rejectedDataPoints": "0", "errorMessage": _METRICS}})
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsPartialSuccess,
        ExportMetricsServiceResponse,
    )

    partial = ExportMetricsPartialSuccess(error_message=_METRICS)
    return _protobuf(ExportMetricsServiceResponse(partial_success=partial))


def _form(ask: Ask) -> Literal["protobuf", "json"]:
    if ask.media in PROTOBUF:
        return "protobuf"
    if ask.media == JSON:
        return "json"
    raise UnknownMedia(f"{ask.media!r} is not read here", hint=f"Content-Type is {PROTOBUF[0]} or {JSON}.")


def _told(ask: Ask, received: Received, counted: str, signal: str) -> Answer:
    """Say that it was taken in, and how much was not, with why."""
    why = "; ".join(received.problems)
    if _form(ask) == "json":
        told: dict[str, Any] = {}
        if received.rejected:
            told = {"partialSuccess": {counted: str(received.rejected), "errorMessage": why}}
        return _json(told)
    response, success = _classes(signal)
    if not received.rejected:
        return _protobuf(response())
    name = "rejected_spans" if signal == "trace" else "rejected_log_records"
    return _protobuf(response(partial_success=success(**{name: received.rejected, "error_message": why})))


def _classes(signal: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    if signal == "trace":
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

        return traces.ExportTraceServiceResponse, traces.ExportTracePartialSuccess
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs

    return logs.ExportLogsServiceResponse, logs.ExportLogsPartialSuccess


def _json(document: dict[str, Any]) -> Answer:
    return Answer(orjson.dumps(document))


def _protobuf(message: Any) -> Answer:
    return Answer(message.SerializeToString(), media=PROTOBUF[0])
