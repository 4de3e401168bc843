"""Calls of real SDKs are recorded once, whole and exact, and the agent notices nothing."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
import json
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from tests.capture.sdk_calls import (
    FAST,
    LONG,
    QUESTION,
    SDKS,
    anthropic_stream,
    openai_async_stream,
    openai_call,
    openai_stream,
    same_port,
    told,
    whole,
)

import playhead
from playhead.capture import effects, lanes
from playhead.capture import exchange as exchange_module
from playhead.event import wire
from playhead.testing import Failure, Raw, ScriptedProvider, Text, ToolCall, ToolCalls, Wire

SCRIPTS: dict[str, list[Any]] = {
    "text": [LONG],
    "tools": [ToolCalls((ToolCall("a", {"x": "ü"}), ToolCall("b", {})), text="I will.", reasoning="Hm.")],
    "pretty": [Text(LONG, wire=Wire(pretty=True))],
    "gzip": [Text(LONG, wire=Wire(encoding="gzip"))],
    "br": [Text(LONG, wire=Wire(encoding="br"))],
    "zstd": [Text(LONG, wire=Wire(encoding="zstd"))],
    "torn": [Text(LONG, wire=Wire(split="torn", chunked=True))],
    "torn gzip": [Text(LONG, wire=Wire(split="torn", chunked=True, encoding="gzip"))],
    "bytewise": [Text("Hi.", wire=Wire(split=1, chunked=True))],
    "429 and 500": [Failure(429, **FAST), Failure(500, **FAST), LONG],
    "400": [400],
    "429 for good": [Failure(429, **FAST)] * 3,
    "before head": [Text(LONG, wire=Wire(cut="before-head"))] * 3,
    "after head": [Text(LONG, wire=Wire(cut="after-head"))] * 3,
    "mid body": [Text(LONG, wire=Wire(cut="mid-body"))] * 3,
    "two chunks": [Text(LONG, wire=Wire(cut=2))] * 3,
    "no JSON": [Raw(b"<html>busy</html>", content_type="text/html")],
    "empty": [Raw(b"")],
}


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SDKs try again at once: how long they wait is theirs."""
    for module in (openai._base_client, anthropic._base_client):
        monkeypatch.setattr(module, "INITIAL_RETRY_DELAY", 0.01)


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.__name__)
def test_a_call_is_recorded_as_it_went_and_goes_as_it_would(sdk: Callable[..., Any], script: str) -> None:
    with ScriptedProvider(SCRIPTS[script]) as provider:
        bare = told(sdk, provider)
        asked = [request.body for request in provider.requests]
    with ScriptedProvider(SCRIPTS[script]) as provider:
        with playhead.record("call"):
            assert same_port(told(sdk, provider)) == same_port(bare)
        assert [request.body for request in provider.requests] == asked
        invoked = whole(provider)
    assert [event.data.get("attempt", 1) for event in invoked] == list(range(1, len(asked) + 1))
    assert {event.kind for event in invoked} == {"model.invoked"}


def test_the_chunks_of_a_stream_are_those_that_were_sent() -> None:
    with ScriptedProvider([LONG]) as provider, playhead.record("chunks"):
        openai_stream(provider)
        (exchange,) = provider.exchanges
    (responded,) = [event.data for event in playhead.load("@last").events() if event.kind == "model.responded"]
    assert wire.response_chunks(responded) == exchange.chunks
    assert responded["response"]["choices"][0]["message"]["content"] == LONG


@pytest.mark.parametrize("size", [0, 400_000])
def test_concurrent_streams_in_threads_do_not_mix(size: int) -> None:
    def script(request: Any) -> Any:
        return f"You said: {request.prompt} " + "x" * size

    def one(number: int) -> str:
        messages: list[Any] = [{"role": "user", "content": f"question {number}"}]
        stream = client.chat.completions.create(model="gpt-5", messages=messages, stream=not size)
        return stream.choices[0].message.content if size else "".join(c.choices[0].delta.content or "" for c in stream)

    with ScriptedProvider(script) as provider:
        with (
            openai.OpenAI(base_url=provider.base_url, api_key="none") as client,
            playhead.record("many"),
            ThreadPoolExecutor(20) as pool,
        ):
            assert [text.split(" ")[3] for text in pool.map(one, range(20 if not size else 4))]
        sent = {one.request.body: one for one in provider.exchanges}
    events = list(playhead.load("@last").events())
    closed = {event.span: event for event in events if event.kind == "model.responded"}
    invoked = [event for event in events if event.kind == "model.invoked"]
    assert len(invoked) == len(sent) == len({event.lane for event in invoked})
    for event in invoked:
        exchange = sent[wire.request_bytes(event.data)]
        assert wire.response_bytes(closed[event.span].data) == exchange.body
        assert closed[event.span].lane == event.lane
        assert closed[event.span].parent == event.parent
    assert playhead.verify("@last", deep=True).integrity.verdict == "intact"


