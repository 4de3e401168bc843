"""The scripted provider as Google: the chunks on the wire, and what the real client makes of them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from playhead.testing import Failure, Refusal, ScriptedProvider, Text, ToolCall, ToolCalls, Usage

ASK: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hello?"}]}]}
TOOLS = ToolCalls(
    (ToolCall("read_file", {"path": "ä/b.txt", "lines": [1, 2]}, id="fc-1"), ToolCall("run_tests")),
    text="Let me look, grüß dich.",
    reasoning="The user wants two things done at once. 🎈",
    usage=Usage(input=100, output=50, cached=40, reasoning=20),
)
needs_sdk = pytest.mark.skipif(
    importlib.util.find_spec("google") is None or importlib.util.find_spec("google.genai") is None,
    reason="google-genai is not installed",
)


def post(provider: ScriptedProvider, method: str) -> bytes:
    asked = urllib.request.Request(f"{provider.google_url}/v1beta/models/gemini:{method}", json.dumps(ASK).encode())
    with urllib.request.urlopen(asked, timeout=20) as answered:
        body: bytes = answered.read()
    return body


def client_of(provider: ScriptedProvider) -> Any:
    from google import genai

    return genai.Client(api_key="none", http_options={"base_url": provider.google_url})


def said(*responses: Any) -> dict[str, Any]:
    """Return what one answer, or the chunks of one, say together."""
    parts = [part for response in responses for part in response.candidates[0].content.parts or []]
    usage = responses[-1].usage_metadata
    return {
        "text": "".join(part.text or "" for part in parts if not part.thought),
        "thought": "".join(part.text or "" for part in parts if part.thought),
        "calls": [(p.function_call.id, p.function_call.name, p.function_call.args) for p in parts if p.function_call],
        "signed": [bool(part.function_call) for part in parts if part.thought_signature],
        "finish": responses[-1].candidates[0].finish_reason.value,
        "usage": [usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count,
                  usage.cached_content_token_count, usage.total_token_count],
    }  # fmt: skip


EXPECTED = {
    "text": TOOLS.text,
    "thought": TOOLS.reasoning,
    "calls": [("fc-1", "read_file", {"path": "ä/b.txt", "lines": [1, 2]}), (None, "run_tests", {})],
    "signed": [True],
    "finish": "STOP",
    "usage": [100, 30, 20, 40, 150],
}


def test_a_stream_is_events_or_an_array_as_the_query_says() -> None:
    with ScriptedProvider([TOOLS], repeat=True) as provider:
        whole = json.loads(post(provider, "generateContent"))
        events = post(provider, "streamGenerateContent?alt=sse")
        array = post(provider, "streamGenerateContent")
        sent = provider.exchanges[-1].chunks
    assert events.endswith(b"\r\n\r\n")
    from_events = [json.loads(event.removeprefix(b"data: ")) for event in events.split(b"\r\n\r\n")[:-1]]
    from_array = json.loads(array)
    assert len(sent) > len(from_array) > 5
    assert [chunk | {"responseId": ""} for chunk in from_events] == [chunk | {"responseId": ""} for chunk in from_array]
    assert from_array[-1]["usageMetadata"] == whole["usageMetadata"]
    assert whole["modelVersion"] == "gemini"
    assert "thoughtSignature" in whole["candidates"][0]["content"]["parts"][2]


@pytest.mark.parametrize(("method", "is_list"), [("generateContent", False), ("streamGenerateContent", True)])
def test_an_error_has_the_form_of_google(method: str, is_list: bool) -> None:
    with ScriptedProvider([Failure(429, "slow down")]) as provider, pytest.raises(urllib.error.HTTPError) as caught:
        post(provider, method)
    with caught.value as answered:
        found = json.loads(answered.read())
    error = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
    assert found == ([error] if is_list else error)


@needs_sdk
def test_the_client_reads_an_answer_whole_and_streamed() -> None:
    with ScriptedProvider([TOOLS], repeat=True) as provider:
        client = client_of(provider)
        whole = client.models.generate_content(model="gemini", contents="Hello?")
        chunks = list(client.models.generate_content_stream(model="gemini", contents="Hello?"))
        client.close()
    assert said(whole) == said(*chunks) == EXPECTED
    assert len(chunks) > 5


@needs_sdk
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
def test_an_asynchronous_client_gets_the_same() -> None:
    async def ask(provider: ScriptedProvider) -> list[Any]:
        async with client_of(provider).aio as client:
            whole = await client.models.generate_content(model="gemini", contents="Hello?")
            stream = await client.models.generate_content_stream(model="gemini", contents="Hello?")
            return [whole, [chunk async for chunk in stream]]

    with ScriptedProvider([TOOLS], repeat=True) as provider:
        whole, chunks = asyncio.run(ask(provider))
    assert said(whole) == said(*chunks) == EXPECTED


@needs_sdk
def test_failures_refusals_and_finish_reasons_are_those_of_google() -> None:
    from google.genai import errors

    script = [429, Refusal("No."), Text("x", finish="length"), Text("x", reasoning="y")]
    with ScriptedProvider(script) as provider:
        client = client_of(provider)
        with pytest.raises(errors.ClientError, match="RESOURCE_EXHAUSTED"):
            client.models.generate_content(model="gemini", contents="Hello?")
        refused = client.models.generate_content(model="gemini", contents="Hello?")
        short = client.models.generate_content(model="gemini", contents="Hello?")
        thought = client.models.generate_content(model="gemini", contents="Hello?")
        client.close()
    assert refused.candidates[0].finish_reason.value == "SAFETY"
    assert refused.text is None
    assert short.candidates[0].finish_reason.value == "MAX_TOKENS"
    assert said(thought)["signed"] == [False]
