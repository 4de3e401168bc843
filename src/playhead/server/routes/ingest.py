"""Take in what the SDK of Span Chain sends besides OTLP."""

from __future__ import annotations

from playhead.ingest.otlp.spanchain import read_spans
from playhead.server.answering import Answer, answered
from playhead.server.asking import Ask, strict_json
from playhead.server.routing import route


@route("POST", "/ingest", scope="ingest", group="Span Chain", takes=("application/json",), runs="writing",
       answers={202: {"accepted": 1, "run_id": "…"}})  # fmt: skip
def take_spans(ask: Ask) -> Answer:
    """Take in spans in the form of Span Chain: `{run_id, spans: [{span_id, name, started_at, ended_at, …}]}`.

    Answered when they are on the disk. Those that cannot be kept are counted in `rejected`, with `problems`.
    """
    body = strict_json(ask.body)
    received = read_spans(body)
    ask.project.intake.take(spans=received.spans)
    ask.server.counters.add("spans", len(received.spans))
    told = {"accepted": len(received.spans), "run_id": body["run_id"]}
    if received.rejected:
        told |= {"rejected": received.rejected, "problems": received.problems}
    return answered(told, status=202)
