"""Bodies are read in both encodings alike; what is bad is rejected alone, and nothing raises anything but `BadBody`."""

from __future__ import annotations

import base64
import json
import math
import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.ingest.otlp.bodies import OTHER, SPAN, TRACE, attributes, message, request, value
from tests.shared_data import shared

from playhead import _limits
from playhead.errors import BadBody
from playhead.ingest.otlp.decoding import Media, read_logs, read_traces
from playhead.ingest.otlp.facts import facts
from playhead.ingest.otlp.spans import Span


def one(**fields: Any) -> Span:
    received = read_traces(request(message(**fields)), "json")
    assert received.problems == []
    return received.spans[0]


def rejected(*spans: Any) -> list[str]:
    received = read_traces(request(*spans), "json")
    assert received.rejected == len(received.problems)
    return received.problems


def in_protobuf(*spans: dict[str, Any], **resource: Any) -> ExportTraceServiceRequest:
    """Return a request in protobuf of spans in OTLP's JSON, whose ids may be of any length."""
    whole = ExportTraceServiceRequest()
    group = whole.resource_spans.add()
    for name, said in resource.items():
        group.resource.attributes.add(key=name).value.string_value = said
    scope = group.scope_spans.add()
    scope.scope.name = "s"
    for each in spans:
        made = scope.spans.add(
            trace_id=bytes.fromhex(each["traceId"]), span_id=bytes.fromhex(each["spanId"]), name=each["name"],
            parent_span_id=bytes.fromhex(each.get("parentSpanId", "")), start_time_unix_nano=1000, end_time_unix_nano=2000,
        )  # fmt: skip
        for pair in each.get("attributes", []):
            _set(made.attributes.add(key=pair["key"]).value, pair["value"])
    return whole


def _set(to: Any, said: dict[str, Any]) -> None:
    for kind, inner in said.items():
        if kind == "arrayValue":
            to.array_value.SetInParent()
            for item in inner["values"]:
                _set(to.array_value.values.add(), item)
        elif kind == "kvlistValue":
            to.kvlist_value.SetInParent()
            for pair in inner["values"]:
                _set(to.kvlist_value.values.add(key=pair["key"]).value, pair["value"])
        else:
            name = {"stringValue": "string_value", "boolValue": "bool_value", "intValue": "int_value",
                    "doubleValue": "double_value", "bytesValue": "bytes_value"}[kind]  # fmt: skip
            read = {"intValue": int, "doubleValue": float, "bytesValue": base64.b64decode}.get(kind, lambda same: same)
            setattr(to, name, read(inner))


VALUES = {
    "text": "Zürich", "empty": "", "yes": True, "no": False, "small": -5, "large": 2**63 - 1, "float": 1.5, "whole": 2.0,
    "nan": math.nan, "inf": -math.inf, "bytes": b"\x00\xff", "list": ["a", 1, [None]], "map": {"a": {"b": [1.0]}}, "none": None,
}  # fmt: skip


def test_a_span_is_the_same_in_both_encodings() -> None:
    spans = message(attributes=attributes(VALUES), parentSpanId=OTHER)
    by_json = read_traces(request(spans, host="h"), "json").spans[0]
    by_protobuf = read_traces(in_protobuf(spans, host="h").SerializeToString(), "protobuf").spans[0]
    assert by_json.digest() == by_protobuf.digest()
    assert repr(by_json.attributes) == repr(by_protobuf.attributes) == repr(VALUES)
    assert (by_json.trace, by_json.span, by_json.parent) == (TRACE, SPAN, OTHER)
    assert by_json.emitter == by_protobuf.emitter
    assert by_json.emitter.as_dict() == {"resource": {"attributes": {"host": "h"}}, "scope": {"name": "s"}}


def test_another_value_or_another_emitter_is_another_digest() -> None:
    said = [
        {"a": 1},
        {"a": 1.0},
        {"a": True},
        {"a": "1"},
        {"a": None},
        {"a": math.nan},
        {"a": math.inf},
        {"a": b"1"},
        {},
    ]
    digests = {one(attributes=attributes(each)).digest() for each in said}
    digests.add(read_traces(request(message(), host="other"), "json").spans[0].digest())
    assert len(digests) == len(said) + 1


def test_spans_of_one_resource_and_scope_share_their_emitter() -> None:
    body = json.loads(request(message(), message(spanId=OTHER), host="h"))
    body["resourceSpans"] *= 2
    emitters = [each.emitter for each in read_traces(json.dumps(body).encode(), "json").spans]
    assert len(emitters) == 4
    assert len({id(each) for each in emitters}) == 1


