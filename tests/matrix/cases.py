"""Say which programs run in which environments, and which scenarios of them `make test` runs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.matrix.harness import Entry

MATRIX = [
    Entry("openai_sdk", "new"),
    Entry("openai_sdk", "old"),
    Entry("openai_sdk", "litellm"),  # openai 2
    Entry("anthropic_sdk", "new"),
    Entry("anthropic_sdk", "old"),
    Entry("google_sdk", "new"),  # asynchronous calls go through aiohttp
    Entry("google_sdk", "old"),
    Entry("google_sdk", "frameworks"),  # without aiohttp: through httpx2
    Entry("langchain_agent", "frameworks"),
    Entry("pydantic_agent", "frameworks"),
    Entry("openai_agents", "frameworks"),
    Entry("litellm_calls", "litellm"),
    Entry("plain_http", "plain"),
    Entry("mcp_client", "mcp1"),
    Entry("mcp_client", "mcp2"),
]
# What `make test` runs, of the environments `new` and `plain`: what went wrong most often while this was built.
CORE = {
    "openai_sdk": {
        "sync", "asynchronous", "stream", "raw_pieces", "parallel_tools", "rate_limited", "failing", "cut_stream",
        "gather", "threads", "gzip_stream", "cancelled", "closed_early", "responses_tools", "embeddings",
    },
    "anthropic_sdk": set(),  # takes ten seconds to load, twice
    "google_sdk": {"sync", "forgotten", "stream_async", "tools", "cut_stream_async", "gather"},
    "plain_http": {
        "requests_session", "requests_stream", "requests_cut", "requests_threads", "urllib3_chunked", "urllib_request",
        "http_client", "aiohttp_calls", "aiohttp_stream", "aiohttp_encoded", "httpx1_calls", "httpx2_async",
        "botocore_bedrock",
    },
}  # fmt: skip
CORE_ENVIRONMENTS = ("new", "plain")


def cases() -> list[Any]:
    """Return every scenario of every program in each of its environments."""
    return [
        pytest.param(
            entry,
            scenario,
            id=f"{entry.program}-{entry.environment}-{scenario}",
            marks=[
                pytest.mark.xdist_group(f"{entry.program}-{entry.environment}"),
                *([] if _is_core(entry, scenario) else [pytest.mark.matrix]),
            ],
        )
        for entry in MATRIX
        for scenario in entry.scenarios()
    ]


def _is_core(entry: Entry, scenario: str) -> bool:
    return entry.environment in CORE_ENVIRONMENTS and scenario in CORE.get(entry.program, ())
