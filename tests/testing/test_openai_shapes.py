"""The scripted provider as OpenAI, asked by the real openai client: chat with reasoning, Azure, responses, embeddings."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest

from playhead.testing import Embeddings, Failure, Refusal, ScriptedProvider, Text, ToolCall, ToolCalls, Usage
from playhead.testing.script import Answer, Loose

CHAT: dict[str, Any] = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello?"}]}
ASK: dict[str, Any] = {"model": "gpt-5", "input": "Hello?"}
USAGE = Usage(input=100, output=50, cached=40, reasoning=20)
TOOLS = ToolCalls(
    (ToolCall("read_file", {"path": "ä/b.txt", "lines": [1, 2]}), ToolCall("run_tests")),
    text="Let me look, grüß dich.",
    reasoning="The user wants two things done at once. 🎈",
    usage=USAGE,
)


def client_of(provider: ScriptedProvider, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url, api_key="none", timeout=20, **{"max_retries": 0, **more})


def summary(response: Any) -> dict[str, Any]:
    """Return what a response says, in few words."""
    calls = [item for item in response.output if item.type == "function_call"]
    thoughts = [item for item in response.output if item.type == "reasoning"]
    return {
        "text": response.output_text,
        "calls": [(call.call_id, call.name, json.loads(call.arguments)) for call in calls],
        "reasoning": [part.text for item in thoughts for part in item.summary],
        "usage": response.usage.to_dict(),
        "status": response.status,
    }


EXPECTED = {
    "text": TOOLS.text,
    "calls": [("call_1_0", "read_file", {"path": "ä/b.txt", "lines": [1, 2]}), ("call_1_1", "run_tests", {})],
    "reasoning": [TOOLS.reasoning],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 0},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 150,
    },
    "status": "completed",
}


def test_a_response_has_reasoning_text_tool_calls_and_usage() -> None:
    with ScriptedProvider([TOOLS]) as provider, client_of(provider) as client:
        assert summary(client.responses.create(**ASK)) == EXPECTED


def test_a_streamed_response_is_assembled_to_the_same_by_the_client() -> None:
    with (
        ScriptedProvider([TOOLS]) as provider,
        client_of(provider) as client,
        client.responses.stream(**ASK) as stream,
    ):
        events = [event.type for event in stream]
        final = stream.get_final_response()
    assert summary(final) == EXPECTED
    assert events[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert events[-1] == "response.completed"
    assert {"response.reasoning_summary_text.delta", "response.output_text.delta"} < set(events)
    assert events.count("response.function_call_arguments.done") == 2


def test_the_events_of_a_response_are_numbered_and_their_deltas_add_up() -> None:
    with ScriptedProvider([TOOLS]) as provider, client_of(provider) as client:
        events: list[Any] = list(client.responses.create(**ASK, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == TOOLS.text
    arguments = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert len(arguments) > 2
    assert events[0].response.output == []
    assert summary(events[-1].response) == EXPECTED


def test_an_asynchronous_client_gets_the_same_responses() -> None:
    async def ask(provider: ScriptedProvider) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=provider.base_url, api_key="none", max_retries=0) as client:
            whole = await client.responses.create(**ASK)
            async with client.responses.stream(**ASK) as stream:
                return [whole, await stream.get_final_response()]

    with ScriptedProvider([TOOLS], repeat=True) as provider:
        whole, streamed = asyncio.run(ask(provider))
    assert summary(whole) == EXPECTED
    assert summary(streamed)["calls"] == [(f"call_2_{n}", *call[1:]) for n, call in enumerate(EXPECTED["calls"])]


def test_encrypted_reasoning_is_sent_only_where_it_was_asked_for() -> None:
    with ScriptedProvider([Text("a", reasoning="b")], repeat=True) as provider, client_of(provider) as client:
        plain = client.responses.create(**ASK)
        sealed = client.responses.create(**ASK, include=["reasoning.encrypted_content"])
    assert plain.output[0].to_dict().get("encrypted_content") is None
    assert sealed.output[0].to_dict()["encrypted_content"]


@pytest.mark.parametrize(
    ("finish", "chat", "status", "reason"),
    [
        (None, "stop", "completed", None),
        ("length", "length", "incomplete", "max_output_tokens"),
        ("filter", "content_filter", "incomplete", "content_filter"),
    ],
)
def test_finish_reasons_are_spelled_as_each_api_does(
    finish: str | None, chat: str, status: str, reason: str | None
) -> None:
    with ScriptedProvider([Text("abc", finish=finish)], repeat=True) as provider, client_of(provider) as client:
        assert client.chat.completions.create(**CHAT).choices[0].finish_reason == chat
        response = client.responses.create(**ASK)
        last: Any = list(client.responses.create(**ASK, stream=True))[-1]
    assert response.status == status
    assert (response.incomplete_details.reason if response.incomplete_details else None) == reason
    assert last.type == f"response.{status}"


def test_a_refusal_is_no_text() -> None:
    with ScriptedProvider([Refusal("I will not.")], repeat=True) as provider, client_of(provider) as client:
        message = client.chat.completions.create(**CHAT).choices[0].message
        pieces = [chunk.choices[0].delta.refusal for chunk in client.chat.completions.create(**CHAT, stream=True)]
        part: Any = client.responses.create(**ASK).output[0]
        with client.responses.stream(**ASK) as stream:
            streamed: Any = stream.get_final_response().output[0]
    assert (message.content, message.refusal) == (None, "I will not.")
    assert "".join(piece or "" for piece in pieces) == "I will not."
    assert part.content[0].refusal == streamed.content[0].refusal == "I will not."


def test_chat_reasoning_comes_as_compatible_servers_send_it() -> None:
    with ScriptedProvider([TOOLS], repeat=True) as provider, client_of(provider) as client:
        whole: Any = client.chat.completions.create(**CHAT)
        options: Any = {"include_usage": True}
        chunks: list[Any] = list(client.chat.completions.create(**CHAT, stream=True, stream_options=options))
    assert whole.choices[0].message.reasoning_content == TOOLS.reasoning
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == TOOLS.reasoning
    assert whole.usage == chunks[-1].usage
    assert whole.usage.prompt_tokens_details.cached_tokens == 40
    assert whole.usage.completion_tokens_details.reasoning_tokens == 20
    assert whole.usage.completion_tokens == 50


def test_azure_paths_are_served_and_open_a_stream_without_choices() -> None:
    with (
        ScriptedProvider(["Hello."], repeat=True) as provider,
        openai.AzureOpenAI(azure_endpoint=provider.root_url, api_key="x", api_version="2024-10-21", max_retries=0) as c,
    ):
        assert c.chat.completions.create(**CHAT).choices[0].message.content == "Hello."
        first, *rest = c.chat.completions.create(**CHAT, stream=True)
        path = provider.requests[0].path
    assert path == "/openai/deployments/gpt-5/chat/completions?api-version=2024-10-21"
    assert first.choices == []
    assert "".join(chunk.choices[0].delta.content or "" for chunk in rest) == "Hello."


def test_vectors_depend_on_the_text_and_on_nothing_else() -> None:
    with ScriptedProvider([Embeddings(dimensions=40)], repeat=True) as provider, client_of(provider) as client:
        base64 = client.embeddings.create(model="e", input=["one", "two", "one"])
        floats = client.embeddings.create(model="e", input=["one", "two", "one"], encoding_format="float")
        short = client.embeddings.create(model="e", input="one", dimensions=3)
    one, two, again = [item.embedding for item in base64.data]
    assert one == again != two
    assert len(one) == 40
    assert [item.embedding for item in floats.data] == [one, two, again]
    assert short.data[0].embedding == one[:3]
    assert base64.usage.total_tokens == 3


def test_given_vectors_are_sent_as_they_are() -> None:
    answer = Embeddings(((0.5, -1.0),), usage=Usage(input=7))
    with ScriptedProvider([answer]) as provider, client_of(provider) as client:
        found = client.embeddings.create(model="e", input="one")
    assert (found.data[0].embedding, found.usage.prompt_tokens) == ([0.5, -1.0], 7)


@pytest.mark.parametrize("answer", ["text", Embeddings()])
def test_an_answer_that_does_not_fit_the_api_is_an_error_that_says_so(answer: Loose) -> None:
    with ScriptedProvider([answer]) as provider, client_of(provider) as client:
        ask: Any = client.embeddings.create if isinstance(answer, str) else client.responses.create
        with pytest.raises(openai.InternalServerError, match=r"the script says .* but the request asks for OpenAI"):
            ask(**ASK)


@pytest.mark.parametrize(
    "answer", [Failure(429, "slow down", retry_after_ms=1), Failure(500), Failure(429, retry_after=0.01)]
)
def test_the_client_retries_after_a_failure(answer: Answer) -> None:
    with ScriptedProvider([answer, "Hello."]) as provider, client_of(provider, max_retries=1) as client:
        assert client.responses.create(**ASK).output_text == "Hello."
        assert [exchange.status for exchange in provider.exchanges] == [getattr(answer, "status", None), 200]


def test_a_rate_limit_has_the_code_of_openai() -> None:
    with (
        ScriptedProvider([429]) as provider,
        client_of(provider) as client,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        client.responses.create(**ASK)
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.request_id == "req_scripted_1"
