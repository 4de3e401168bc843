"""Exports of telemetry are told from what an agent asks of the same services."""

from __future__ import annotations

import pytest

from playhead.capture.telemetry import is_export

PROTOBUF = [("Content-Type", "application/x-protobuf")]
OTLP = [("user-agent", "OTel-OTLP-Exporter-Python/1.30.0"), ("content-type", "application/json")]
EXPORTS = [
    ("POST", "https://api.openai.com/v1/traces/ingest", []),
    ("POST", "http://localhost:4318/v1/traces", PROTOBUF),
    ("POST", "http://collector:4318/v1/logs", PROTOBUF),
    ("POST", "https://otel.example.com/otlp/v1/metrics", OTLP),
    ("POST", "https://logfire-api.pydantic.dev/v1/traces", PROTOBUF),
    ("POST", "https://telemetry.crewai.com:4319/v1/traces", PROTOBUF),
    ("POST", "https://api.smith.langchain.com/runs/multipart", []),
    ("POST", "https://eu.api.smith.langchain.com/runs/batch", []),
    ("POST", "https://api.smith.langchain.com/runs", []),
    ("PATCH", "https://api.smith.langchain.com/runs/0f7e1b0c-8a0f-4d6a-9c53-5a3f1b0c8a0f", []),
    ("POST", "https://smith.our-company.example/api/v1/runs/multipart", [("User-Agent", "langsmith-py/0.4.1")]),
    ("POST", "https://cloud.langfuse.com/api/public/ingestion", []),
    ("POST", "https://langfuse.our-company.example/api/public/otel/v1/traces", []),
    ("POST", "https://o1.ingest.us.sentry.io/api/4507/envelope/", []),
    ("POST", "https://us.i.posthog.com/batch/", []),
    ("POST", "https://app.posthog.com/capture/", []),
    ("POST", "https://http-intake.logs.datadoghq.com/api/v2/logs", []),
    ("POST", "https://llmobs-intake.datadoghq.com/api/v2/llmobs", []),
    ("PUT", "http://localhost:8126/v0.5/traces", []),
    ("POST", "https://api.honeycomb.io/1/batch/dataset", []),
    ("POST", "https://api.worker.helicone.ai/oai/v1/log", []),
    ("POST", "https://trace.wandb.ai/call/upsert_batch", []),
    ("POST", "https://www.comet.com/opik/api/v1/private/spans/batch", []),
    ("POST", "https://api.braintrust.dev/logs3", []),
    ("POST", "https://api.mixpanel.com/track", []),
    ("POST", "https://api.segment.io/v1/batch", []),
    ("POST", "https://api2.amplitude.com/2/httpapi", []),
    ("GET", "https://static.scarf.sh/a.png?x-pxid=1", []),
    ("POST", "https://huggingface.co/api/telemetry/gradio", []),
]
TRAFFIC = [
    ("POST", "https://api.example.com/v1/logs", [("content-type", "application/json")]),
    ("POST", "https://api.example.com/v1/metrics", []),
    ("GET", "http://collector:4318/v1/traces", PROTOBUF),
    ("POST", "https://oai.helicone.ai/v1/chat/completions", []),
    ("POST", "https://api.inference.wandb.ai/v1/chat/completions", []),
    ("POST", "https://api.braintrust.dev/v1/proxy/chat/completions", []),
    ("POST", "https://api.datadoghq.com/api/v2/logs/events/search", []),
    ("GET", "https://sentry.io/api/0/projects/", []),
    ("PUT", "https://sentry.io/api/0/issues/1/", []),
    ("GET", "https://cloud.langfuse.com/api/public/v2/prompts/system", []),
    ("GET", "https://api.smith.langchain.com/commits/owner/prompt/latest", []),
    ("POST", "https://api.smith.langchain.com/runs/query", []),
    ("POST", "https://api.openai.com/v1/threads/thread_1/runs", []),
    ("POST", "https://app.posthog.com/api/projects/1/query/", []),
    ("POST", "https://api.honeycomb.io/1/queries/dataset", []),
    ("POST", "http://localhost:8000/v1/chat/completions", []),
    ("POST", "http://localhost:8126/other", []),
    ("POST", "https://evil.example/https://us.i.posthog.com/batch", []),
    ("POST", "https://example.com/?next=/v1/traces/ingest", []),
    ("POST", "http://[::1", []),
    ("POST", "http://[::1]:80/v1/traces", []),
    ("POST", "", []),
    ("POST", "no address at all", []),
]


@pytest.mark.parametrize(("method", "url", "headers"), EXPORTS)
def test_an_export_is_left_out(method: str, url: str, headers: list[tuple[str, str]]) -> None:
    assert is_export(method, url, headers)


@pytest.mark.parametrize(("method", "url", "headers"), TRAFFIC)
def test_what_an_agent_asks_of_such_a_service_is_not_left_out(
    method: str, url: str, headers: list[tuple[str, str]]
) -> None:
    assert not is_export(method, url, headers)
