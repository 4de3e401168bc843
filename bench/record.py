"""Recording one 4 kB event: Playhead as shipped, against the floor and against the OpenTelemetry SDK.

CPU time of the whole process (all threads), interleaved rounds, medians. Every event has new content. A block of events
takes about as long as the interval between two flushes to the disk, and ends with one flush, as shipped; the span
processor flushes too. So no thread works in somebody else's time.
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
from table import Row

EVENTS = 1500
ROUNDS = 9


def measure(work: Callable[[list[Any]], None], events: list[Any]) -> float:
    start = time.process_time_ns()
    work(events)
    return (time.process_time_ns() - start) / len(events) / 1000


def floor(events: list[Any], descriptor: int) -> None:
    """The least there can be: encode the same line, hash it, write it once."""
    previous = "0" * 64
    for seq, event in enumerate(events):
        line = {
            "v": 1,
            "run": "run_01m7ept1m5k00hr7qqkt9p9wav",
            "seq": seq,
            "time": "2026-11-15T04:00:43.773579Z",
            "elapsed_us": 123456,
            "kind": "model.invoked",
            "span": "17",
            "parent": "0",
            "lane": "0",
            "key": "k1:" + previous,
            "data": event,
            "prev": previous,
        }
        body = orjson.dumps(line)[:-1]
        previous = hashlib.sha256(body).hexdigest()
        os.write(descriptor, b'%b,"hash":"%b"}\n' % (body, previous.encode()))


def otel() -> tuple[Callable[[list[Any]], None], Callable[[], None]]:
    """Return what records as OpenTelemetry does, and what ends its thread: the next bench is to be alone."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.trace import SpanKind

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> Any:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = provider.get_tracer("bench")

    def work(events: list[Any]) -> None:
        """Record as the GenAI instrumentations do: one current span, attributes, messages as JSON."""
        for event in events:
            request = event["request"]
            attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": event["provider"],
                "gen_ai.request.model": request["model"],
                "gen_ai.request.temperature": request["temperature"],
                "gen_ai.request.max_tokens": request["max_tokens"],
            }
            with tracer.start_as_current_span("chat gpt-5", kind=SpanKind.CLIENT, attributes=attributes) as span:
                span.set_attribute("gen_ai.input.messages", json.dumps(request["messages"]))
        provider.force_flush()  # or the exporter's thread would work in somebody else's time

    return work, provider.shutdown


def run() -> list[Row]:
    import playhead
    from playhead.event.kinds import ModelInvoked

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PLAYHEAD_GIT"] = "0"
        descriptor = os.open(Path(folder) / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        span_work, end_spans = otel()
        times: dict[str, list[float]] = {"floor": [], "otel": [], "point": [], "call": []}
        with playhead.record("bench", store=folder) as handle:
            recording = handle.recording
            assert recording is not None

            def call(events: list[Any]) -> None:
                for event in events:
                    recording.emit(ModelInvoked(**event))
                recording.sync()  # likewise

            def point(events: list[Any]) -> None:
                for event in events:
                    recording.emit_fields("note.added", event)
                recording.sync()

            for _ in range(ROUNDS):
                for name, work in (
                    ("floor", lambda events: floor(events, descriptor)),
                    ("point", point),
                    ("call", call),
                    ("otel", span_work),
                ):
                    events = [samples.model_request() for _ in range(EVENTS)]
                    times[name].append(measure(work, events))
        end_spans()
        lost = handle.lost
    middle = {name: statistics.median(values) for name, values in times.items()}
    ratios = {
        name: statistics.median(a / b for a, b in zip(times[name], times["floor"], strict=True)) for name in times
    }
    point = statistics.median(a / b for a, b in zip(times["point"], times["otel"], strict=True))
    against = statistics.median(a / b for a, b in zip(times["call"], times["otel"], strict=True))
    assert lost == 0
    return [
        Row("record 4 kB: floor", f"{middle['floor']:.1f} µs", "encode, hash, write of the same line"),
        Row(
            "record 4 kB event",
            f"{middle['point']:.1f} µs",
            f"{ratios['point']:.2f} × floor (max 4, aim 3)",
            ratios["point"] <= 4,
        ),
        Row(
            "record 4 kB model call, with key",
            f"{middle['call']:.1f} µs",
            f"{ratios['call']:.2f} × floor (max 4)",
            ratios["call"] <= 4,
        ),
        Row(
            "OpenTelemetry span, no-op export",
            f"{middle['otel']:.1f} µs",
            f"our event is {point:.2f}, our call {against:.2f} of it (max 0.75)",
            point <= 0.75,
        ),
    ]


if __name__ == "__main__":
    for row in run():
        print(*row, sep="\t")
