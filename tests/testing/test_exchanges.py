"""What a scripted provider keeps, how it chooses its answers, and how it runs in a process of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from playhead.testing import (
    Embeddings,
    Failure,
    Raw,
    ReceivedRequest,
    Refusal,
    ScriptedProvider,
    Text,
    ToolCall,
    ToolCalls,
    Usage,
    Wire,
    read_log,
)
from playhead.testing.script import Answer, as_answer


def asking(text: str) -> dict[str, Any]:
    return {"model": "gpt-5", "messages": [{"role": "user", "content": text}]}


def client_of(provider: ScriptedProvider) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url, api_key="none", max_retries=0, timeout=20)


def test_an_exchange_holds_what_the_client_received_byte_for_byte() -> None:
    with ScriptedProvider([Text("Grüß dich. " * 5, wire=Wire(split="torn"))]) as provider:
        connection = http.client.HTTPConnection(urlsplit(provider.root_url).netloc, timeout=20)
        body = json.dumps(asking("Hello?") | {"stream": True}).encode()
        connection.putrequest("POST", "/v1/chat/completions?a=b", skip_accept_encoding=True)
        for name, value in (("X-Two", "2"), ("x-one", "1"), ("X-Two", "3"), ("Content-Length", str(len(body)))):
            connection.putheader(name, value)
        connection.endheaders(body)
        answered = connection.getresponse()
        received = answered.read()
        connection.close()
        (exchange,) = provider.exchanges
    assert exchange.request.headers[1:] == [
        ("X-Two", "2"),
        ("x-one", "1"),
        ("X-Two", "3"),
        ("Content-Length", str(len(body))),
    ]
    assert (exchange.request.path, exchange.request.body) == ("/v1/chat/completions?a=b", body)
    assert exchange.body == received
    assert exchange.headers == answered.getheaders()
    assert (exchange.number, exchange.status, exchange.cut, exchange.left, exchange.done) == (
        1,
        200,
        False,
        False,
        True,
    )


def test_a_client_that_hangs_up_is_noted() -> None:
    answer = Text("x" * 3000, wire=Wire(chunk_delay_s=0.005))
    with ScriptedProvider([answer]) as provider, client_of(provider) as client:
        with client.chat.completions.create(**asking("?"), stream=True) as stream:
            next(iter(stream))
        client.close()
        for _ in range(2000):
            if provider.exchanges[0].left:
                break
            time.sleep(0.005)
        (exchange,) = provider.exchanges
    assert exchange.left
    assert not exchange.cut


def test_a_function_answers_each_request_and_twenty_threads_get_their_own() -> None:
    def echo(request: ReceivedRequest) -> str:
        return f"You said: {request.prompt}"

    def ask(client: openai.OpenAI, number: int) -> str | None:
        return client.chat.completions.create(**asking(f"number {number}")).choices[0].message.content

    with ScriptedProvider(echo) as provider, client_of(provider) as client, ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda number: ask(client, number), range(20)))
        assert len(provider.exchanges) == 20
        assert [exchange.number for exchange in provider.exchanges] == list(range(1, 21))
    assert found == [f"You said: number {number}" for number in range(20)]


def test_twenty_tasks_get_the_answers_of_their_prompts() -> None:
    async def ask(provider: ScriptedProvider) -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=provider.base_url, api_key="none", max_retries=0) as client:
            questions = (client.chat.completions.create(**asking(f"<{n}>")) for n in range(20))
            return [answer.choices[0].message.content for answer in await asyncio.gather(*questions)]

    with ScriptedProvider(by_prompt={f"<{n}>": f"answer {n}" for n in range(20)}) as provider:
        assert asyncio.run(ask(provider)) == [f"answer {n}" for n in range(20)]


def test_by_prompt_looks_at_what_came_after_the_models_last_turn() -> None:
    by_prompt = {"weather in Paris": [{"name": "weather"}], "22 degrees": "It is warm."}
    with ScriptedProvider(["the script"], by_prompt=by_prompt) as provider, client_of(provider) as client:
        request = asking("What is the weather in Paris?")
        first = client.chat.completions.create(**request).choices[0].message
        assert first.tool_calls
        request["messages"] += [
            first.to_dict(),
            {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "22 degrees"},
        ]
        assert client.chat.completions.create(**request).choices[0].message.content == "It is warm."
        assert client.chat.completions.create(**asking("Else?")).choices[0].message.content == "the script"


def test_a_request_that_by_prompt_does_not_know_is_an_error_that_names_what_it_knows() -> None:
    with (
        ScriptedProvider(by_prompt={"known": "x"}) as provider,
        client_of(provider) as client,
        pytest.raises(openai.InternalServerError, match=r"no text of by_prompt is in the request: \['known'\]"),
    ):
        client.chat.completions.create(**asking("other"))


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ({"input": "one"}, "one"),
        ({"input": ["one", "two"]}, "one\ntwo"),
        ({"input": [{"role": "user", "content": "old"}, {"type": "function_call", "name": "f"}, {"type": "function_call_output", "output": "new"}]}, "new"),
        ({"contents": [{"role": "model", "parts": [{"text": "old"}]}, {"role": "user", "parts": [{"text": "new"}]}]}, "new"),
        ([1, "x"], "x"),
    ],
)  # fmt: skip
def test_the_prompt_is_found_in_every_shape(body: Any, prompt: str) -> None:
    assert ReceivedRequest("POST", "/", [], json.dumps(body).encode()).prompt == prompt


def test_a_script_can_begin_again() -> None:
    with ScriptedProvider(["one", "two"], repeat=True) as provider, client_of(provider) as client:
        found = [client.chat.completions.create(**asking("?")).choices[0].message.content for _ in range(5)]
    assert found == ["one", "two", "one", "two", "one"]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"text": "a", "reasoning": "b", "usage": {"input": 1, "cached": 1}}, Text("a", "b", usage=Usage(1, cached=1))),
        ({"calls": [{"name": "f"}], "text": "a"}, ToolCalls((ToolCall("f"),), "a")),
        ({"refusal": "no", "wire": {"cut": 2, "split": [1, 2]}}, Refusal("no", wire=Wire(cut=2, split=(1, 2)))),
        ({"vectors": [[1, 2]]}, Embeddings(((1, 2),))),
        ({"dimensions": 3}, Embeddings(dimensions=3)),
        ({"status": 429, "retry_after": 1}, Failure(429, retry_after=1)),
        ({"body": "ü", "status": 502}, Raw("ü".encode(), 502)),
        ({"body": ["a", "b"], "wire": {"headers": [["a", "b"]]}}, Raw((b"a", b"b"), wire=Wire(headers=(("a", "b"),)))),
    ],
)
def test_every_answer_can_be_written_as_json(given: dict[str, Any], answer: Answer) -> None:
    assert as_answer(json.loads(json.dumps(given))) == answer


@pytest.mark.parametrize(
    ("given", "message"),
    [({"txt": "a"}, "an answer has one of the keys calls, text"), ({"text": "a", "wires": 1}, "Text has no wires")],
)
def test_a_misspelled_answer_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_answer(given)


# In a process of its own.


def started(folder: Path, script: Any, *more: str) -> subprocess.Popen[str]:
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "playhead.testing.provider", str(path), "--port", "0", *more],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["terminated", "stdin closed"])
def test_a_provider_in_another_process_says_where_it_is_and_logs_what_it_sent(tmp_path: Path, how: str) -> None:
    log = tmp_path / "log.jsonl"
    script = {"script": ["one", {"text": "zwölf", "wire": {"encoding": "gzip"}}], "by_prompt": {"special": "found"}}
    with started(tmp_path, script, "--log", str(log)) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        where = json.loads(process.stdout.readline())
        with openai.OpenAI(base_url=where["base_url"], api_key="none", max_retries=0, timeout=20) as client:
            texts = [
                client.chat.completions.create(**asking(text)).choices[0].message.content
                for text in ("a", "special", "b")
            ]
        if how == "terminated":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert texts == ["one", "found", "zwölf"]
    assert where["anthropic_url"] == where["google_url"] == where["root_url"] == where["base_url"].removesuffix("/v1")
    exchanges = read_log(log)
    assert [exchange.number for exchange in exchanges] == [1, 2, 3]
    assert json.loads(exchanges[0].body)["choices"][0]["message"]["content"] == "one"
    assert exchanges[2].body.startswith(b"\x1f\x8b")
    assert ("Content-Encoding", "gzip") in exchanges[2].headers
    assert exchanges[2].request.json() == asking("b")
    assert all(exchange.done for exchange in exchanges)


@pytest.mark.parametrize("stdin", ["/dev/null", "closed"])
def test_a_provider_in_the_background_of_a_shell_serves_until_it_is_told_to_end(tmp_path: Path, stdin: str) -> None:
    (tmp_path / "script.json").write_text('["one"]')
    command = f"{sys.executable} -m playhead.testing.provider script.json {'<&-' if stdin == 'closed' else ''} &"
    shell = f"{command} echo $!; read end; kill $!; wait $!"
    with subprocess.Popen(
        ["sh", "-c", shell], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        address = next(line for line in process.stdout if line.startswith("{"))
        with openai.OpenAI(base_url=json.loads(address)["base_url"], api_key="none", timeout=20) as client:
            assert client.chat.completions.create(**asking("?")).choices[0].message.content == "one"
        process.stdin.close()
        assert process.wait(20) == 0


def test_a_provider_that_cannot_begin_says_why_in_one_line(tmp_path: Path) -> None:
    with ScriptedProvider(["one"]) as busy:
        port = busy.root_url.rpartition(":")[2]
        for more, why in (
            (("--port", port), f"cannot listen on port {port}: "),
            (("--port", "70000"), "cannot listen on port 70000: "),
            (("--log", str(tmp_path / "nowhere" / "log.jsonl")), "No such file"),
        ):
            with started(tmp_path, ["one"], *more) as process:
                out, err = process.communicate(timeout=20)
            assert (process.returncode, out) == (1, "")
            assert err.count("\n") == 1
            assert err.startswith("python -m playhead.testing.provider: ")
            assert why in err


def test_a_log_reads_back_as_it_was_kept(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    script = [Text("ü", wire=Wire(split=7)), Text("x", wire=Wire(cut="before-head"))]
    with ScriptedProvider(script, log=log) as provider, client_of(provider) as client:
        client.chat.completions.create(**asking("ü"))
        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(**asking("?"))
        kept = provider.exchanges
    assert read_log(log) == kept


@pytest.mark.parametrize(
    ("script", "message"),
    [({"scripts": []}, "unknown keys ['scripts']"), ([{"x": 1}], "an answer has one of the keys"), (3, "not iterable")],
)
def test_a_script_that_cannot_be_read_is_told_in_one_line(tmp_path: Path, script: Any, message: str) -> None:
    with started(tmp_path, script) as process:
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (2, "")
    assert message in errors
    assert "Traceback" not in errors
