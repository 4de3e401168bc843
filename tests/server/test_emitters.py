"""What real emitters send becomes runs: the SDKs of OpenTelemetry, a Collector, the SDK of Span Chain.

The server is a process of its own, and so is each SDK, as `docs/guides/opentelemetry.md` shows them.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from tests.docs_pages import blocks
from tests.server import node_packages
from tests.server.a_server import Server, serving, variables

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve without keys, for all tests of this file that need none."""
    with serving(tmp_path_factory.mktemp("served") / "store") as server:
        yield server


def of_guide(language: str, page: str = "opentelemetry") -> str:
    """Return the program that the guide shows."""
    found = [block.body for block in blocks((GUIDES / f"{page}.md").read_text("utf-8")) if block.language == language]
    assert len(found) == 1, "the guide has one program in each language"
    return found[0]


def run_python(program: str, server: Server, **more: str) -> subprocess.CompletedProcess[str]:
    env = variables(OTEL_EXPORTER_OTLP_ENDPOINT=server.address, OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf", **more)
    return subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def the_run(server: Server, name: str) -> dict[str, Any]:
    """Return the one run of a name."""
    found = [run for run in server.runs() if run["name"] == name]
    assert len(found) == 1, [run["name"] for run in server.runs()]
    return found[0]


# OpenTelemetry for Python.

PYTHON = '''
import logging, sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind

logging.basicConfig()
provider = TracerProvider(resource=Resource.create({"service.name": "python-sdk", "service.version": "7", "session.id": "conversation-1"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(compression=Compression.Gzip), max_export_batch_size=16))
tracer = provider.get_tracer("library", "1.2")

with tracer.start_as_current_span("python-sdk") as root:
    for number in range(40):
        with tracer.start_as_current_span(f"chat {number}", kind=SpanKind.CLIENT, links=[Link(root.get_span_context())]) as span:
            span.set_attributes({
                "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5", "gen_ai.provider.name": "openai",
                "gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 2, "flag": True, "share": 0.25,
                "large": 2**60, "many": ["a", "b"], "numbers": [1, 2], "text": "ä" * 2000,
            })
            span.add_event("noticed", {"seconds": 1.5})
    try:
        with tracer.start_as_current_span("breaks"):
            raise ValueError("no such file")
    except ValueError:
        pass
provider.shutdown()
'''  # fmt: skip


def test_the_python_sdk_sends_protobuf_with_gzip_in_batches_and_all_of_it_is_one_run(shared: Server) -> None:
    done = run_python(PYTHON, shared)
    assert (done.returncode, done.stderr) == (0, "")
    run = the_run(shared, "python-sdk")
    assert (run["model_calls"], run["tokens_in"], run["tokens_out"]) == (40, 120, 80)
    assert run["external_id"] == "conversation-1"
    events = shared.events(run["id"])
    answered = [event["data"] for event in events if event["kind"] == "model.responded"]
    kept = answered[0]["otlp"]["attributes"]
    assert (kept["flag"], kept["share"], kept["many"], kept["numbers"]) == (True, 0.25, ["a", "b"], [1, 2])
    assert kept["text"] == "ä" * 2000
    assert kept["large"] == 2**60 or kept["large"] == {"$int": str(2**60)}
    assert answered[0]["otlp"]["events"][0]["name"] == "noticed"
    assert len(answered[0]["otlp"]["links"]) == 1
    broken = [
        event["data"] for event in events if event["kind"] == "step.finished" and event["data"]["status"] == "error"
    ]
    assert "no such file" in json.dumps(broken)
    emitters = [event["data"] for event in events if event["kind"] == "emitter.described"]
    assert emitters[0]["resource"]["attributes"]["telemetry.sdk.language"] == "python"
    assert emitters[0]["scope"]["name"] == "library"


def test_a_run_ends_when_somebody_says_so_and_is_intact_and_complete(shared: Server) -> None:
    program = of_guide("python").replace("fix-login", "of-the-guide")
    assert run_python(program, shared).stderr == ""
    run = the_run(shared, "of-the-guide")
    assert run["status"] == "running"
    assert shared.ask(f"/api/runs/{run['id']}/finish", b"", method="POST").status == 200
    found = shared.ask(f"/api/runs/{run['id']}/verify?deep=true").json()
    assert found["integrity"]["verdict"] == "intact"
    assert found["completeness"]["verdict"] == "complete"
    kinds = [event["kind"] for event in shared.events(run["id"])]
    assert sorted(kinds) == sorted(
        ["run.started", "emitter.described", "model.invoked", "model.responded", "tool.called", "tool.returned",
         "step.started", "step.finished", "run.finished"]
    )  # fmt: skip


def test_an_sdk_with_a_key_in_its_variables_is_let_in_and_one_with_another_is_not(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as server:
        key, server.key = server.new_key("--scope", "ingest"), server.new_key("--scope", "admin")
        program = of_guide("python")
        refused = run_python(program, server, OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20ph_0_0")
        assert "401" in refused.stderr
        assert server.runs() == []
        done = run_python(program, server, OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Bearer%20{key}")
        assert (done.returncode, done.stderr) == (0, "")
        assert the_run(server, "fix-login")["tool_calls"] == 1


LOGS_AND_METRICS = '''
import logging

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry._logs import LogRecord, SeverityNumber

logging.basicConfig()
logs = LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
logs.get_logger("cli").emit(LogRecord(
    timestamp=1_790_000_000_000_000_000, severity_text="INFO", severity_number=SeverityNumber.INFO, body={"said": ["hello"]},
    event_name="cli.prompt", attributes={"session.id": "of-logs"},
))
logs.shutdown()
metrics = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
metrics.get_meter("cli").create_counter("tokens").add(5)
metrics.shutdown()
'''  # fmt: skip


def test_logs_are_kept_and_metrics_are_answered_and_dropped(shared: Server) -> None:
    done = run_python(LOGS_AND_METRICS, shared)
    assert done.returncode == 0
    assert "metrics are not kept" in done.stderr or done.stderr == ""  # newer exporters say what a partial success says
    events = shared.events("of-logs")
    assert [event["data"]["name"] for event in events if event["kind"] == "log.emitted"] == ["cli.prompt"]
    assert "tokens" not in json.dumps([run["name"] for run in shared.runs()])


# OpenTelemetry for JavaScript.


@pytest.fixture(scope="module")
def packages() -> Path:
    """Return the folder with the packages; skip where they cannot be had, but fail where CI has node and no packages."""
    try:
        return node_packages.folder()
    except node_packages.Unavailable as problem:
        if os.environ.get("CI") == "true" and "not on this machine" not in str(problem):
            raise
        pytest.skip(str(problem))


@pytest.mark.parametrize("form", ["proto", "http"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_javascript_sdk_sends_protobuf_or_json_and_it_becomes_a_run(
    shared: Server, packages: Path, tmp_path: Path, form: str, compression: str
) -> None:
    name = f"javascript-{form}-{compression}"
    program = (
        of_guide("js").replace("exporter-trace-otlp-proto", f"exporter-trace-otlp-{form}").replace("fix-login", name)
    )
    script = tmp_path / "send.mjs"
    script.write_text(program)
    (tmp_path / "node_modules").symlink_to(packages / "node_modules")
    env = variables(OTEL_EXPORTER_OTLP_ENDPOINT=shared.address, OTEL_EXPORTER_OTLP_COMPRESSION=compression)
    done = subprocess.run(["node", script], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    run = the_run(shared, name)
    assert (run["model_calls"], run["tokens_in"], run["tokens_out"]) == (1, 21, 8)
    emitter = next(event["data"] for event in shared.events(run["id"]) if event["kind"] == "emitter.described")
    assert emitter["resource"]["attributes"]["telemetry.sdk.language"] == "nodejs"


# The Collector. Its binary is not here: these are the requests that its otlphttp exporter makes.


COLLECTOR = {
    "content_type": "application/x-protobuf",
    "content_encoding": "gzip",
    "user_agent": "OpenTelemetry Collector Contrib/0.142.0 (linux/amd64)",
    "accept_encoding": "gzip",
}


def collected(*services: str) -> ExportTraceServiceRequest:
    """Return a batch of the Collector: spans of several services, a resource of each, one of them twice."""
    request = ExportTraceServiceRequest()
    now_ns = time.time_ns()
    for number, service in enumerate([*services, services[0]]):
        resource = request.resource_spans.add(schema_url="https://opentelemetry.io/schemas/1.37.0")
        resource.resource.attributes.add(key="service.name").value.string_value = service
        span = resource.scope_spans.add().spans.add(
            trace_id=service.encode().ljust(16, b"_")[:16], span_id=bytes([number + 1] * 8), flags=0x101, name=service,
            kind=1, start_time_unix_nano=now_ns, end_time_unix_nano=now_ns + 1_000_000,
        )  # fmt: skip
        if number == len(services):
            span.name, span.parent_span_id = "inside", bytes([1] * 8)
    return request


def test_a_collector_mixes_services_in_one_request_and_each_trace_is_a_run(shared: Server) -> None:
    body = gzip.compress(collected("collected-one", "collected-two").SerializeToString())
    told = shared.ask("/v1/traces", body, **COLLECTOR)
    assert (told.status, told.headers["content-type"]) == (200, "application/x-protobuf")
    assert not ExportTraceServiceResponse.FromString(told.body).HasField("partial_success")
    first, second = the_run(shared, "collected-one"), the_run(shared, "collected-two")
    assert [event["kind"] for event in shared.events(first["id"])].count("step.started") == 2
    assert [event["kind"] for event in shared.events(second["id"])].count("step.started") == 1
    again = shared.ask("/v1/traces", body, **COLLECTOR)  # it was not answered in time, it thinks
    assert again.status == 200
    assert the_run(shared, "collected-one")["events"] == first["events"]


def test_what_a_collector_cannot_send_again_is_answered_so_that_it_drops_it(shared: Server) -> None:
    told = shared.ask("/v1/traces", b"no gzip at all", **COLLECTOR)
    assert told.status == 400  # it repeats 429, 502, 503 and 504 only
    assert told.json()["error"]["code"] == "bad_body"
    assert (
        shared.ask("/v1/logs", gzip.compress(ExportLogsServiceRequest().SerializeToString()), **COLLECTOR).status == 200
    )


# The SDK of Span Chain: it exports OTLP as JSON, with its key as a bearer.


def attributes(**said: Any) -> list[dict[str, Any]]:
    """Return attributes as that SDK writes them: its numbers are numbers."""
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    return [{"key": name.replace("__", "."), "value": {kinds[type(value)]: value}} for name, value in said.items()]


def span_chain(run: str, start_ns: int) -> bytes:
    """Return what it sends of the seed's own example: children first, the status in attributes."""
    trace = "0af7651916cd43dd8448eb211c80319c"
    call = {
        "traceId": trace, "spanId": "b7ad6b7169203331", "parentSpanId": "b7ad6b7169203330", "name": "llm_call", "kind": 1,
        "startTimeUnixNano": start_ns, "endTimeUnixNano": start_ns + 1_200_000_000,
        "attributes": attributes(input="Fix #1842", output="Compare in lower case.", status="ok", gf__usage__cost_usd=0.003),
    }  # fmt: skip
    failed = {
        **call,
        "spanId": "b7ad6b7169203332",
        "name": "apply_patch",
        "attributes": attributes(status="error", error="boom"),
    }
    root = {
        **call, "spanId": "b7ad6b7169203330", "parentSpanId": "", "name": "agent_run",
        "attributes": attributes(gf__agent__name="fixer", gf__task__input="Fix #1842", status="ok"),
    }  # fmt: skip
    resource = {"attributes": attributes(service__instance__id=run, service__name="ghostfactory-sdk-python")}
    spans = [{"scope": {"name": "ghostfactory"}, "spans": [call, failed, root]}]
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": spans}]}).encode()


def test_what_the_sdk_of_span_chain_sends_is_a_run_under_its_own_id(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as server:
        server.key = server.new_key("--scope", "ingest", "--scope", "read")
        told = server.ask("/v1/traces", span_chain("run-abc-123", time.time_ns()), content_type="application/json")
        assert (told.status, told.json()) == (200, {})
        run = server.ask("/api/runs/run-abc-123").json()["run"]
        assert (run["external_id"], run["received"]["rule"]) == ("run-abc-123", "instance")
        by_name = {
            event["data"]["name"]: event["span"]
            for event in server.events("run-abc-123")
            if event["kind"] == "step.started"
        }
        assert set(by_name) == {"llm_call", "apply_patch", "agent_run"}
        ended = {
            event["span"]: event["data"] for event in server.events("run-abc-123") if event["kind"] == "step.finished"
        }
        assert ended[by_name["llm_call"]]["status"] == "ok"
        assert ended[by_name["apply_patch"]]["status"] == "error"
        assert ended[by_name["apply_patch"]]["error"]["message"] == "boom"
        assert ended[by_name["agent_run"]]["status"] == "ok"


def test_its_own_endpoint_takes_the_same_run(shared: Server) -> None:
    span = {
        "span_id": "s1",
        "name": "agent_run",
        "started_at": "2026-01-05T10:00:00Z",
        "ended_at": "2026-01-05T10:00:01Z",
    }
    body = json.dumps({"run_id": "of-ingest", "spans": [{**span, "status": "error", "error": "boom"}]}).encode()
    told = shared.ask("/ingest", body, content_type="application/json")
    assert (told.status, told.json()) == (202, {"accepted": 1, "run_id": "of-ingest"})
    assert shared.ask("/api/runs/of-ingest/finish", b"", method="POST").json()["status"] == "error"


def test_the_replay_of_a_cassette_answers_with_the_names_that_span_chain_has(shared: Server) -> None:
    shared.ask("/v1/traces", span_chain("to-replay", time.time_ns()), content_type="application/json")
    shared.ask("/api/runs/to-replay/finish", b"", method="POST")
    made = shared.ask("/api/cassettes", b'{"run_id": "to-replay"}', content_type="application/json").json()
    told = shared.ask(
        f"/api/cassettes/{made['id']}/replay", b'{"new_run_id": "replay-abc-123"}', content_type="application/json"
    )
    assert told.status == 202
    until = time.monotonic() + 30
    while (job := shared.ask(f"/api/jobs/{told.json()['job_id']}").json())["status"] not in ("completed", "failed"):
        assert time.monotonic() < until
        time.sleep(0.05)
    result = job["result"]
    assert (result["run_id"], result["span_count"], result["hash_valid"], result["diff"]) == (
        "replay-abc-123",
        3,
        True,
        [],
    )
    verdicts = [result[name]["verdict"] for name in ("integrity", "completeness", "fidelity")]
    assert verdicts == ["intact", "complete", "faithful"]
    assert re.fullmatch(r"run_\w+", result["run"])
