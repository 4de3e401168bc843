"""The scripted provider, asked by the real openai client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from playhead.testing import Failure, ScriptedProvider, Text, ToolCall, ToolCalls
from playhead.testing.script import Loose

ASK: dict[str, Any] = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello?"}]}


def client_of(provider: ScriptedProvider) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url, api_key="demo-not-a-key", max_retries=0, timeout=20)


def provider_of(*script: Loose) -> ScriptedProvider:
    return ScriptedProvider(script)


@pytest.fixture
def hello() -> Iterator[tuple[ScriptedProvider, openai.OpenAI]]:
    with provider_of("Hello, grüß dich.") as provider, client_of(provider) as client:
        yield provider, client


def test_text_is_answered_as_a_chat_completion(hello: tuple[ScriptedProvider, openai.OpenAI]) -> None:
    answer = hello[1].chat.completions.create(**ASK)
    assert answer.choices[0].message.content == "Hello, grüß dich."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "gpt-5"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 2


def test_tool_calls_come_with_ids_and_arguments() -> None:
    script = ToolCalls((ToolCall("read_file", {"path": "a"}), ToolCall("run_tests")), text="Looking.")
    with ScriptedProvider([script]) as provider, client_of(provider) as client:
        choice = client.chat.completions.create(**ASK).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Looking.")
    calls = choice.message.tool_calls or []
    found = [
        (call.id, call.function.name, json.loads(call.function.arguments)) for call in calls if call.type == "function"
    ]
    assert found == [("call_1_0", "read_file", {"path": "a"}), ("call_1_1", "run_tests", {})]


def test_answers_are_handed_out_in_order_and_the_end_is_said_clearly() -> None:
    with provider_of("one", "two") as provider, client_of(provider) as client:
        texts = [client.chat.completions.create(**ASK).choices[0].message.content for _ in range(2)]
        assert provider.remaining == 0
        with pytest.raises(openai.InternalServerError) as caught:
            client.chat.completions.create(**ASK)
    assert texts == ["one", "two"]
    assert caught.value.status_code == 500
    assert "the script is exhausted after 2 answers" in caught.value.message


def test_a_failure_reaches_the_client_as_its_own_exception() -> None:
    with provider_of(Failure(429, "slow down"), 401, "after all") as provider, client_of(provider) as client:
        with pytest.raises(openai.RateLimitError, match="slow down"):
            client.chat.completions.create(**ASK)
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(**ASK)
        assert client.chat.completions.create(**ASK).choices[0].message.content == "after all"


def test_a_retrying_client_gets_the_next_answer() -> None:
    with (
        provider_of(Failure(500), "second try") as provider,
        openai.OpenAI(base_url=provider.base_url, api_key="x", max_retries=1) as client,
    ):
        assert client.chat.completions.create(**ASK).choices[0].message.content == "second try"
        assert len(provider.requests) == 2


@pytest.mark.parametrize("with_usage", [True, False])
def test_streamed_text_arrives_in_pieces_and_is_the_same_text(with_usage: bool) -> None:
    text = "A rather long answer, in which ünïcode is not torn apart. 🎈 " * 3
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if with_usage else {}
    with provider_of(text, text) as provider, client_of(provider) as client:
        whole = client.chat.completions.create(**ASK)
        stream = list(client.chat.completions.create(**ASK, stream=True, **options))
    pieces = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
    assert "".join(piece or "" for piece in pieces) == text == whole.choices[0].message.content
    assert len(pieces) > 5
    assert [chunk.choices[0].finish_reason for chunk in stream if chunk.choices][-1] == "stop"
    usages = [chunk.usage for chunk in stream if chunk.usage is not None]
    assert len(usages) == with_usage
    if with_usage:
        assert stream[-1].choices == []
        assert whole.usage is not None
        assert usages[0].completion_tokens == whole.usage.completion_tokens


def test_streamed_tool_calls_add_up_to_the_same_arguments() -> None:
    script = [{"name": "one", "arguments": {"text": "x" * 50}}, {"name": "two", "arguments": {"n": 1}}]
    gathered: dict[int, dict[str, str]] = {}
    with ScriptedProvider([script]) as provider, client_of(provider) as client:
        for chunk in client.chat.completions.create(**ASK, stream=True):
            for part in chunk.choices[0].delta.tool_calls or []:
                call = gathered.setdefault(part.index, {"id": part.id or "", "name": "", "arguments": ""})
                assert part.function is not None
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""
    assert [call["id"] for call in gathered.values()] == ["call_1_0", "call_1_1"]
    assert [{"name": call["name"], "arguments": json.loads(call["arguments"])} for call in gathered.values()] == script


def test_a_stream_ends_with_done_on_the_wire(hello: tuple[ScriptedProvider, openai.OpenAI]) -> None:
    connection = http.client.HTTPConnection(urlsplit(hello[0].base_url).netloc, timeout=20)
    connection.request("POST", "/v1/chat/completions", json.dumps(ASK | {"stream": True}))
    response = connection.getresponse()
    assert response.getheader("Content-Type") == "text/event-stream; charset=utf-8"
    assert response.getheader("Transfer-Encoding") == "chunked"
    events = response.read().split(b"\n\n")
    connection.close()
    assert events[-2:] == [b"data: [DONE]", b""]
    assert all(event.startswith(b"data: ") for event in events[:-1])


def test_requests_are_kept_as_they_came(hello: tuple[ScriptedProvider, openai.OpenAI]) -> None:
    provider, client = hello
    client.chat.completions.create(**ASK, extra_headers={"X-Mark": "here"})
    (request,) = provider.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.json() == ASK
    headers = {name.lower(): value for name, value in request.headers}
    assert headers["x-mark"] == "here"
    assert headers["authorization"] == "Bearer demo-not-a-key"
    assert int(headers["content-length"]) == len(request.body)


def test_one_connection_serves_many_requests_without_stalling() -> None:
    with ScriptedProvider(["text"] * 20) as provider:
        connection = http.client.HTTPConnection(urlsplit(provider.base_url).netloc, timeout=20)
        ports = set()
        for _ in range(20):
            connection.request("POST", "/v1/chat/completions", json.dumps(ASK))
            ports.add(connection.sock.getsockname()[1])
            assert connection.getresponse().read()
        connection.close()
    assert len(ports) == 1


def test_concurrent_clients_each_get_one_answer() -> None:
    script = [str(number) for number in range(24)]
    heard: list[str | None] = []
    with ScriptedProvider(script) as provider, client_of(provider) as client:

        def ask() -> None:
            heard.append(client.chat.completions.create(**ASK).choices[0].message.content)

        threads = [threading.Thread(target=ask) for _ in script]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert Counter(heard) == Counter(script)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "/v1/elsewhere", b"{}", 404, "no such route"),
        ("GET", "/v1/models", b"", 404, "no such route"),
        ("POST", "/v1/chat/completions", b"{", 400, "not JSON"),
        ("POST", "/v1/chat/completions", b"[]", 400, "not a JSON object"),
    ],
)
def test_a_request_it_does_not_know_is_refused_and_costs_no_answer(
    method: str, path: str, body: bytes, status: int, message: str
) -> None:
    with provider_of("kept") as provider:
        connection = http.client.HTTPConnection(urlsplit(provider.base_url).netloc, timeout=20)
        connection.request(method, path, body)
        response = connection.getresponse()
        error = json.loads(response.read())["error"]
        connection.close()
        assert response.status == status
        assert message in error["message"]
        assert provider.remaining == 1


def test_closing_hangs_up_on_clients_and_frees_the_port() -> None:
    with provider_of("one") as provider:
        address = urlsplit(provider.base_url)
        idle = socket.create_connection((address.hostname or "", address.port or 0), timeout=20)
        body = json.dumps(ASK).encode()
        idle.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        assert idle.recv(65536).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
    assert time.monotonic() - began < 5
    while idle.recv(65536):
        pass
    idle.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname or "", address.port or 0), timeout=5)
    with pytest.raises(RuntimeError, match="not running"):
        _ = provider.base_url


def test_a_client_that_leaves_in_the_middle_of_a_stream_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    with provider_of("long " * 200_000, "next") as provider, client_of(provider) as client:
        with client.chat.completions.create(**ASK, stream=True) as stream:
            next(iter(stream))
        assert client.chat.completions.create(**ASK).choices[0].message.content == "next"
    assert capfd.readouterr().err == ""


def test_the_same_script_gives_the_same_bytes() -> None:
    def bytes_of(stream: bool) -> bytes:
        with provider_of(Text("same")) as provider:
            connection = http.client.HTTPConnection(urlsplit(provider.base_url).netloc, timeout=20)
            connection.request("POST", "/v1/chat/completions", json.dumps(ASK | {"stream": stream}))
            body = connection.getresponse().read()
            connection.close()
            return body

    assert bytes_of(False) == bytes_of(False)
    assert bytes_of(True) == bytes_of(True)
