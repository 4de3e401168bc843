"""Spans of Vercel's AI SDK, as its releases 3 to 6 write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.ingest.otlp.bodies import span

from playhead.ingest.otlp.facts import facts
from playhead.ingest.otlp.grouping import group_of

TOOL = json.dumps({"type": "function", "name": "weather", "description": "w", "inputSchema": {"type": "object"}})
MESSAGES = json.dumps([
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
    {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {"city": "Oslo"}}]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "output": {"type": "json", "value": {"t": 21}}}]},
])  # fmt: skip


def vercel(operation: str, **attributes: Any) -> Any:
    return span(
        operation, attributes={"operation.name": operation, "ai.operationId": operation, **attributes}, scope="ai"
    )


INNER: dict[str, Any] = {
    "ai.model.provider": "openai.responses", "ai.model.id": "gpt-x", "gen_ai.system": "openai.responses",
    "gen_ai.request.model": "gpt-x", "gen_ai.request.temperature": 0.2, "ai.prompt.messages": MESSAGES, "ai.prompt.tools": [TOOL],
    "ai.prompt.toolChoice": '{"type":"auto"}', "ai.response.finishReason": "stop", "ai.response.text": "It is 21.",
    "ai.response.id": "resp_1", "ai.response.model": "gpt-x-1", "ai.usage.inputTokens": 11, "ai.usage.outputTokens": 7,
    "ai.usage.cachedInputTokens": 3, "ai.usage.reasoningTokens": 2, "gen_ai.response.finish_reasons": ["stop"],
}  # fmt: skip


@pytest.mark.parametrize("operation", ["ai.generateText.doGenerate", "ai.streamText.doStream"])
def test_the_inner_span_is_the_call_of_the_model(operation: str) -> None:
    found = facts(vercel(operation, **INNER))
    assert found.opens == "model.invoked"
    assert {name: found.asked[name] for name in ("provider", "model")} == {"provider": "openai", "model": "gpt-x"}
    request = found.asked["request"]
    assert request["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}]},
        {"role": "tool", "content": '{"t":21}', "tool_call_id": "c1", "name": "weather"},
    ]  # fmt: skip
    assert request["tools"] == [
        {"type": "function", "function": {"name": "weather", "description": "w", "parameters": {"type": "object"}}}
    ]
    assert (request["temperature"], request["tool_choice"]) == (0.2, {"type": "auto"})
    assert found.answered["response"] == {
        "id": "resp_1", "model": "gpt-x-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "It is 21."}, "finish_reason": "stop"}],
    }  # fmt: skip
    assert found.answered["usage"] == {"input": 11, "output": 7, "cached": 3, "reasoning": 2}
    assert (found.response_id, found.richness) == ("resp_1", 15)


@pytest.mark.parametrize("given", [{"input": {"city": "Oslo"}}, {"args": '{"city":"Oslo"}'}])
def test_an_answer_that_asks_for_tools(given: dict[str, Any]) -> None:
    calls = json.dumps([{"toolCallType": "function", "toolCallId": "c1", "toolName": "weather", **given}])
    found = facts(
        vercel(
            "ai.generateText.doGenerate",
            **{"ai.model.id": "m", "ai.response.toolCalls": calls, "ai.response.finishReason": "tool-calls"},
        )
    )
    choice = found.answered["response"]["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city":"Oslo"}'}
    assert choice["finish_reason"] == found.answered["finish"] == "tool_calls"


def test_the_outer_span_is_a_step() -> None:
    outer = vercel(
        "ai.generateText",
        **{"ai.prompt": '{"prompt":"Weather?"}', "ai.response.text": "It is 21.", "ai.model.id": "gpt-x", "ai.usage.promptTokens": 11,
           "ai.telemetry.functionId": "weather-agent", "ai.telemetry.metadata.sessionId": "s-1"},
    )  # fmt: skip
    found = facts(outer)
    assert (found.opens, found.model_call, found.agent) == ("step.started", False, "weather-agent")
    assert found.asked["attributes"]["input"] == {"prompt": "Weather?"}
    assert found.answered["output"] == "It is 21."
    assert group_of(outer) == ("session", "s-1")


def test_a_tool() -> None:
    found = facts(
        vercel(
            "ai.toolCall",
            **{
                "ai.toolCall.name": "weather",
                "ai.toolCall.id": "c1",
                "ai.toolCall.args": '{"city":"Oslo"}',
                "ai.toolCall.result": '{"t":21}',
            },
        )
    )
    assert found.opens == "tool.called"
    assert found.asked == {"name": "weather", "input": {"city": "Oslo"}, "call": "c1"}
    assert found.answered["output"] == {"t": 21}


def test_embeddings() -> None:
    one = facts(
        vercel(
            "ai.embed.doEmbed",
            **{"ai.model.id": "e", "ai.values": ['"a"'], "ai.embeddings": ["[0.1,0.2]"], "ai.usage.tokens": 2},
        )
    )
    assert one.asked["request"] == {"model": "e", "input": ["a"]}
    assert one.answered["response"] == {"data": [{"index": 0, "embedding": [0.1, 0.2]}]}
    assert one.answered["usage"] == {"input": 2}


def test_the_names_of_older_releases() -> None:
    found = facts(
        vercel(
            "ai.generateObject.doGenerate",
            **{
                "ai.model.id": "m",
                "ai.result.object": '{"x":1}',
                "ai.finishReason": "stop",
                "ai.usage.promptTokens": 5,
                "ai.usage.completionTokens": 2,
            },
        )
    )
    choice = found.answered["response"]["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ('{"x":1}', "stop")
    assert found.answered["usage"] == {"input": 5, "output": 2}