@pytest.mark.parametrize("media", ["protobuf", "json"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"resourceSpans":null}',
        b'{"resourceSpans":[{}]}',
        b'{"resourceSpans":[{"scopeSpans":[{"spans":null}]}]}',
    ],
)
def test_a_request_without_spans_is_fine(body: bytes, media: Media) -> None:
    if (media == "protobuf") is (body == b""):
        assert (read_traces(body, media).spans, read_logs(body, media).logs) == ([], [])


class TestJson:
    def test_ids_are_hex_in_either_case(self) -> None:
        assert one(traceId=TRACE.upper(), spanId=SPAN.upper()).trace == TRACE

    def test_integers_are_texts_numbers_or_two_halves(self) -> None:
        at = 1_794_708_245_528_037_440
        for said in (str(at), at, {"low": at & 0xFFFFFFFF, "high": at >> 32}):
            assert one(startTimeUnixNano=said).start_ns == at
        assert one(attributes=[{"key": "n", "value": {"intValue": 5}}]).attributes == {"n": 5}
        assert one(endTimeUnixNano="").end_ns == 0

    def test_enums_are_names_or_numbers(self) -> None:
        assert one(kind="SPAN_KIND_CLIENT", status={"code": "STATUS_CODE_ERROR"}).kind == one(kind=3).kind == 3
        assert one(status={"code": "STATUS_CODE_ERROR", "message": "no"}).status_code == 2

    def test_names_of_the_protobuf_are_read_too(self) -> None:
        snake = {"trace_id": TRACE, "span_id": SPAN, "parent_span_id": OTHER, "name": "x", "start_time_unix_nano": 7,
                 "attributes": [{"key": "a", "value": {"string_value": "b"}}]}  # fmt: skip
        body = json.dumps({"resource_spans": [{"scope_spans": [{"spans": [snake]}]}]}).encode()
        found = read_traces(body, "json").spans[0]
        assert (found.parent, found.start_ns, found.attributes) == (OTHER, 7, {"a": "b"})

    def test_floats_may_be_the_texts_that_stand_for_odd_ones(self) -> None:
        said = [{"key": name, "value": {"doubleValue": name}} for name in ("NaN", "Infinity", "-Infinity", "1e3")]
        assert repr(list(one(attributes=said).attributes.values())) == "[nan, inf, -inf, 1000.0]"

    def test_what_nobody_knows_is_kept(self) -> None:
        assert one(colour="red", status={"code": 1, "deep": [1]}).kept()["unknown"] == {
            "colour": "red",
            "status": {"deep": [1]},
        }

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (b'{"resourceSpans":[],"resourceSpans":[]}', "twice"),
            (b'{"a" :1,"b":{"c\\":":1,"c\\":":2}}', "twice"),
            (b'{"a":NaN}', "no JSON"),
            (b'{"a":Infinity}', "no JSON"),
            (b'{"a":1e999}', "no JSON"),
            (b'{"a":"\xff"}', "no JSON"),
            (b'{"a":"\\ud800"}', "no JSON"),
            (b"{} x", "no JSON"),
            (b"[" * 100_000, "no JSON"),
            (b'{"a":' * 1025 + b"1" + b"}" * 1025, "no JSON"),
            (b"[]", "no object"),
            (b'{"resourceSpans":{}}', "no list"),
            (b'{"resourceSpans":[1]}', "no object"),
            (b"\x0a\x00", "no JSON"),
        ],
    )
    def test_a_body_that_cannot_be_read_exactly_is_refused_whole(self, body: bytes, says: str) -> None:
        with pytest.raises(BadBody, match=says) as caught:
            read_traces(body, "json")
        assert caught.value.hint

    def test_a_key_that_only_looks_as_if_it_came_twice_is_none(self) -> None:
        tricky = {'a":1,"a': 1, "b\\": {"b\\": '"b\\":"b\\\\":'}, "c": 'x"  :', "d": "\\"}
        assert one(tricky=tricky).unknown == {"tricky": tricky}


