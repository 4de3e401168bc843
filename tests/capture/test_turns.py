"""Turns and tools are read off the model traffic, where nobody announced them."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

import playhead
from playhead.capture.scope import Lane, Scope
from playhead.capture.turns import Turns
from playhead.testing import Failure, ScriptedProvider, Text, ToolCalls, Wire
from playhead.testing import ToolCall as Asks

WEATHER = ToolCalls((Asks("weather", {"city": "Paris"}, id="call_a"),))
TWO = ToolCalls((Asks("weather", {"city": "Paris"}, id="call_a"), Asks("weather", {"city": "Rome"}, id="call_b")))


def client_of(provider: ScriptedProvider, **options: Any) -> Any:
    return openai.OpenAI(base_url=provider.base_url, api_key="none", **options)


def ask(client: Any, messages: list[Any], **options: Any) -> Any:
    """Ask, and add the answer to the conversation."""
    answer = client.chat.completions.create(model="gpt-5", messages=messages, **options).choices[0].message
    messages.append(answer.model_dump(exclude_none=True))
    return answer


def give_back(messages: list[Any], answer: Any, result: Any) -> None:
    for call in answer.tool_calls or ():
        output = result(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": output})


def loop(client: Any, tool: Any, question: str = "How is the weather?") -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": question}]
    while (answer := ask(client, messages)).tool_calls:
        give_back(messages, answer, tool)
    return messages


def shape(run: str = "@last") -> list[Any]:
    """Return the tree of a run: what each span is called, and what is inside."""
    events = list(playhead.load(run).events())
    closed = {
        event.span: event.data
        for event in events
        if event.kind.endswith((".finished", ".responded", ".returned", ".received"))
    }
    inside: dict[Any, list[Any]] = {}
    out: list[Any] = []
    for event in events:
        if event.span is None or event.kind.endswith((".finished", ".responded", ".returned", ".received")):
            continue
        children: list[Any] = []
        inside[event.span] = children
        kind, data = event.kind.partition(".")[0], event.data
        name = {"step": data.get("name"), "tool": data.get("name"), "model": "ask", "http": "http", "run": "run"}[kind]
        if kind == "tool":
            name = f"{name}{'?' if data.get('inferred') else ''} {data.get('call')}"
        status = closed.get(event.span, {"status": "open"})
        status = status.get("outcome") or status.get("status")
        label = name if status == "ok" else f"{name} ({status})"
        inside.get(event.parent, out).append((label, children))
    assert playhead.verify(run).integrity.verdict == "intact"
    return [_folded(one) for one in out]


def _folded(node: tuple[str, list[Any]]) -> Any:
    label, children = node
    return label if not children else (label, *[_folded(child) for child in children])


def plain_weather(city: str) -> str:
    return f"20 degrees in {city}"


def test_each_question_is_a_turn_and_a_tool_nobody_saw_is_inferred_once() -> None:
    script = [WEATHER, "Warm.", "Bye."]
    with ScriptedProvider(script) as provider, client_of(provider) as client, playhead.record("loop"):
        messages = loop(client, plain_weather)
        ask(client, [*messages, {"role": "user", "content": "Thanks."}])
    assert shape() == [("run", ("turn 1", "ask", "weather? call_a"), ("turn 2", "ask"), ("turn 3", "ask"))]
    tool = next(event for event in playhead.load("@last").events() if event.kind == "tool.called")
    model = next(event for event in playhead.load("@last").events() if event.kind == "model.invoked")
    assert tool.data["input"] == {"city": "Paris"}
    assert tool.data["asked_by"] == model.span
    returned = next(event for event in playhead.load("@last").events() if event.kind == "tool.returned")
    assert (returned.data["output"], returned.data["inferred"]) == ("20 degrees in Paris", True)


def test_a_tool_that_was_seen_is_not_inferred_and_knows_who_asked() -> None:
    weather = playhead.tool("weather")(plain_weather)
    with ScriptedProvider([TWO, "Warm."]) as provider, client_of(provider) as client, playhead.record("loop"):
        loop(client, weather)
    assert shape() == [("run", ("turn 1", "ask", "weather call_a", "weather call_b"), ("turn 2", "ask"))]
    events = list(playhead.load("@last").events())
    (first, *_) = [event.span for event in events if event.kind == "model.invoked"]
    assert [event.data["asked_by"] for event in events if event.kind == "tool.called"] == [first, first]


def test_tools_in_threads_are_matched_by_their_arguments() -> None:
    weather = playhead.tool("weather")(plain_weather)
    with ScriptedProvider([TWO, "Warm."]) as provider, client_of(provider) as client, playhead.record("threads"):
        messages: list[Any] = [{"role": "user", "content": "?"}]
        answer = ask(client, messages)
        with ThreadPoolExecutor(2) as pool:
            cities = [json.loads(call.function.arguments)["city"] for call in reversed(answer.tool_calls)]
            outputs = list(pool.map(weather, cities))
        for call, output in zip(reversed(answer.tool_calls), outputs, strict=True):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
        ask(client, messages)
    events = list(playhead.load("@last").events())
    calls = {event.data["input"]["city"]: event.data["call"] for event in events if event.kind == "tool.called"}
    assert calls == {"Paris": "call_a", "Rome": "call_b"}
    assert not [event for event in events if event.data.get("inferred") and event.kind == "tool.called"]
    (turn,) = {event.parent for event in events if event.kind == "tool.called"}
    assert turn == next(event.span for event in events if event.kind == "step.started")


def test_retries_stay_in_one_turn_and_are_numbered() -> None:
    fast = {"retry_after_ms": 1}
    script = [Failure(429, **fast), Failure(500, **fast), WEATHER, Failure(429, **fast), "Warm."]
    with ScriptedProvider(script) as provider, client_of(provider, max_retries=3) as client, playhead.record("retries"):
        loop(client, plain_weather)
    assert shape() == [
        ("run", ("turn 1", "ask (error)", "ask (error)", "ask", "weather? call_a"), ("turn 2", "ask (error)", "ask"))
    ]
    invoked = [
        event.data.get("attempt", 1) for event in playhead.load("@last").events() if event.kind == "model.invoked"
    ]
    assert invoked == [1, 2, 3, 1, 2]


def test_a_turn_that_failed_for_good_says_so() -> None:
    with (
        ScriptedProvider([400]) as provider,
        client_of(provider, max_retries=0) as client,
        pytest.raises(openai.BadRequestError),
        playhead.record("failed"),
    ):
        ask(client, [{"role": "user", "content": "?"}])
    assert shape() == [("run (error)", ("turn 1 (error)", "ask (error)"))]


def test_a_turn_whose_tools_were_never_run_is_closed_with_the_run() -> None:
    with ScriptedProvider([WEATHER]) as provider, client_of(provider) as client, playhead.record("left"):
        ask(client, [{"role": "user", "content": "?"}])
    assert shape() == [("run", ("turn 1", "ask"))]


def test_a_stream_that_the_reader_left_makes_a_cancelled_turn() -> None:
    script = [Text("A long answer, in many pieces, of which one is read.", wire=Wire(chunk_delay_s=0.01))]
    with ScriptedProvider(script) as provider, client_of(provider) as client, playhead.record("left"):
        stream = client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "?"}], stream=True)
        next(iter(stream))
        stream.close()
    assert shape() == [("run", ("turn 1 (cancelled)", "ask (cancelled)"))]


def test_inside_a_step_of_the_author_there_are_no_turns() -> None:
    script = [WEATHER, "Warm."]
    with (
        ScriptedProvider(script) as provider,
        client_of(provider) as client,
        playhead.record("steps"),
        playhead.step("plan"),
    ):
        loop(client, plain_weather)
    assert shape() == [("run", ("plan", "ask", "weather? call_a", "ask"))]


def test_what_happens_between_questions_is_in_the_turn() -> None:
    with ScriptedProvider([WEATHER, "Warm."]) as provider, client_of(provider) as client, playhead.record("between"):

        def weather(city: str) -> str:
            with playhead.step("look"):
                return client._client.get(f"{provider.root_url}/plain/{city}").text

        loop(client, weather)
    assert shape() == [("run", ("turn 1", "ask", ("look", "http"), "weather? call_a"), ("turn 2", "ask"))]


def test_an_agent_inside_an_agent_has_turns_of_its_own() -> None:
    by_prompt = {
        "outer": [{"name": "inner", "arguments": {}, "id": "call_o"}],
        "inner question": "Inner.",
        "Inner.": "Done.",
    }
    with ScriptedProvider(by_prompt=by_prompt) as provider, client_of(provider) as client:

        @playhead.agent("inner")
        def inner() -> str:
            return ask(client, [{"role": "user", "content": "inner question"}]).content

        @playhead.agent("outer")
        def outer() -> None:
            loop(client, playhead.tool("inner")(inner), "outer")

        outer()
    assert shape() == [("run", ("turn 1", "ask", ("inner call_o", ("inner", ("turn 1", "ask")))), ("turn 2", "ask"))]


def test_conversations_in_tasks_and_threads_have_turns_in_their_lanes_and_keep_their_tools() -> None:
    """All ask for a tool under the same id, as small servers number them."""
    same = ToolCalls((Asks("weather", {"city": "Paris"}, id="call_0"),))

    def script(request: Any) -> Any:
        return "Warm." if "degrees" in request.prompt else same

    def conversation(number: int, client: Any) -> None:
        loop(client, lambda city: f"{number} degrees", f"question {number}")

    with (
        ScriptedProvider(script) as provider,
        client_of(provider) as client,
        playhead.record("many"),
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(lambda number: conversation(number, client), range(20)))
    tree = shape()
    assert tree[0][0] == "run"
    assert sorted(tree[0][1:]) == sorted([("turn 1", "ask", "weather? call_0"), ("turn 2", "ask")] * 20)
    events = list(playhead.load("@last").events())
    asked = {event.span: event for event in events if event.kind == "model.invoked"}
    returned = {event.span: event for event in events if event.kind == "tool.returned"}
    for called in (event for event in events if event.kind == "tool.called"):
        question = asked[called.data["asked_by"]]
        assert question.lane == called.lane
        number = question.data["request"]["messages"][0]["content"].split()[1]
        assert returned[called.span].data["output"] == f"{number} degrees"


def test_a_stream_that_is_read_in_another_thread_ends_in_the_turn_where_it_began() -> None:
    script = ["Hello, world, and more.", "Bye."]
    with ScriptedProvider(script) as provider, client_of(provider) as client, playhead.record("elsewhere"):
        question = [{"role": "user", "content": "?"}]
        stream = client.chat.completions.create(model="gpt-5", messages=question, stream=True)
        thread = threading.Thread(target=list, args=(stream,))
        thread.start()
        thread.join()
        ask(client, question)
    assert shape() == [("run", ("turn 1", "ask"), ("turn 2", "ask"))]
    responded = [event for event in playhead.load("@last").events() if event.kind == "model.responded"]
    assert [event.lane for event in responded] == ["0", "0"]


def test_a_result_is_told_also_when_the_stream_that_asked_for_it_is_still_open() -> None:
    with ScriptedProvider([WEATHER, "Warm."]) as provider, client_of(provider) as client, playhead.record("open"):
        messages: list[Any] = [{"role": "user", "content": "?"}]
        stream = client.chat.completions.create(model="gpt-5", messages=messages, stream=True)
        chunks = list(stream)
        call = {"id": "call_a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
        other = client.chat.completions.create(model="gpt-5", messages=messages, stream=True)  # under way meanwhile
        answered = {"role": "assistant", "tool_calls": [call]}
        with client_of(provider) as second:
            result = {"role": "tool", "tool_call_id": "call_a", "content": "20 degrees"}
            with pytest.raises(openai.InternalServerError):
                second.with_options(max_retries=0).chat.completions.create(
                    model="gpt-5", messages=[*messages, answered, result]
                )
        other.close()
        assert chunks
    called = [event.data for event in playhead.load("@last").events() if event.kind == "tool.called"]
    assert [(data["call"], data["inferred"]) for data in called] == [("call_a", True)]


def test_the_end_of_a_crashing_run_closes_its_turns() -> None:
    with (
        ScriptedProvider([WEATHER]) as provider,
        client_of(provider) as client,
        pytest.raises(ZeroDivisionError),
        playhead.record("crash"),
    ):
        loop(client, lambda city: 1 / 0)
    assert shape() == [("run (error)", ("turn 1 (error)", "ask"))]


def test_by_hand_the_model_is_counted_once_and_the_traffic_is_plain_http() -> None:
    with (
        ScriptedProvider(["Hello."]) as provider,
        client_of(provider) as client,
        playhead.record("by hand"),
        playhead.model_call(provider="mine", model="gpt-5", request={"q": 1}) as call,
    ):
        call.respond(ask(client, [{"role": "user", "content": "?"}]).content)
    assert shape() == [("run", ("ask", "http"))]


def test_a_conversation_in_tasks_of_asyncio() -> None:
    async def one(client: Any, number: int) -> None:
        messages = [{"role": "user", "content": f"question {number}"}]
        await client.chat.completions.create(model="gpt-5", messages=messages)

    async def main(url: str) -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
            await asyncio.gather(*(one(client, number) for number in range(20)))

    with ScriptedProvider(["Hello."], repeat=True) as provider, playhead.record("tasks"):
        asyncio.run(main(provider.base_url))
        asked = [exchange.request.body for exchange in provider.exchanges]
    events = [event for event in playhead.load("@last").events() if event.kind == "model.invoked"]
    assert sorted(json.dumps(event.data["request"]) for event in events) == sorted(
        json.dumps(json.loads(body)) for body in asked
    )
    assert len({event.lane for event in events}) == len({event.parent for event in events}) == 20


class Silent:
    """A recording that only counts what it is given."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def emit(self, payload: Any, **places: Any) -> str:
        self.events.append(payload)
        return str(len(self.events))


