"""Real requests with anything in the place of anything else become facts, and what is kept makes the same span."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.shared_data import shared

from playhead.errors import BadBody
from playhead.ingest.otlp.decoding import read_traces
from playhead.ingest.otlp.facts import facts, step_of
from playhead.ingest.otlp.grouping import groups
from playhead.ingest.otlp.merging import Seen, choose
from playhead.ingest.otlp.spans import Span

JUNK = (
    None,
    True,
    0,
    -1,
    1.5,
    "",
    [],
    {},
    "x",
    [None],
    {"a": 1},
    2**70,
    "\0",
    "[",
    "{}",
    [[[]]],
    {"type": "text"},
    {"role": []},
    {"type": {}},
)
IDS = ("traceId", "spanId", "parentSpanId")


def as_otlp(value: Any) -> Any:
    """Return what protobuf writes as JSON, with ids in hex as OTLP has them."""
    if isinstance(value, dict):
        return {name: base64.b64decode(one).hex() if name in IDS else as_otlp(one) for name, one in value.items()}
    return [as_otlp(one) for one in value] if isinstance(value, list) else value


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for name, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(one, (*path, name))


def damaged(document: Any, chance: random.Random) -> Any:
    """Return a document with junk in some places, also inside of texts of JSON."""
    document = json.loads(json.dumps(document))
    for _ in range(chance.randint(1, 6)):
        path = chance.choice(list(places(document)))
        if not path:
            continue
        owner = document
        for name in path[:-1]:
            owner = owner[name]
        value = owner[path[-1]]
        owner[path[-1]] = json.loads(json.dumps(chance.choice(JUNK)))
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                owner[path[-1]] = json.dumps(damaged(json.loads(value), chance))
            except ValueError:
                pass
    return document


@pytest.mark.parametrize("seed", range(4))
def test_real_requests_that_were_damaged(seed: int) -> None:
    chance = random.Random(seed)
    samples = [file.read_bytes() for file in sorted(shared("otlp").glob("*_traces.pb"))]
    documents = [as_otlp(MessageToDict(ExportTraceServiceRequest.FromString(body))) for body in samples]
    looked = 0
    for _ in range(300):
        try:
            received = read_traces(json.dumps(damaged(chance.choice(documents), chance)).encode(), "json")
        except BadBody:
            continue
        seen = []
        for one in received.spans:
            seen.append(Seen(one, facts(one)))
            step_of(one)
            again = Span.of_kept(
                one.kept(), one.span, one.parent, one.start_ns // 1000, one.end_ns // 1000, one.emitter
            )
            assert again == one
            looked += 1
        choose(seen)
        groups(received.spans)
    assert looked > 300
