"""Tell the exports of telemetry from the traffic of an agent: they are about the run and no part of it."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

_HOSTS = re.compile(
    r"(?:^|\.)(?:smith\.langchain\.com|langfuse\.com|logfire[a-z0-9.-]*\.pydantic\.dev|posthog\.com|sentry\.io"
    r"|datadoghq\.(?:com|eu)|honeycomb\.io|arize\.com|traceloop\.com|helicone\.ai|wandb\.ai|comet\.com|mixpanel\.com"
    r"|segment\.io|amplitude\.com|scarf\.sh)$"
)
# OpenTelemetry collectors, the tracing of the OpenAI Agents SDK, LangSmith on a host of one's own, Langfuse likewise.
_PATHS = re.compile(
    r"/v1/traces/ingest$|/v1/(?:traces|metrics|logs)$|/runs/(?:batch|multipart)$|/api/public/(?:ingestion|otel/)"
)


@lru_cache(maxsize=256)
def is_export(method: str, url: str) -> bool:
    """Say whether a request carries telemetry."""
    parts = urlsplit(url)
    return _HOSTS.search(parts.hostname or "") is not None or (
        method != "GET" and _PATHS.search(parts.path) is not None
    )
