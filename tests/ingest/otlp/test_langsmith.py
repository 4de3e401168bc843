"""What LangSmith sends over OpenTelemetry, and the runs of its own export."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.ingest.otlp.bodies import span

from playhead import _limits
from playhead.errors import BadImport
from playhead.ingest.otlp.facts import facts
from playhead.ingest.otlp.grouping import group_of
from playhead.ingest.otlp.langsmith import read_runs

ROOT, MODEL, TOOL = (f"01a1dcf0-4bd3-7730-9324-8167b79607{n:02x}" for n in range(3))
HUMAN = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "HumanMessage"],
    "kwargs": {"content": "Weather?", "type": "human"},
}
AI = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {
    "content": "", "type": "ai", "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}],
    "response_metadata": {"finish_reason": "tool_calls", "model_name": "gpt-x-1", "id": "chatcmpl-1"},
    "usage_metadata": {"input_tokens": 11, "output_tokens": 7, "input_token_details": {"cache_read": 2}},
}}  # fmt: skip
RUNS: list[dict[str, Any]] = [
    {"id": ROOT, "trace_id": ROOT, "parent_run_id": None, "name": "agent", "run_type": "chain", "inputs": {"input": "Weather?"},
     "outputs": {"output": "21"}, "start_time": "2026-05-01T10:00:00.123456", "end_time": "2026-05-01T10:00:02+00:00",
     "extra": {"metadata": {"session_id": "chat-7"}}, "session_id": "project-1", "total_tokens": 18, "prompt_tokens": 11},
    {"id": MODEL, "trace_id": ROOT, "parent_run_id": ROOT, "name": "ChatOpenAI", "run_type": "llm", "inputs": {"messages": [[HUMAN]]},
     "outputs": {"generations": [[{"text": "", "message": AI}]], "llm_output": None}, "start_time": "2026-05-01T10:00:00.2Z",
     "end_time": "2026-05-01T10:00:01Z",
     "extra": {"invocation_params": {"model": "gpt-x", "temperature": 0, "tools": [{"type": "function", "function": {"name": "weather"}}]},
               "metadata": {"ls_provider": "openai", "ls_model_name": "gpt-x"}}},
    {"id": TOOL, "trace_id": ROOT, "parent_run_id": ROOT, "name": "weather", "run_type": "tool", "inputs": {"input": "{'city': 'Oslo'}"},
     "error": "ValueError('no such city')Traceback (most recent call last):\n  …", "start_time": 1777629601.5, "end_time": None},
]  # fmt: skip


def lines(runs: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(run).encode() for run in runs)


@pytest.mark.parametrize(
    "data", [json.dumps(RUNS).encode(), json.dumps({"runs": RUNS}).encode(), lines(RUNS), lines(RUNS) + b"\n"]
)
def test_an_export_of_runs_becomes_spans(data: bytes) -> None:
    root, model, tool = read_runs(data)
    assert root.trace == model.trace == tool.trace == ROOT.replace("-", "")
    assert (root.parent, model.parent, tool.parent) == (None, root.span, root.span)
    assert len({root.span, model.span, tool.span}) == 3
    assert (root.start_ns, root.end_ns) == (1_777_629_600_123_456_000, 1_777_629_602_000_000_000)
    assert tool.start_ns == tool.end_ns == 1_777_629_601_500_000_000
    assert root.attributes["langsmith.run"] == {"session_id": "project-1", "total_tokens": 18, "prompt_tokens": 11}


def test_what_its_runs_are() -> None:
    root, model, tool = map(facts, read_runs(json.dumps(RUNS).encode()))
    assert (root.opens, root.answered["output"]) == ("step.started", {"output": "21"})
    assert "usage" not in root.answered, "those of a chain are the sums of what is in it"
    assert model.asked["model"] == "gpt-x"
    assert model.asked["provider"] == "openai"
    assert model.asked["request"]["messages"] == [{"role": "user", "content": "Weather?"}]
    assert model.asked["request"]["tools"] == [{"type": "function", "function": {"name": "weather"}}]
    assert model.asked["request"]["temperature"] == 0
    message = model.answered["response"]["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city":"Oslo"}'}
    assert model.answered["usage"] == {"input": 11, "output": 7, "cached": 2}
    assert (model.response_id, model.answered["finish"], model.answered["model"]) == (
        "chatcmpl-1",
        "tool_calls",
        "gpt-x-1",
    )
    assert tool.asked == {"name": "weather", "input": {"city": "Oslo"}}
    assert tool.answered["error"] == {
        "type": "ValueError",
        "message": "no such city",
        "stacktrace": "Traceback (most recent call last):\n  …",
    }


def test_its_session_is_a_project_and_the_metadata_say_what_belongs_together() -> None:
    spans = read_runs(json.dumps(RUNS).encode())
    assert group_of(spans[0]) == ("session", "chat-7")
    assert group_of(spans[1]).rule == "trace"
    assert group_of(span(attributes={"langsmith.trace.session_id": "project-1"})).rule == "trace"


def test_spans_that_it_sends_itself() -> None:
    def sent(kind: str, operation: str, **attributes: Any) -> Any:
        return facts(
            span(
                attributes={
                    "langsmith.span.kind": kind,
                    "gen_ai.operation.name": operation,
                    "gen_ai.system": "langchain",
                    **attributes,
                }
            )
        )

    assert sent("retriever", "embeddings").opens == "step.started"
    assert sent("prompt", "chat").opens == "step.started"
    model = sent("llm", "chat", **{
        "gen_ai.request.model": "gpt-x", "langsmith.metadata.ls_provider": "openai", "gen_ai.usage.input_tokens": 5,
        "gen_ai.prompt": json.dumps({"messages": [{"role": "user", "content": "Hi"}], "model": "gpt-x"}),
        "gen_ai.completion": json.dumps({"id": "x", "choices": [{"message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}]}),
        "gen_ai.response.finish_reasons": "stop",
    })  # fmt: skip
    assert model.asked["request"] == {"model": "gpt-x", "messages": [{"role": "user", "content": "Hi"}]}
    assert (model.asked["provider"], model.answered["finish"], model.richness) == ("openai", "stop", 13)


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"5", b"[5]", b"[]", b"{}", b'{"id":"a"}', b"{}\n{}", b'{"id":"a","run_type":"llm"}\n{',
     json.dumps([{"id": "a", "run_type": "llm", "inputs": json.loads("[" * 70 + "]" * 70)}]).encode()],
)  # fmt: skip
def test_what_is_no_export_is_refused(data: bytes) -> None:
    with pytest.raises(BadImport):
        read_runs(data)


def test_a_run_with_odd_fields_is_still_a_span() -> None:
    odd = {
        "id": "not a uuid",
        "run_type": "llm",
        "name": 5,
        "start_time": "yesterday",
        "end_time": True,
        "extra": [1],
        "error": {"x": 1},
    }
    (one,) = read_runs(json.dumps(odd).encode())
    assert (len(one.trace), len(one.span), one.start_ns, one.name) == (32, 16, 0, "")
    assert one.attributes["langsmith.span.error"] == {"x": 1}
    assert facts(one).answered["status"] == "error"
    assert _limits.IMPORT_FILE_BYTES_MAX
