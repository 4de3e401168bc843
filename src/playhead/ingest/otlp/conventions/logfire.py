"""Describe what Logfire adds: the request and the answer as they were. A stream is two spans without a link.

The first of them has the question and ends at once; the second, a log that takes no time, has question and answer.
"""

from __future__ import annotations

from playhead.ingest.otlp.conventions.base import Convention

STREAMED = "streaming response from "
DURATION = "duration"

CONVENTION = Convention(
    name="logfire",
    title="Logfire",
    attributes={
        "request": ("request_data",),
        "response": ("response_data",),
    },
)
