"""Read the bodies of OTLP over HTTP: spans and log records, as protobuf or as JSON.

A body that cannot be read at all is `BadBody`, and nothing of it is taken. A span that is no span is rejected alone.
"""

from __future__ import annotations

from typing import Literal

from playhead.ingest.otlp import jsonbody
from playhead.ingest.otlp.received import Received as Received

Media = Literal["protobuf", "json"]


def read_traces(body: bytes, media: Media) -> Received:
    """Read the body of a request to `/v1/traces`, unpacked."""
    if media == "json":
        return jsonbody.read_traces(body)
    from playhead.ingest.otlp import protobuf

    return protobuf.read_traces(body)


def read_logs(body: bytes, media: Media) -> Received:
    """Read the body of a request to `/v1/logs`, unpacked."""
    if media == "json":
        return jsonbody.read_logs(body)
    from playhead.ingest.otlp import protobuf

    return protobuf.read_logs(body)
