"""The scripted provider as Anthropic: the events on the wire, and what the real client makes of them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import urllib.request
from typing import Any

import pytest

from playhead.testing import Failure, Refusal, ScriptedProvider, Text, ToolCall, ToolCalls, Usage

ASK: dict[str, Any] = {"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello?"}]}
TOOLS = ToolCalls(
    (ToolCall("read_file", {"path": "ä/b.txt", "lines": [1, 2]}), ToolCall("run_tests")),
    text="Let me look, grüß dich.",
    reasoning="The user wants two things done at once. 🎈",
    usage=Usage(input=100, output=50, cached=40, reasoning=20),
)
CONTENT = [
    ("thinking", TOOLS.reasoning),
    ("text", TOOLS.text),
    ("tool_use", ("toolu_1_0", "read_file", {"path": "ä/b.txt", "lines": [1, 2]})),
    ("tool_use", ("toolu_1_1", "run_tests", {})),
]
needs_sdk = pytest.mark.skipif(importlib.util.find_spec("anthropic") is None, reason="anthropic is not installed")


def post(provider: ScriptedProvider, request: dict[str, Any]) -> bytes:
    asked = urllib.request.Request(f"{provider.anthropic_url}/v1/messages", json.dumps(request).encode())
    with urllib.request.urlopen(asked, timeout=20) as answered:
        body: bytes = answered.read()
    return body


def events_of(body: bytes) -> list[dict[str, Any]]:
    """Read server-sent events, and check that each is named by its type."""
    out = []
    for block in body.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        out.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {out[-1]['type']}"
    return out


def said(message: Any) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for block in message.content:
        match block.type:
            case "thinking":
                assert block.signature
                out.append(("thinking", block.thinking))
            case "text":
                out.append(("text", block.text))
            case _:
                out.append((block.type, (block.id, block.name, block.input)))
    return out


def client_of(provider: ScriptedProvider, **more: Any) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url=provider.anthropic_url, api_key="none", **{"max_retries": 0, **more})


def test_the_events_of_a_stream_come_in_the_order_of_the_api() -> None:
    with ScriptedProvider([ToolCalls((ToolCall("t", {"a": 1}),), text="x", reasoning="y")]) as provider:
        events = events_of(post(provider, ASK | {"stream": True}))
    order = [event["delta"]["type"] if event["type"] == "content_block_delta" else event["type"] for event in events]
    assert order == [
        "message_start",
        *("content_block_start", "ping", "thinking_delta", "signature_delta", "content_block_stop"),
        *("content_block_start", "text_delta", "content_block_stop"),
        *("content_block_start", "input_json_delta", "input_json_delta", "content_block_stop"),
        *("message_delta", "message_stop"),
    ]
    assert [event["index"] for event in events if event["type"] == "content_block_start"] == [0, 1, 2]
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_a_whole_message_counts_cached_tokens_apart() -> None:
    with ScriptedProvider([TOOLS]) as provider:
        message = json.loads(post(provider, ASK))
    assert message["usage"] == {
        "input_tokens": 60,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 40,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 50,
        "service_tier": "standard",
        "output_tokens_details": {"thinking_tokens": 20},
    }
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use", "tool_use"]


@needs_sdk
def test_the_client_reads_a_whole_message() -> None:
    with ScriptedProvider([TOOLS]) as provider, client_of(provider) as client:
        message = client.messages.create(**ASK)
    assert said(message) == CONTENT
    assert message.stop_reason == "tool_use"


@needs_sdk
def test_the_client_assembles_a_stream_to_the_same_message() -> None:
    with ScriptedProvider([TOOLS], repeat=True) as provider, client_of(provider) as client:
        whole = client.messages.create(**ASK)
        with client.messages.stream(**ASK) as stream:
            streamed = stream.get_final_message()
        raw = [event.type for event in client.messages.create(**ASK, stream=True)]
    assert [(kind, value[1:] if kind == "tool_use" else value) for kind, value in said(streamed)] == [
        (kind, value[1:] if kind == "tool_use" else value) for kind, value in CONTENT
    ]
    assert streamed.usage == whole.usage
    assert streamed.stop_reason == whole.stop_reason
    assert raw[0] == "message_start"
    assert raw[-1] == "message_stop"


@needs_sdk
def test_an_asynchronous_client_gets_the_same() -> None:
    import anthropic

    async def ask(provider: ScriptedProvider) -> list[Any]:
        async with anthropic.AsyncAnthropic(base_url=provider.anthropic_url, api_key="none") as client:
            whole = await client.messages.create(**ASK)
            async with client.messages.stream(**ASK) as stream:
                return [whole, await stream.get_final_message()]

    with ScriptedProvider([Text("Grüß dich.", reasoning="hm", usage=Usage(9, 8))], repeat=True) as provider:
        whole, streamed = asyncio.run(ask(provider))
    assert said(whole) == said(streamed) == [("thinking", "hm"), ("text", "Grüß dich.")]
    assert whole.usage == streamed.usage


@needs_sdk
def test_failures_and_refusals_have_the_form_of_anthropic() -> None:
    import anthropic

    script = [
        Failure(429, "slow down", retry_after=0.01),
        Refusal("No."),
        529,
        Refusal("No."),
        Text("x", finish="length"),
    ]
    with ScriptedProvider(script) as provider, client_of(provider, max_retries=1) as client:
        refused = client.messages.create(**ASK)
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            client.with_options(max_retries=0).messages.create(**ASK)
        with client.messages.stream(**ASK) as stream:
            streamed = stream.get_final_message()
        assert client.messages.create(**ASK).stop_reason == "max_tokens"
        statuses = [exchange.status for exchange in provider.exchanges]
    assert refused.stop_reason == streamed.stop_reason == "refusal"
    assert refused.stop_details.explanation == streamed.stop_details.explanation == "No."
    assert statuses == [429, 200, 529, 200, 200]