class TestRejectedAlone:
    GOOD = message(spanId=OTHER)

    @pytest.mark.parametrize(
        "bad",
        [
            {"traceId": "abc"},
            {"traceId": "0" * 32},
            {"spanId": "0" * 16},
            {"spanId": base64.b64encode(bytes.fromhex(SPAN)).decode()},
            {"spanId": None},
            {"name": 5},
            {"attributes": {}},
            {"attributes": [5]},
            {"attributes": [{"key": "a", "value": {"colourValue": 1}}]},
            {"attributes": [{"key": "a", "value": {"intValue": "x"}}]},
            {"attributes": [{"key": "a", "value": {"intValue": str(2**63)}}]},
            {"attributes": [{"key": "a", "value": {"boolValue": "true"}}]},
            {"attributes": [{"key": "a", "value": {"bytesValue": "ä"}}]},
            {"attributes": [{"key": "a", "value": {"intValue": 1, "stringValue": ""}}]},
            {"attributes": [{"key": str(n), "value": {}} for n in range(_limits.OTLP_ATTRIBUTES_MAX + 1)]},
            {"events": [{}] * (_limits.OTLP_EVENTS_MAX + 1)},
            {"startTimeUnixNano": -1},
            {"startTimeUnixNano": 2**64},
            {"kind": "SPAN_KIND_NEW"},
            {"events": [{"name": 1}]},
            {"links": "x"},
            {"status": 5},
        ],
        ids=lambda bad: next(iter(bad)),
    )
    def test_in_json(self, bad: dict[str, Any]) -> None:
        received = read_traces(request(message(**bad), self.GOOD), "json")
        assert [each.span for each in received.spans] == [OTHER]
        assert (received.rejected, len(received.problems)) == (1, 1)

    def test_in_json_where_a_span_is_no_object(self) -> None:
        assert len(rejected(5, None, [])) == 3

    @pytest.mark.parametrize(("where", "bytes_"), [("spanId", 7), ("traceId", 15), ("spanId", 0)])
    def test_in_protobuf(self, where: str, bytes_: int) -> None:
        body = in_protobuf(message(**{where: "ab" * bytes_}), self.GOOD).SerializeToString()
        received = read_traces(body, "protobuf")
        assert [each.span for each in received.spans] == [OTHER]
        assert received.rejected == 1

    def test_a_text_that_is_no_unicode_in_protobuf(self) -> None:
        whole = in_protobuf(message(name="first"), message(name="b@d"), self.GOOD, host="h")
        whole.resource_spans[0].scope_spans[0].schema_url = "https://u"
        good = read_traces(whole.SerializeToString(), "protobuf")
        received = read_traces(whole.SerializeToString().replace(b"b@d", b"b\xffd"), "protobuf")
        assert [each.span for each in received.spans] == [SPAN, OTHER]
        assert received.rejected == 1
        assert received.spans[0].emitter == good.spans[0].emitter
        assert received.spans[0].digest() == good.spans[0].digest()

    def test_values_too_deep_within_each_other(self) -> None:
        deep: Any = "x"
        for _ in range(_limits.OTLP_DEPTH_MAX):
            deep = [deep]
        assert one(attributes=attributes({"a": deep})).attributes == {"a": deep}
        for too_deep in ([deep], {"a": deep}):
            received = read_traces(request(message(attributes=attributes({"a": too_deep})), self.GOOD), "json")
            assert (len(received.spans), received.rejected) == (1, 1)
        body = in_protobuf(message(attributes=attributes({"a": [deep]})), self.GOOD).SerializeToString()
        received = read_traces(body, "protobuf")
        assert ([each.span for each in received.spans], received.rejected) == ([OTHER], 1)

    def test_a_resource_that_cannot_be_read_takes_only_its_own_spans(self) -> None:
        body = json.loads(request(message()))
        body["resourceSpans"].append({"resource": {"attributes": 5}, "scopeSpans": [{"spans": [self.GOOD]}]})
        received = read_traces(json.dumps(body).encode(), "json")
        assert ([each.span for each in received.spans], received.rejected) == ([SPAN], 1)

    def test_only_the_first_reasons_are_named_and_all_are_counted(self) -> None:
        received = read_traces(request(*[5] * 100), "json")
        assert (received.rejected, len(received.problems)) == (100, _limits.OTLP_PROBLEMS_MAX)


