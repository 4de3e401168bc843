"""Which run a span belongs to."""

from __future__ import annotations

import pytest
from tests.ingest.otlp.bodies import OTHER, TRACE, sample, span

from playhead.ingest.otlp.conventions import SESSIONS
from playhead.ingest.otlp.grouping import Group, group_of, groups, of_span

SDK = {"attributes": {"service.instance.id": "i", "telemetry.sdk.name": "opentelemetry"}}
NO_SDK = {"attributes": {"service.instance.id": "i"}}


def test_the_first_rule_that_says_something_counts() -> None:
    resource = {"attributes": {"playhead.run.id": "of-resource", "session.id": "s", "service.instance.id": "i"}}
    assert group_of(span(attributes={"playhead.run.id": "r", "session.id": "s"}, resource=resource)) == ("run_id", "r")
    assert group_of(span(attributes={"session.id": "s"}, resource=resource)) == ("run_id", "of-resource")
    assert group_of(span(attributes={"session.id": "s"}, resource=NO_SDK)) == ("session", "s")
    assert group_of(span(resource={"attributes": {"session.id": "t", "service.instance.id": "i"}})) == ("session", "t")
    assert group_of(span(resource=NO_SDK)) == ("instance", "i")
    assert group_of(span(resource=SDK)) == ("trace", TRACE)
    assert group_of(span(attributes={"session.id": "", "playhead.run.id": None})) == ("trace", TRACE)
    assert group_of(span(attributes={"session.id": 17})) == ("session", "17")


@pytest.mark.parametrize("name", SESSIONS)
def test_every_convention_names_its_sessions(name: str) -> None:
    assert group_of(span(attributes={name: "s"})) == ("session", "s")


def test_an_instance_that_an_sdk_made_up_is_no_run() -> None:
    assert {group_of(one).rule for one, _ in sample("genai_openai")} == {"trace"}


def test_a_trace_stays_whole() -> None:
    root, inner, later = (
        span(resource=NO_SDK),
        span(span=OTHER, attributes={"session.id": "s"}),
        span(start_ns=9, attributes={"session.id": "t"}),
    )
    named = span(attributes={"playhead.run.id": "mine"})
    other = span(trace="ab" * 16)
    found = groups([root, inner, later, other])
    assert found == {TRACE: Group("session", "t"), "ab" * 16: Group("trace", "ab" * 16)}
    assert groups([later, other, inner, root]) == found
    assert of_span(root, found) == ("session", "t")
    assert of_span(inner, found) == ("session", "s")
    assert of_span(named, found) == ("run_id", "mine")
    assert of_span(other, {}) == ("trace", "ab" * 16)


def test_pydantic_ai_has_its_conversation() -> None:
    spans = [one for one, _ in sample("pydantic_ai")]
    (group,) = groups(spans).values()
    assert group == ("session", "01a1dcf0-0a6b-71cf-933b-39dc63ec5c4a")
