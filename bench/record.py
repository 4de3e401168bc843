"""Recording one 4 kB event: Playhead as shipped, against the floor and against the OpenTelemetry SDK.

CPU time of the whole process (all threads), interleaved rounds, medians. Every event has new content.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import samples

EVENTS = 400
ROUNDS = 15


def measure(work: Callable[[list[Any]], None], events: list[Any]) -> float:
    start = time.process_time_ns()
    work(events)
    return (time.process_time_ns() - start) / len(events) / 1000


def floor(events: list[Any], descriptor: int) -> None:
    """The least there can be: encode, hash, write."""
    previous = b"0" * 64
    for event in events:
        body = orjson.dumps(event)
        digest = hashlib.sha256(previous + body).hexdigest().encode()
        os.write(descriptor, body + digest + b"\n")
        previous = digest


def otel() -> Callable[[list[Any]], None]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> Any:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = provider.get_tracer("bench")

    def work(events: list[Any]) -> None:
        for event in events:
            span = tracer.start_span("chat")
            span.set_attribute("gen_ai.provider.name", event["provider"])
            span.set_attribute("gen_ai.request.model", event["model"])
            span.set_attribute("gen_ai.request.temperature", event["request"]["temperature"])
            span.set_attribute("gen_ai.input.messages", json.dumps(event["request"]["messages"]))
            span.end()

    return work


def run() -> list[tuple[str, str, str, bool]]:
    import playhead
    from playhead.event.kinds import ModelInvoked

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PLAYHEAD_GIT"] = "0"
        descriptor = os.open(Path(folder) / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        span_work = otel()
        times: dict[str, list[float]] = {"floor": [], "otel": [], "point": [], "call": []}
        with playhead.record("bench", store=folder) as handle:
            recording = handle.recording
            assert recording is not None

            def call(events: list[Any]) -> None:
                for event in events:
                    recording.emit(ModelInvoked(**event))

            def point(events: list[Any]) -> None:
                for event in events:
                    recording.emit_fields("note.added", event)

            for _ in range(ROUNDS):
                for name, work in (
                    ("floor", lambda events: floor(events, descriptor)),
                    ("point", point),
                    ("call", call),
                    ("otel", span_work),
                ):
                    events = [samples.model_request() for _ in range(EVENTS)]
                    times[name].append(measure(work, events))
        lost = handle.lost
    middle = {name: statistics.median(values) for name, values in times.items()}
    ratios = {
        name: statistics.median(a / b for a, b in zip(times[name], times["floor"], strict=True)) for name in times
    }
    against = statistics.median(a / b for a, b in zip(times["call"], times["otel"], strict=True))
    assert lost == 0
    return [
        ("record 4 kB: floor", f"{middle['floor']:.1f} µs", "", True),
        ("record 4 kB event", f"{middle['point']:.1f} µs", f"{ratios['point']:.2f} × floor (max 4, aim 3)", ratios["point"] <= 4),
        ("record 4 kB call, with key", f"{middle['call']:.1f} µs", f"{ratios['call']:.2f} × floor (max 4)", ratios["call"] <= 4),
        ("the same, against OpenTelemetry", f"{middle['otel']:.1f} µs", f"{against:.2f} × its span (max 0.75)", against <= 0.75),
    ]


if __name__ == "__main__":
    for row in run():
        print(*row, sep="\t")