class TestKeptWhereNothingIsLost:
    def test_a_span_that_is_its_own_parent_is_a_root_and_its_claim_is_kept(self) -> None:
        found = one(parentSpanId=SPAN.upper())
        assert (found.parent, found.kept()["unfit_parent"]) == (None, SPAN)
        by_protobuf = read_traces(in_protobuf(message(parentSpanId=SPAN)).SerializeToString(), "protobuf").spans[0]
        assert by_protobuf.digest() == found.digest()

    def test_a_parent_of_zeros_is_none(self) -> None:
        assert one(parentSpanId="0" * 16).parent is None
        assert one(parentSpanId="parent-abc").kept()["unfit_parent"] == "parent-abc"

    def test_an_end_before_the_start_and_a_missing_name(self) -> None:
        found = one(name=None, startTimeUnixNano="9000", endTimeUnixNano="1500")
        assert (found.name, found.start_ns, found.end_ns) == ("", 9000, 1500)

    def test_attributes_that_come_twice(self) -> None:
        twice = [{"key": "a", "value": value(n)} for n in (1, 2, 3)]
        found = one(attributes=twice)
        assert (found.attributes, found.repeated) == ({"a": 3}, [["a", 1], ["a", 2]])
        by_protobuf = read_traces(in_protobuf(message(attributes=twice)).SerializeToString(), "protobuf").spans[0]
        assert by_protobuf.digest() == found.digest()


def test_protobuf_is_not_needed_until_it_is_read() -> None:
    code = (
        "import sys; from playhead.ingest.otlp import decoding, facts, grouping, merging, langsmith;"
        "decoding.read_traces(b'{}', 'json'); print([m for m in sys.modules if m.startswith(('google', 'opentelemetry'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_parsing_cases_from_the_wild() -> None:
    for path in sorted(shared("vectors/json").glob("*.json")):
        body = path.read_bytes()
        for wrapped in (body, b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + body + b"]}]}]}"):
            for read in (read_traces, read_logs):
                try:
                    read(wrapped, "json")
                except BadBody:
                    continue
                assert not path.name.startswith("n_") or wrapped is not body, path.name


def _mutated(body: bytes, chance: random.Random) -> bytes:
    data = bytearray(body)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data) or 1)
        match chance.randint(0, 3):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[at : at + chance.randint(1, 20)]
            case 2:
                data[at:at] = data[: chance.randint(1, 30)]
            case _:
                data = data[: max(1, at)]
    return bytes(data)


@pytest.mark.parametrize("seed", range(6))
def test_no_damage_makes_it_raise_anything_else(seed: int) -> None:
    chance = random.Random(seed)
    for path in sorted(shared("otlp").glob("*.pb")):
        body = path.read_bytes()
        read = read_logs if "logs" in path.name else read_traces
        for _ in range(40):
            try:
                received = read(_mutated(body, chance), "protobuf")
            except BadBody:
                continue
            for each in received.spans:
                facts(each, received.logs)
                each.kept()
                each.digest()


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from([TRACE, SPAN, "5", "STATUS_CODE_OK", "AAAA"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["resourceSpans", "scopeSpans", "spans", "resource", "scope", "attributes", "key", "value", "traceId",
                         "spanId", "stringValue", "intValue", "arrayValue", "kvlistValue", "values", "status", "events", "body"]),
        inner, max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(ANY_JSON)
def test_no_json_makes_it_raise_anything_else(document: Any) -> None:
    bodies = [document, {"resourceSpans": [{"scopeSpans": [{"spans": [document]}]}]}]
    bodies.append(
        {"resourceSpans": [{"scopeSpans": [{"spans": [message(attributes=[{"key": "a", "value": document}])]}]}]}
    )
    for body in bodies:
        for read in (read_traces, read_logs):
            try:
                read(json.dumps(body).encode(), "json")
            except BadBody:
                pass


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["protobuf", "json"]))
def test_no_bytes_make_it_raise_anything_else(body: bytes, media: Media) -> None:
    for read in (read_traces, read_logs):
        try:
            read(body, media)
        except BadBody:
            pass


def test_log_records_are_read_in_json() -> None:
    log = {"timeUnixNano": "5", "severityNumber": "SEVERITY_NUMBER_ERROR2", "body": value({"a": 1}), "eventName": "e",
           "traceId": TRACE, "spanId": SPAN, "attributes": attributes({"x": "y"})}  # fmt: skip
    bad = {"traceId": "ab"}
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [log, bad, {"body": value("bare")}]}]}]}).encode()
    received = read_logs(body, "json")
    first, bare = received.logs
    assert (first.severity_number, first.body, first.event_name, first.span, first.time_ns) == (
        18,
        {"a": 1},
        "e",
        SPAN,
        5,
    )
    assert (bare.trace, bare.span, received.rejected) == (None, None, 1)