def test_a_cancelled_call_is_recorded_as_cancelled_and_is_not_tried_again() -> None:
    async def main(url: str) -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await client.responses.create(model="gpt-5", input="?")

    with ScriptedProvider([Text("Late.", wire=Wire(delay_s=5))]) as provider, playhead.record("cancelled"):
        asyncio.run(main(provider.base_url))
        assert len(provider.requests) == 1
    (responded,) = [event.data for event in playhead.load("@last").events() if event.kind == "model.responded"]
    assert (responded["status"], responded["error"]["type"]) == ("cancelled", "asyncio.exceptions.CancelledError")


def test_a_stream_whose_reader_breaks_off_is_recorded_with_what_it_read() -> None:
    script = [Text(LONG, wire=Wire(chunk_delay_s=0.02))]
    with ScriptedProvider(script) as provider, playhead.record("broken off"):
        client = openai.OpenAI(base_url=provider.base_url, api_key="none")
        for _ in client.chat.completions.create(model="gpt-5", messages=QUESTION, stream=True):
            break
        gc.collect()
        client.close()
    (responded,) = [event.data for event in playhead.load("@last").events() if event.kind == "model.responded"]
    assert responded["status"] == "cancelled"
    assert LONG.startswith(responded["response"]["choices"][0]["message"]["content"] or "")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_the_answers_and_turns_of_its_parent_to_it() -> None:
    script = [Text(LONG, wire=Wire(chunk_delay_s=0.01)), LONG]
    with ScriptedProvider(script) as provider, playhead.record("forked") as run:
        client = openai.OpenAI(base_url=provider.base_url, api_key="none")
        stream = client.chat.completions.create(model="gpt-5", messages=QUESTION, stream=True)
        chunks = iter(stream)
        first = next(chunks)
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with run.recording.turns.lock:
                held.set()
                let_go.wait(30)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        child = os.fork()
        if not child:
            signal.alarm(30)  # it hangs, where a lock came along that nobody will release
            try:
                stream.response.close()
                openai_call(provider)
                os._exit(0)
            finally:
                os._exit(1)
        let_go.set()
        holder.join()
        assert os.waitpid(child, 0)[1] == 0
        assert "".join(chunk.choices[0].delta.content or "" for chunk in [first, *chunks]) == LONG
        client.close()
    events = list(playhead.load("@last").events())
    closed = [event.span for event in events if event.kind in ("model.responded", "step.finished")]
    opened = [event.span for event in events if event.kind in ("model.invoked", "step.started")]
    assert sorted(closed) == sorted(opened)
    assert len(closed) == 3  # the turn, the question in it, and the one of the child
    (parents,) = [event for event in events if event.kind == "model.responded" and event.lane == "0"]
    assert parents.data["status"] == "ok"


