"""What is kept of a span makes the same span again, whatever it holds, also after it passed the gate."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ingest.otlp.bodies import OTHER, SPAN, TRACE, span

from playhead import _limits
from playhead.event.plain import restore
from playhead.event.plainer import plain
from playhead.ingest.otlp.spans import Emitter, LogRecord, Span

NAMES = st.text(max_size=8) | st.sampled_from(["$same", "$bytes", "a", ""])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=9)
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TEXTS_OF_JSON = st.builds(
    lambda value, how: json.dumps(value, **how),
    JSON_VALUES,
    st.sampled_from([{}, {"ensure_ascii": False}, {"separators": (",", ":")}, {"indent": 2}, {"indent": 1}, {"sort_keys": True},
                     {"separators": (" ,", ":  ")}]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS | TEXTS_OF_JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(NAMES, VALUES, max_size=5)
NANOSECONDS = st.integers(0, 2**64 - 1)
COUNTS = st.integers(0, 2**32 - 1)
COMMON: dict[str, Any] = {
    "attributes": ATTRIBUTES,
    "repeated": st.lists(st.tuples(NAMES, VALUES).map(list), max_size=2),
    "flags": COUNTS,
    "dropped_attributes": COUNTS,
    "unknown": st.dictionaries(NAMES, JSON_VALUES, max_size=2),
    "emitter": st.builds(Emitter, ATTRIBUTES, ATTRIBUTES),
}
EVENTS = st.fixed_dictionaries(
    {"name": NAMES, "time_unix_nano": NANOSECONDS.map(str)}, optional={"attributes": ATTRIBUTES}
)
LINKS = st.fixed_dictionaries({"trace": st.just(TRACE), "span": st.just(SPAN)}, optional={"attributes": ATTRIBUTES})
SPANS = st.builds(
    Span,
    trace=st.just(TRACE),
    span=st.just(SPAN),
    parent=st.none() | st.just(OTHER),
    name=NAMES,
    kind=st.integers(0, 9),
    start_ns=NANOSECONDS,
    end_ns=NANOSECONDS,
    status_code=st.integers(0, 3),
    status_message=NAMES,
    events=st.lists(EVENTS, max_size=2),
    links=st.lists(LINKS, max_size=2),
    trace_state=NAMES,
    dropped_events=COUNTS,
    dropped_links=COUNTS,
    unfit_parent=st.none() | NAMES,
    **COMMON,
)
LOGS = st.builds(
    LogRecord,
    trace=st.none() | st.just(TRACE),
    span=st.none() | st.just(SPAN),
    time_ns=NANOSECONDS,
    observed_ns=NANOSECONDS,
    severity_number=st.integers(0, 24),
    severity_text=NAMES,
    body=VALUES,
    event_name=NAMES,
    **COMMON,
)


def through_the_gate(value: Any) -> Any:
    return restore(orjson.loads(orjson.dumps(plain(value))))


def same(one: Any, other: Any) -> bool:
    return all(
        repr(getattr(one, name)) == repr(getattr(other, name))
        for name in one.__struct_fields__
        if name not in ("attributes", "texts", "items", "named", "known", "told", "rest", "emitter")
    ) and {name: repr(value) for name, value in one.attributes.items()} == {
        name: repr(value) for name, value in other.attributes.items()
    }


@settings(max_examples=300, deadline=None)
@given(SPANS)
def test_a_span_is_made_again_of_what_was_kept(given_span: Span) -> None:
    one = given_span
    for kept in (one.kept(), through_the_gate(one.kept())):
        again = Span.of_kept(kept, one.span, one.parent, one.start_ns // 1000, one.end_ns // 1000, one.emitter)
        assert again.digest() == one.digest()
        assert same(again, one)


@settings(max_examples=200, deadline=None)
@given(LOGS)
def test_a_log_record_is_made_again_of_what_was_kept(log: LogRecord) -> None:
    for kept in (log.kept(), through_the_gate(log.kept())):
        again = LogRecord.of_kept(kept, log.emitter)
        assert again.digest() == log.digest()
        assert same(again, log)


@settings(max_examples=100, deadline=None)
@given(st.builds(Emitter, ATTRIBUTES, ATTRIBUTES))
def test_an_emitter_is_made_again_of_what_was_stored(emitter: Emitter) -> None:
    again = Emitter.of_dict(through_the_gate(emitter.as_dict()))
    assert again == emitter
    assert hash(again) == hash(emitter)


def test_defaults_are_left_out() -> None:
    assert Span(trace=TRACE, span=SPAN, start_ns=5_000, end_ns=9_000).kept() == {"trace": TRACE}
    assert Span(trace=TRACE, span=SPAN, start_ns=5_001, end_ns=9_000).kept() == {"trace": TRACE, "ns": [1, 0]}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('{"a":[1,"ü"]}', "json:compact"),
        ('{"a": [1, "ü"]}', "json:spaced"),
        ('{"a": [1, "\\u00fc"]}', "json:spaced-ascii"),
        ('{"a":[1,"\\u00fc"]}', "json:compact-ascii"),
        ('{\n  "a": 1\n}', "json:indented"),
        ('[{"$ref": "#/a"}]', "json:spaced"),
    ],
)
def test_a_text_of_json_is_kept_as_a_value_where_a_form_gives_it_back(text: str, form: str) -> None:
    kept = span(attributes={"a": text}).kept()
    assert kept["json"]["a"] == [form, json.loads(text)]
    assert "attributes" not in kept


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', "{}x", '{"a" : 1}', "[1.0e2]", "[123456789012345678901234567890]", "{'a': 1}", '"text"', "5", "null", "",
     "[" * 31 + "]" * 31, '{"a":"\ud800"}'],
)  # fmt: skip
def test_any_other_text_stays_as_it_is(text: str) -> None:
    one = span(attributes={"a": text})
    assert one.kept()["attributes"] == {"a": text}
    assert "json" not in one.kept()


def test_text_at_the_limit_of_depth_passes_the_gate_whole_even_where_each_level_must_be_marked() -> None:
    value: Any = 1
    for _ in range(_limits.OTLP_JSON_DEPTH_MAX // 3):
        value = {"$a": value}
    one = span(attributes={"a": json.dumps(value), "b": value})
    kept = through_the_gate({"data": {"otlp": one.kept()}})["data"]["otlp"]
    assert "json" in kept
    assert Span.of_kept(kept, SPAN, None, 1, 2, one.emitter) == one


def test_the_digest_does_not_depend_on_the_order_of_attributes() -> None:
    assert span(attributes={"a": 1, "b": 2}).digest() == span(attributes={"b": 2, "a": 1}).digest()
    assert len(span().digest()) == 16
