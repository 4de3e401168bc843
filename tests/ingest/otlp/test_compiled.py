"""What the compiled part reads of a request is what the library reads of it, whatever the request is."""

from __future__ import annotations

import random
from typing import Any

import pytest
from bench.peers.load import Load
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from tests.shared_data import shared

from playhead.errors import BadBody
from playhead.ingest.otlp import compiled
from playhead.ingest.otlp.protobuf import read_traces

pytestmark = pytest.mark.skipif(compiled.read_spans is None, reason="there was no compiler where this was installed")


def read(body: bytes) -> Any:
    """Return everything that comes of reading a request."""
    try:
        received = read_traces(body)
    except BadBody:
        return "refused"
    told = [(span.digest(), span.attributes, span.emitter.as_dict()) for span in received.spans]
    return repr(told), received.rejected, received.problems


def assert_same(body: bytes) -> None:
    ours = read(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "read_spans", None)
        assert ours == read(body)


def filled(message: SpanMessage, chance: random.Random) -> SpanMessage:
    """Fill a span with what may come, mostly usual."""
    message.trace_id, message.span_id = chance.randbytes(16), chance.randbytes(8)
    message.name, message.kind = "ünusual" if chance.random() < 0.2 else "chat", chance.choice((0, 1, 3, -1, 77))
    message.start_time_unix_nano, message.end_time_unix_nano = chance.choice(((0, 0), (5, 3), (1 << 60, 2**64 - 1)))
    if chance.random() < 0.7:
        message.parent_span_id = chance.choice((chance.randbytes(8), message.span_id, bytes(8), b"abc"))
    if chance.random() < 0.1:
        message.trace_id = chance.choice((bytes(16), b"", b"short"))
    for number in range(chance.randrange(9)):
        pair = message.attributes.add(key=chance.choice((f"key.{number}", f"llm.{number}" * 20, "twice", "", "ключ")))
        match chance.randrange(9):
            case 0 | 1 | 2:
                pair.value.string_value = chance.choice(("", "x", "text", "длинный " * 30, '{"a": 1}', "\0"))
            case 3:
                pair.value.int_value = chance.choice((0, -1, 2**63 - 1, -(2**63)))
            case 4:
                pair.value.double_value = chance.choice((0.0, -0.0, 1.5, float("nan"), float("inf")))
            case 5:
                pair.value.bool_value = chance.random() < 0.5
            case 6:
                pair.value.array_value.values.add(string_value="one")
            case 7:
                pair.value.bytes_value = b"\xff"
    match chance.randrange(8):
        case 0:
            message.status.code, message.status.message = 2, "failed"
        case 1:
            message.status.SetInParent()
        case 2:
            message.events.add(name="exception").attributes.add(key="k").value.int_value = 1
        case 3:
            message.links.add(trace_id=bytes(16))
        case 4:
            message.flags, message.trace_state = 0x300, "a=b"
        case 5:
            message.dropped_attributes_count = 3
    return message


def request(chance: random.Random) -> bytes:
    message = ExportTraceServiceRequest()
    for _ in range(chance.randrange(1, 3)):
        of_resource = message.resource_spans.add(schema_url=chance.choice(("", "https://example.test/1")))
        of_resource.resource.attributes.add(key="service.name").value.string_value = "bench"
        for _ in range(chance.randrange(1, 3)):
            of_scope = of_resource.scope_spans.add()
            of_scope.scope.name = chance.choice(("", "scope"))
            for _ in range(chance.randrange(4)):
                filled(of_scope.spans.add(), chance)
    return message.SerializeToString()


@given(st.integers(0, 2**32))
@settings(max_examples=400, deadline=None)
def test_a_request_is_read_as_the_library_reads_it(seed: int) -> None:
    assert_same(request(random.Random(seed)))


@given(st.integers(0, 2**32))
@settings(max_examples=600, deadline=None)
def test_a_damaged_request_is_read_as_the_library_reads_it(seed: int) -> None:
    chance = random.Random(seed)
    body = bytearray(request(chance))
    for _ in range(chance.randrange(1, 4)):
        match chance.randrange(4):
            case 0:
                body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
            case 1:
                del body[chance.randrange(len(body)) :]
            case 2:
                at = chance.randrange(len(body))
                body[at:at] = chance.randbytes(chance.randrange(1, 12))
            case 3:
                at = chance.randrange(len(body))
                del body[at : at + chance.randrange(1, 9)]
        if not body:
            break
    assert_same(bytes(body))


def test_requests_of_real_instrumentations_are_read_as_the_library_reads_them() -> None:
    bodies = sorted(shared("otlp").rglob("*.pb")) + sorted(shared("otlp").rglob("*.bin"))
    for path in bodies:
        assert_same(path.read_bytes())


def test_most_spans_are_usual() -> None:
    """What the bench sends is read by the compiled part alone; else this would compare the library with itself."""
    (one,) = Load().requests(10)
    assert compiled.read_spans is not None
    groups = compiled.read_spans(one.body, 1000, 1000)
    assert groups is not None
    spans = [span for _, _, scopes in groups for _, _, spans in scopes for span in spans]
    assert len(spans) == 100
    assert all(type(span) is tuple for span in spans)


def test_short_texts_are_one_object_and_long_ones_are_not_kept() -> None:
    assert compiled.read_spans is not None
    (one,) = Load().requests(10)
    first, second = (compiled.read_spans(one.body, 1000, 1000)[0][2][0][2] for _ in range(2))  # type: ignore[index]
    for ours, theirs in zip(first, second, strict=True):
        same = [a is b for a, b in zip(ours[7], theirs[7], strict=True)]
        assert sum(same) >= len(same) - 2  # few share a place in the table
        assert ours[7]["input.value"] is not theirs[7]["input.value"]


def test_a_body_of_very_many_parts_is_left_to_the_library() -> None:
    assert compiled.read_spans is not None
    assert compiled.read_spans(b"\x0a\x00" * 50, 1000, 50) is not None
    assert compiled.read_spans(b"\x0a\x00" * 51, 1000, 50) is None


def test_no_more_spans_are_taken_than_a_request_may_have_whatever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhead._limits.OTLP_SPANS_MAX", 5)
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for number in range(16):
        span = scope.spans.add(trace_id=bytes([1]) * 16, span_id=bytes([number + 1]) * 8)
        if number % 2:
            span.events.add(name="odd")
    received = read_traces(message.SerializeToString())
    assert (len(received.spans), received.rejected) == (5, 11)