@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.__name__)
@pytest.mark.parametrize("lines", range(5))
def test_a_disk_that_is_full_in_the_middle_of_a_call_is_not_the_agents_matter(
    sdk: Callable[..., Any], lines: int, failing: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedProvider([Failure(429, **FAST), LONG]) as provider:
        bare = same_port(told(sdk, provider))
    monkeypatch.setattr(effects, "_record", lambda *effect: None)  # so that the lines are those of the calls
    monkeypatch.setattr(lanes, "on_end", None)
    with ScriptedProvider([Failure(429, **FAST), LONG, LONG]) as provider:
        with playhead.record("full") as run:
            failing(lines)
            assert same_port(told(sdk, provider)) == bare
            lost = run.lost
            failing(10**9)
            sdk(provider)
        assert len(provider.requests) == 3
    assert (lost > 0) == (lines < 4)  # a turn begins and ends in one write with its call
    gaps = [event.data for event in playhead.load("@last").events() if event.kind == "gap.noted"]
    assert sum(gap["count"] for gap in gaps) == lost
    assert playhead.verify("@last").integrity.verdict == "intact"


@pytest.mark.parametrize(("part", "after"), [("kept_request", 0), ("kept_answer", 0), ("texts", 0), ("texts", 1)])
def test_a_mistake_of_the_recorder_is_counted_and_does_not_reach_the_agent(
    part: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = getattr(exchange_module, part), itertools.count()

    def mistaken(*args: Any) -> Any:
        return original(*args) if next(calls) < after else 1 / 0

    with ScriptedProvider([LONG]) as provider:
        bare = [chunk["choices"] for chunk in openai_stream(provider)]
    with ScriptedProvider([LONG, LONG]) as provider:
        with playhead.record("mistake") as run, monkeypatch.context() as broken:
            broken.delenv("PYTEST_CURRENT_TEST")
            with monkeypatch.context() as once:
                once.setattr(exchange_module, part, mistaken)
                assert [chunk["choices"] for chunk in openai_stream(provider)] == bare
            assert run.lost >= 1
            assert [chunk["choices"] for chunk in openai_stream(provider)] == bare
        assert len(provider.requests) == 2
    events = list(playhead.load("@last").events())
    assert [event.data["name"] for event in events if event.kind == "step.started"][-1] in ("turn 1", "turn 2")
    opened = {event.span for event in events if event.kind == "step.started"}
    assert opened == {event.span for event in events if event.kind == "step.finished"}


def test_a_model_call_with_a_schema_in_it_gives_back_its_bytes() -> None:
    tools: Any = [
        {
            "type": "function",
            "function": {
                "name": "f",
                "parameters": {"$defs": {"A": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/A"}}},
            },
        }
    ]
    with ScriptedProvider(["Hello."] * 2) as provider:
        with playhead.record("schema"):
            openai_call(provider, tools=tools)
            openai_call(provider, tools=tools, temperature=1e-7)
        whole(provider)


def test_a_body_in_an_unknown_encoding_leaves_only_its_digest_also_of_a_model() -> None:
    body = b'{"choices":[],"word":"unreadable-for-us"}'
    script = [Raw(body, wire=Wire(headers=[("Content-Encoding", "snappy")]))]
    with ScriptedProvider(script) as provider, playhead.record("odd") as run:
        with httpx2.Client() as client:
            answer = client.post(provider.base_url + "/chat/completions", json={"model": "gpt-5", "messages": QUESTION})
            assert answer.content == body
        path = run.path
    (responded,) = [event.data for event in playhead.load("@last").events() if event.kind == "model.responded"]
    assert responded["http"]["form"] == wire.UNOPENED
    assert "response" not in responded
    assert b"unreadable-for-us" not in (path / "timeline.jsonl").read_bytes()
    with pytest.raises(ValueError, match="digest"):
        wire.response_bytes(responded)


def test_nothing_of_an_answer_is_held_after_it_was_recorded() -> None:
    with ScriptedProvider([LONG], repeat=True) as provider, playhead.record("held") as run:
        client = openai.OpenAI(base_url=provider.base_url, api_key="none")
        held = [client.chat.completions.create(model="gpt-5", messages=QUESTION, stream=True) for _ in range(3)]
        threads = [threading.Thread(target=list, args=(stream,)) for stream in held]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
        assert run.recording.exchanges == {}


def test_two_runs_in_two_tasks_keep_apart() -> None:
    async def one(name: str, url: str) -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client, playhead.record(name):
            for _ in range(3):
                await client.responses.create(model=name, input="?")
                await asyncio.sleep(0)

    async def main(url: str) -> None:
        await asyncio.gather(one("left", url), one("right", url))

    with ScriptedProvider(["Hello."], repeat=True) as provider:
        asyncio.run(main(provider.base_url))
    for name in ("left", "right"):
        asked = [event.data["model"] for event in playhead.load(name).events() if event.kind == "model.invoked"]
        assert asked == [name] * 3


def test_a_run_of_another_context_records_for_itself_alone() -> None:
    with ScriptedProvider(["Hello."], repeat=True) as provider, playhead.record("outer"):

        def elsewhere() -> None:
            with playhead.record("elsewhere"):
                openai_call(provider)

        outside = threading.Thread(target=contextvars.Context().run, args=(elsewhere,))
        outside.start()
        outside.join()
        openai_call(provider)
    for name in ("outer", "elsewhere"):
        assert [event.kind for event in playhead.load(name).events()].count("model.invoked") == 1


def test_what_is_not_captured_is_noted_once_for_each_place() -> None:
    with playhead.record("gaps") as run:
        for where in ("a", "b", "a"):
            run.recording.not_captured("library", where)
        assert run.lost == 0
    gaps = [event.data for event in playhead.load("@last").events() if event.kind == "gap.noted"]
    assert [(gap["count"], gap["detail"]) for gap in gaps] == [
        (0, {"source": "library", "where": "a"}),
        (0, {"source": "library", "where": "b"}),
    ]
    assert playhead.verify("@last").completeness.verdict == "complete"


def test_the_key_of_a_request_is_a_secret_wherever_it_stands_from_then_on() -> None:
    key = "plain-words-that-no-rule-knows-42"
    with ScriptedProvider([f"Your key is {key}."]) as provider, playhead.record("learned") as run:
        with openai.OpenAI(base_url=provider.base_url, api_key=key) as client:
            client.responses.create(model="gpt-5", input="?")
        playhead.note(f"it was {key}")
        root = run.path.parent.parent
    for file in root.rglob("*"):
        assert not file.is_file() or key.encode() not in file.read_bytes(), file


def test_telemetry_of_the_agent_is_left_out() -> None:
    with ScriptedProvider() as provider, playhead.record("telemetry"), httpx2.Client() as client:
        protobuf = {"content-type": "application/x-protobuf"}
        client.post(f"{provider.root_url}/plain/v1/traces", content=b"\x0a\x00", headers=protobuf)
        client.post(f"{provider.root_url}/plain/v1/traces", json={"of": "somebody else"})
        assert len(provider.requests) == 2
    sent = [event.data["body"] for event in playhead.load("@last").events() if event.kind == "http.sent"]
    assert sent == [{"of": "somebody else"}]


def test_traffic_of_a_thread_without_a_turn_is_in_the_span_it_began_in() -> None:
    with ScriptedProvider([ToolCalls((ToolCall("a", {}),))]) as provider, playhead.record("places"):
        openai_call(provider)  # a turn is open now, in the lane of the run
        url = f"{provider.root_url}/plain/a"
        with playhead.step("named"):
            threads = [threading.Thread(target=httpx2.get, args=(url,)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        httpx2.get(url)
    events = list(playhead.load("@last").events())
    spans = {event.span: event.data.get("name") for event in events if event.kind == "step.started"}
    where = [(spans[event.parent], event.lane) for event in events if event.kind == "http.sent"]
    assert sorted(where[:2]) == [("named", "0.1"), ("named", "0.2")]
    assert where[2] == ("turn 1", "0")


@pytest.mark.parametrize("script", ["text", "tools"])
@pytest.mark.parametrize("sdk", [openai_stream, openai_async_stream, anthropic_stream], ids=lambda sdk: sdk.__name__)
def test_a_long_stream_is_put_aside_as_it_came(sdk: Callable[..., Any], script: str) -> None:
    text = "A fairly long answer, in many chunks. " * 500
    answers = {"text": [Text(text)], "tools": [ToolCalls((ToolCall("a", {"x": text}),))]}
    with ScriptedProvider(answers[script]) as provider:
        with playhead.record("long"):
            sdk(provider)
        whole(provider)
    blobs = [event for event in playhead.load("@last").events(resolve=False) if "$blob" in str(event.data.get("body"))]
    assert [event.kind for event in blobs] == ["model.responded"]


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789",
        'with password="c0rrect-h0rse-battery9" now',
        '{"api_key": "tr0ub4dor-and-3-more"}',
        "KNOWN-TO-BE-SECRET-12",
    ],
)
@pytest.mark.parametrize("sdk", [openai_stream, openai_async_stream, anthropic_stream], ids=lambda sdk: sdk.__name__)
def test_a_secret_in_a_long_stream_is_not_put_aside_with_it(
    sdk: Callable[..., Any], secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BILLING_SECRET", "KNOWN-TO-BE-SECRET-12")
    words = "A fairly long answer, in many chunks. " * 300
    with ScriptedProvider([Text(f"{words} {secret} {words}")]) as provider, playhead.record("long") as run:
        sdk(provider)
    assert run.recording.path is not None
    store = run.recording.path.parent.parent
    kept = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    value = next(part for part in secret.replace('"', " ").split() if "-" in part)
    assert value.encode() not in kept
    (responded,) = [event.data for event in playhead.load("@last").events() if event.kind == "model.responded"]
    assert value not in json.dumps(responded)
