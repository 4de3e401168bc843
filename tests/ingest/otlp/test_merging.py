"""A call of which two instrumentations tell counts once."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from tests.ingest.otlp.bodies import OTHER, SPAN, TRACE, sample, span

from playhead.ingest.otlp.facts import facts
from playhead.ingest.otlp.merging import Seen, choose, same_call

THIRD = "aaaaaaaaaaaaaaaa"
MESSAGES = '[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]'


def call(**fields: Any) -> Seen:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **fields.pop("attributes", {})}
    one = span(attributes=attributes, **fields)
    return Seen(one, facts(one))


def rich(**fields: Any) -> Seen:
    return call(attributes={"gen_ai.input.messages": MESSAGES}, **fields)


def test_an_sdk_that_tells_of_its_calls_itself_and_what_is_around_it_count_once() -> None:
    seen = [Seen(one, found) for one, found in sample("openinference_anthropic")]
    same = choose(seen)
    by_scope = {(one.span.trace, one.span.span): one.span.emitter.scope["name"] for one in seen}
    assert len(same) == 3, "also where the two are in different traces: the id of the answer is the same"
    assert {by_scope[one] for one in same} == {"com.anthropic.sdk.python"}
    assert {by_scope[one] for one in same.values()} == {"openinference.instrumentation.anthropic"}


def test_the_two_halves_of_a_stream_of_logfire_count_once() -> None:
    seen = [Seen(one, found) for one, found in sample("logfire_openai")]
    same = choose(seen)
    names = {(one.span.trace, one.span.span): one.span.name for one in seen}
    assert [(names[one], names[to]) for one, to in same.items()] == [
        (
            "Chat Completion with {request_data[model]!r}",
            "streaming response from {request_data[model]!r} took {duration:.2f}s",
        )
    ]


def test_calls_that_are_different_stay_apart() -> None:
    for name in ("genai_openai", "traceloop_langchain", "openinference_openai", "pydantic_ai", "traceloop_openai"):
        assert choose([Seen(one, found) for one, found in sample(name)]) == {}


def test_one_call_inside_of_another_is_the_same_where_model_and_time_agree() -> None:
    outer, inner = rich(end_ns=3000), call(span=OTHER, parent=SPAN, start_ns=1500)
    assert same_call(outer, inner)
    assert same_call(inner, outer)
    assert not same_call(outer, call(span=OTHER, parent=SPAN, attributes={"gen_ai.request.model": "other"}))
    assert not same_call(outer, call(span=OTHER, parent=SPAN, start_ns=9000, end_ns=9500))
    assert not same_call(outer, call(span=OTHER, parent=THIRD))
    assert not same_call(outer, inner, frozenset({OTHER}))
    assert not same_call(outer, outer)
    assert choose([outer, inner]) == {(TRACE, OTHER): (TRACE, SPAN)}
    assert choose([call(end_ns=3000), rich(span=OTHER, parent=SPAN, start_ns=1500)]) == {(TRACE, SPAN): (TRACE, OTHER)}


def test_a_span_around_several_calls_is_none_of_them() -> None:
    outer, first, second = (
        rich(end_ns=9000),
        call(span=OTHER, parent=SPAN),
        call(span=THIRD, parent=SPAN, start_ns=3000),
    )
    assert choose([outer, first, second]) == {}
    tool = span(span=THIRD, parent=SPAN, attributes={"gen_ai.operation.name": "execute_tool"})
    assert choose([outer, first, Seen(tool, facts(tool))]) == {}


def test_other_ids_of_answers_are_other_calls() -> None:
    outer = call(attributes={"gen_ai.response.id": "a"}, end_ns=3000)
    assert not same_call(outer, call(span=OTHER, parent=SPAN, attributes={"gen_ai.response.id": "b"}))
    assert same_call(outer, call(span=OTHER, trace="ab" * 16, attributes={"gen_ai.response.id": "a"}))


def test_the_order_in_which_they_came_makes_no_difference() -> None:
    seen = [
        call(attributes={"gen_ai.response.id": "a"}),
        rich(span=OTHER, parent=SPAN),
        call(span=THIRD, attributes={"gen_ai.response.id": "a"}),
    ]
    assert len({tuple(sorted(choose(order).items())) for order in permutations(seen)}) == 1
