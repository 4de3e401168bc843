"""Tell the exports of telemetry from the traffic of an agent: they are about the run and no part of it.

A host alone says little: an agent may search the logs of Datadog, fetch a prompt from Langfuse, or ask a model through
a gateway of Helicone. So an export is known by where its exporter sends it, and by what it sends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from playhead.capture.dialects import split

# Host and path together, as `host/path`.
_EXPORTS = re.compile(
    r"""
      ^[^/]*/(?:.*/)?v1/traces/ingest$                                      # the OpenAI Agents SDK
    | ^[^/]*/(?:.*/)?api/public/(?:ingestion$|otel/)                        # Langfuse, on any host
    | ^(?:[^/]*\.)?smith\.langchain\.com/(?:.*/)?runs(?:/[0-9a-f-]{36}|/batch|/multipart)?$
    | ^(?:[^/]*\.)?smith\.langchain\.com/(?:.*/)?(?:otel/v1/traces|v1/metadata/submit)$
    | ^(?:[^/]*\.)?sentry\.io/api/[0-9]+/(?:envelope|store)$
    | ^(?:[^/]*\.i|app|eu|us)\.posthog\.com/(?:batch|capture|e|i/v0/e|s|track)$
    | ^[^/]*intake[^/]*\.datadoghq\.(?:com|eu)/
    | ^(?:localhost|127\.0\.0\.1)/(?:v0\.[0-9]/traces|telemetry/proxy/|evp_proxy/)
    | ^[^/]*\.honeycomb\.io/1/(?:batch|events)/
    | ^[^/]*helicone\.ai/(?:.*/)?(?:oai|anthropic|custom|trace)/v1/log$
    | ^trace\.wandb\.ai/(?:call/(?:upsert_batch|start|end)|calls/complete|otel/)$ | ^api\.wandb\.ai/files/
    | ^[^/]*\.comet\.com/(?:.*/)?v1/private/(?:traces|spans)(?:/batch)?(?:/[^/]*)?$
    | ^api\.braintrust\.dev/logs3$
    | ^(?:api|otlp)\.agentops\.ai/
    | ^api(?:-eu)?\.mixpanel\.com/(?:track|engage|import|groups)$
    | ^[^/]*\.segment\.(?:io|com)/v1/(?:batch|track|identify|page|group|screen|alias)$
    | ^api[0-9]?\.(?:eu\.)?amplitude\.com/(?:2/httpapi|batch|identify)$
    | ^(?:[^/]*\.)?scarf\.sh/
    | ^huggingface\.co/api/telemetry/
    """,
    re.VERBOSE,
)
# OpenTelemetry, LangSmith and Sentry on any host: others have such paths too, so that headers must tell.
_COLLECTOR = re.compile(r"/v1/(?:traces|metrics|logs)$|/runs/(?:batch|multipart)$|/api/[0-9]+/(?:envelope|store)$")
_EXPORTERS = ("otlp", "otel", "opentelemetry", "langsmith", "sentry")
_PORT = re.compile(r":[0-9]*$")
_SENDING = ("POST", "PUT", "PATCH")
_ALWAYS = ("scarf.sh",)  # counts visits by what is fetched

NO, YES, BY_HEADERS = 0, 1, 2


def is_export(method: str, url: str, headers: Iterable[tuple[str, str]]) -> bool:
    """Say whether a request carries telemetry."""
    found = _by_address(method, url)
    return found == YES or (found == BY_HEADERS and any(_tells(name.lower(), value.lower()) for name, value in headers))


@lru_cache(maxsize=256)
def _by_address(method: str, url: str) -> int:
    authority, path = split(url)
    host = _PORT.sub("", authority.rpartition("@")[2].lower())
    address = f"{host}{path}"
    if method.upper() not in _SENDING and not host.endswith(_ALWAYS):
        return NO
    if _EXPORTS.search(address) or _EXPORTS.search(f"{address}/"):
        return YES
    return BY_HEADERS if _COLLECTOR.search(address) else NO


def _tells(name: str, value: str) -> bool:
    """Say whether a header is one of an exporter: they send Protobuf, or name themselves."""
    if name == "content-type":
        return value.startswith("application/x-protobuf")
    if name == "x-sentry-auth":
        return True
    return name == "user-agent" and any(word in value for word in _EXPORTERS)