def test_a_process_that_runs_for_long_does_not_remember_without_end() -> None:
    from playhead.capture.dialects.base import Answered, ToolAsked

    recording: Any = Silent()
    turns = Turns(recording)
    turns.places.add("0")
    for number in range(20_000):
        scope = Scope(recording, "0", Lane(f"0.{number}"))  # a request of a server: a lane of its own, never again
        turns.attempt(scope, "https://host/", {"body": number})
        turns.begin(scope, ())
        turns.opened(scope, str(number))
        turns.asking(str(number), "0")
        asks = Answered(None, calls=(ToolAsked(f"call_{number}", "tool", {}),))
        turns.answered(scope, str(number), asks if number % 2 else None, "ok" if number % 2 else "error")
        turns.running("another", {}, None, scope)
    for name in Turns.__slots__:
        held = getattr(turns, name)
        if isinstance(held, (dict, list, set)):
            assert len(held) < 5_000, name
    assert [event.KIND for event in recording.events[:1]] == ["step.finished"]  # the oldest was closed


def test_an_agent_inside_a_long_run_leaves_nothing_behind() -> None:
    with (
        ScriptedProvider(["Hello."], repeat=True) as provider,
        client_of(provider) as client,
        playhead.record("long") as run,
    ):

        @playhead.agent("inner")
        def inner() -> None:
            ask(client, [{"role": "user", "content": "?"}])

        for _ in range(20):
            inner()
        turns = run.recording.turns
        assert len(turns.places) == 1
        assert not turns.open
        assert len(turns._counted) <= 1
