"""State, for each request that a real instrumentation sent, exactly what must come out."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from tests.ingest.otlp.bodies import belongs, sample
from tests.shared_data import shared

from playhead.event.plain import restore
from playhead.event.plainer import plain
from playhead.ingest.otlp.decoding import read_logs, read_traces
from playhead.ingest.otlp.facts import facts
from playhead.ingest.otlp.spans import LogRecord, Span
from playhead.views.answers import read
from playhead.views.prompts import last_of

DONE = "It is 21°C in Zürich 🌤 — done."
ASKED = "Weather in Zürich?"
WEATHER = [("get_weather", {"city": "Zürich"})]
NONE: list[Any] = []


def told(found: Any) -> dict[str, Any]:
    """Say in short what became of a span."""
    asked, answered = found.asked, found.answered
    if found.opens == "tool.called":
        return {"tool": asked["name"], "input": asked.get("input"), "output": answered.get("output")}
    if found.opens == "step.started":
        return {"step": asked["name"], "agent": found.agent}
    request, response = asked["request"], answered.get("response", {})
    choices = response.get("choices") or [{}]
    message = choices[0].get("message") or {}
    calls = [
        (one["function"]["name"], json.loads(one["function"]["arguments"])) for one in message.get("tool_calls") or []
    ]
    usage = answered.get("usage", {})
    out = {
        "model": (asked["provider"], asked["model"], response.get("model")),
        "tokens": (usage.get("input"), usage.get("output")),
        "roles": [one["role"] for one in request.get("messages", [])],
        "last": last_of(request) or None,
        "said": message.get("content") or None,
        "calls": calls,
        "finish": answered.get("finish"),
        "tools": [one["function"]["name"] for one in request.get("tools", [])],
    }
    if asked["operation"] == "embeddings":
        out = {
            "model": out["model"],
            "tokens": out["tokens"],
            "input": request.get("input"),
            "vectors": len(response.get("data", [])),
        }
    return out


def chat(
    *roles: str,
    last: str | None = ASKED,
    said: str | None = DONE,
    calls: Any = NONE,
    finish: str | None = "stop",
    tokens: Any = (11, 7),
    tools: Any = NONE,
    provider: str = "openai",
    answered: str = "fake-2026-01-01",
) -> dict[str, Any]:
    return {
        "model": (provider, "fake", answered), "tokens": tokens, "roles": list(roles), "last": last, "said": said,
        "calls": calls, "finish": finish, "tools": tools,
    }  # fmt: skip


def embeddings(input: Any, vectors: int = 0) -> dict[str, Any]:
    return {"model": ("openai", "e", "e"), "tokens": (2, None), "input": input, "vectors": vectors}


UNKNOWN = (None, None)  # a stream that was asked without usage tells of no tokens
TOOLS = ["get_weather"]
LOOP = ("user", "assistant", "tool")
USED = {"tool": "get_weather", "input": {"city": "Zürich"}, "output": "21C"}


def step(name: str, agent: str | None = None) -> dict[str, Any]:
    return {"step": name, "agent": agent}


EXPECTED: dict[str, list[dict[str, Any]]] = {
    "genai_agents": [USED, step("invoke_agent a", "a"), step("invoke_workflow Agent workflow")],
    "genai_openai": [
        chat("user", said=None, calls=WEATHER, finish="tool_calls", tools=TOOLS),
        chat(*LOOP, last="21C", tools=TOOLS),
        chat("user", tokens=UNKNOWN),
        chat("user", last="hi", answered="fake"),
        embeddings(None),
    ],
    "logfire_openai": [
        chat("user", said=None, calls=WEATHER, finish="tool_calls", tools=TOOLS),
        chat(*LOOP, last="21C", tools=TOOLS),
        chat("user", said=None, finish=None, tokens=UNKNOWN, answered="fake"),
        chat("user", tokens=UNKNOWN, answered="fake"),
        chat("user", last="hi", finish=None, answered="fake"),
        chat(
            "user",
            said="Let me check.",
            calls=WEATHER,
            finish="tool_use",
            tools=TOOLS,
            provider="anthropic",
            answered="fake",
        ),
        chat(*LOOP, last="21C", finish="end_turn", tools=TOOLS, provider="anthropic", answered="fake"),
    ],
    "old_openai_v2": [
        chat("user", said=None, calls=WEATHER, finish="tool_calls"),
        chat(*LOOP, last="21C"),
        chat("user", tokens=UNKNOWN),
    ],
    "old_traceloop_openai": [embeddings(["a", "b"])],
    "openai_v2": [
        chat("user", said=None, calls=WEATHER, finish="tool_calls"),
        chat(*LOOP, last="21C"),
        chat("user", tokens=UNKNOWN),
    ],
    "openinference_anthropic": [
        chat(last=None, said=None, finish="tool_use", provider="anthropic", answered="fake"),
        chat(last=None, said=None, finish="end_turn", provider="anthropic", answered="fake"),
        chat(last=None, said=None, finish="end_turn", provider="anthropic", answered="fake"),
        chat(
            "user",
            said="Let me check.",
            calls=WEATHER,
            finish="tool_use",
            tools=TOOLS,
            provider="anthropic",
            answered="fake",
        ),
        chat(*LOOP, last="21C", finish="end_turn", tools=TOOLS, provider="anthropic", answered="fake"),
        chat("user", finish="end_turn", provider="anthropic", answered="fake"),
    ],
    "openinference_langchain": [
        chat("user", last="Weather?", said=None, calls=WEATHER, finish="tool_calls", tools=TOOLS),
        step("model"),
        {"tool": "get_weather", "input": "Zürich", "output": "21C"},
        step("tools"),
        chat(*LOOP, last="21C", tools=TOOLS),
        step("model"),
        step("LangGraph"),
    ],
    "openinference_openai": [
        chat("user", said=None, calls=WEATHER, finish="tool_calls", tools=TOOLS),
        chat(*LOOP, last="21C", tools=TOOLS),
        chat("user", tokens=UNKNOWN),
        chat("user", last="hi", finish=None, answered="fake"),
        embeddings(["a", "b"], 2),
    ],
    "pydantic_ai": [chat(*LOOP, last="21C", tools=TOOLS), step("invoke_agent a", "a")],
    "traceloop_langchain": [
        step("create_agent agent", "agent"),
        chat("user", last="Weather?", said=None, calls=WEATHER, finish="tool_calls", tools=TOOLS),
        step("execute_task model"),
        USED,
        step("execute_task tools"),
        chat(*LOOP, last="21C", tools=TOOLS),
        step("execute_task model"),
        step("LangGraph.workflow", "LangGraph"),
        step("invoke_agent LangGraph", "LangGraph"),
    ],
    "traceloop_openai": [
        chat("user", tokens=UNKNOWN),
        chat("user", last="hi", answered="fake"),
        embeddings(["a", "b"]),
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_all_that_a_sample_carries_comes_out(name: str) -> None:
    assert [told(found) for _, found in sample(name)] == EXPECTED[name]


def test_every_sample_is_looked_at() -> None:
    there = {path.name.rpartition("_")[0] for path in shared("otlp").glob("*.pb")}
    assert there == set(EXPECTED)


def _paths() -> list[str]:
    return [f"{name}_{kind}" for name in EXPECTED for kind in ("traces", "logs")]


@pytest.mark.parametrize("name", _paths())
def test_what_is_kept_of_a_sample_makes_the_same_again_after_it_was_written_down(name: str) -> None:
    path = shared("otlp") / f"{name}.pb"
    if not path.exists():
        return
    body = path.read_bytes()
    reader = read_logs if name.endswith("logs") else read_traces
    received = reader(body, "protobuf")
    for one in [*received.spans, *received.logs]:
        kept = restore(orjson.loads(orjson.dumps(plain(one.kept()))))
        again = (
            Span.of_kept(kept, one.span, one.parent, one.start_ns // 1000, one.end_ns // 1000, one.emitter)
            if isinstance(one, Span)
            else LogRecord.of_kept(kept, one.emitter)
        )
        assert again == one
        assert again.attributes == one.attributes


@pytest.mark.parametrize("name", ["genai_openai", "openai_v2", "old_openai_v2"])
def test_the_order_of_log_records_makes_no_difference(name: str) -> None:
    folder = shared("otlp")
    spans = read_traces((folder / f"{name}_traces.pb").read_bytes(), "protobuf").spans
    logs = read_logs((folder / f"{name}_logs.pb").read_bytes(), "protobuf").logs
    for one in spans:
        mine = [log for log in logs if belongs(log, one)]
        assert facts(one, mine) == facts(one, mine[::-1])


@pytest.mark.parametrize("name", ["genai_openai", "openai_v2"])
def test_messages_that_only_a_log_record_has_are_those_of_the_span(name: str) -> None:
    folder = shared("otlp")
    logs = read_logs((folder / f"{name}_logs.pb").read_bytes(), "protobuf").logs
    looked = 0
    for one, found in sample(name):
        mine = [log for log in logs if belongs(log, one)]
        if mine:
            bare = {key: value for key, value in one.attributes.items() if not key.endswith(".messages")}
            without = Span(trace=one.trace, span=one.span, attributes=bare, emitter=one.emitter)
            assert facts(without, mine).answered["response"] == found.answered["response"]
            assert facts(without, mine).asked["request"]["messages"] == found.asked["request"]["messages"]
            looked += 1
    assert looked


def test_views_read_what_came_as_they_read_what_was_recorded() -> None:
    (_, first), (_, second) = sample("genai_openai")[:2]
    assert str(read(first.answered["response"], 80).told) == 'calls get_weather(city="Zürich")'
    assert read(second.answered["response"], 80).told == f'"{DONE}"'
