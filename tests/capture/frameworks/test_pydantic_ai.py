"""pydantic-ai: agents, their turns, and their tools, whatever way they are run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.capture.frameworks.telling import told

import playhead
from playhead.testing import ScriptedProvider, Text, ToolCall, ToolCalls

pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed here; the matrix has it")
openai = pytest.importorskip("openai")

from pydantic_ai import Agent, ModelRetry, RunContext, Tool  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset  # noqa: E402


def weather(city: str) -> str:
    return f"mild in {city}"


async def people(city: str) -> int:
    await asyncio.sleep(0)
    return len(city)


def retried(ctx: RunContext[None], number: int) -> str:
    if number == 1:
        raise ModelRetry("try 2")
    return f"got {number}"


def broken(number: int) -> str:
    raise ValueError(f"no {number}")


@playhead.tool(effects=["write"])
def saved(text: str) -> str:
    return text.upper()


def model(provider: ScriptedProvider) -> OpenAIChatModel:
    # With a client of its own: releases before 1.0 keep one for all event loops.
    client = openai.AsyncOpenAI(base_url=provider.base_url, api_key="none")
    return OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client))


def agent(provider: ScriptedProvider, **options: Any) -> Agent[None, Any]:
    tools = [weather, people, retried, broken, saved]
    return Agent(model(provider), name="meteo", tools=[Tool(tool) for tool in tools], **options)


def run_sync(provider: ScriptedProvider) -> Any:
    return agent(provider).run_sync("go").output


def run(provider: ScriptedProvider) -> Any:
    async def ask() -> Any:
        return (await agent(provider).run("go")).output

    return asyncio.run(ask())


def run_stream(provider: ScriptedProvider) -> Any:
    async def ask() -> Any:
        async with agent(provider).run_stream("go") as result:
            return [text async for text in result.stream_text(debounce_by=None)][-1]

    return asyncio.run(ask())


def iterated(provider: ScriptedProvider) -> Any:
    async def ask() -> Any:
        async with agent(provider).iter("go") as running:
            nodes = [type(node).__name__ async for node in running]
        assert running.result is not None
        return nodes, running.result.output

    return asyncio.run(ask())


WAYS = [pytest.param(way, id=way.__name__) for way in (run_sync, run, run_stream, iterated)]


def one(name: str, **arguments: Any) -> list[Any]:
    return [ToolCalls((ToolCall(name, arguments, "call_a"),)), Text("done")]


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_is_a_step_and_so_is_each_of_its_turns_with_the_tools_in_it(way: Any) -> None:
    seen = told(one("weather", city="Rome"), way)
    assert seen.steps == [["agent meteo", ["turn 1", "model", "weather"], ["turn 2", "model"]]]
    assert seen.tool("call_a").input == {"city": "Rome"}
    assert seen.tool("call_a").output == "mild in Rome"


@pytest.mark.parametrize("way", WAYS)
def test_tools_that_run_side_by_side_have_a_lane_each_in_the_order_of_the_answer(way: Any) -> None:
    calls = (ToolCall("people", {"city": "Rome"}, "call_a"), ToolCall("people", {"city": "Oslo"}, "call_b"))
    lanes = []
    for _ in range(2):
        seen = told([ToolCalls(calls), Text("done")], way)
        lanes.append(seen.lanes("call_a", "call_b"))
        assert seen.steps[0][1] == ["turn 1", "model", "people", "people"]
    assert lanes[0] == lanes[1]
    assert lanes[0][0] < lanes[0][1]


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_asks_for_another_try_is_told_as_failed(way: Any) -> None:
    script = [*one("retried", number=1)[:1], ToolCalls((ToolCall("retried", {"number": 2}, "call_b"),)), Text("done")]
    seen = told(script, way)
    assert (seen.tool("call_a").status, seen.tool("call_a").error) == ("error", "pydantic_ai.exceptions.ModelRetry")
    assert (seen.tool("call_b").status, seen.tool("call_b").output) == ("ok", "got 2")
    assert [turn[0] for turn in seen.steps[0][1:]] == ["turn 1", "turn 2", "turn 3"]


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_raises_ends_the_run_as_it_does_alone(way: Any) -> None:
    seen = told(one("broken", number=7), way, raises=True)
    assert (seen.tool("call_a").status, seen.tool("call_a").error) == ("error", "ValueError")
    assert seen.result == ("raised", "ValueError", "no 7")
    failed = [event.data["status"] for event in seen.events if event.kind == "step.finished" and event.span == "1"]
    assert failed == ["error"]


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_is_decorated_too_is_told_once_with_its_effects(way: Any) -> None:
    seen = told(one("saved", text="x"), way)
    assert [(tool.name, tool.effects) for tool in seen.tools] == [("saved", ["write"])]


def test_tools_of_other_toolsets_are_told_by_the_name_that_the_model_knows() -> None:
    class Shouting(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            return str(await super().call_tool(name, tool_args, ctx, tool)).upper()

    def ask(provider: ScriptedProvider) -> Any:
        other = Shouting(FunctionToolset([people]).prefixed("other"))
        return Agent(model(provider), name="meteo", toolsets=[other]).run_sync("go").output

    seen = told(one("other_people", city="Rome"), ask)
    assert [tool.name for tool in seen.tools] == ["other_people"]
    assert seen.tool("call_a").output == "4"


def test_the_way_in_which_a_model_gives_a_typed_answer_is_no_tool() -> None:
    def ask(provider: ScriptedProvider) -> Any:
        return agent(provider, output_type=list[int]).run_sync("go").output

    seen = told(one("final_result", response=[1, 2]), ask)
    assert seen.result == ("returned", [1, 2])
    assert seen.tools == []


def test_an_agent_that_is_a_tool_of_another_one_is_inside_its_call() -> None:
    def ask(provider: ScriptedProvider) -> Any:
        inner, outer = agent(provider), agent(provider)

        @outer.tool_plain
        async def expert(question: str) -> str:
            return str((await inner.run(question)).output)

        return outer.run_sync("go").output

    script = [*one("expert", question="?")[:1], ToolCalls((ToolCall("weather", {"city": "Rome"}, "call_b"),)), "a", "b"]
    seen = told(script, ask)
    assert seen.steps == [["agent meteo", ["turn 1", "model", "expert"], ["turn 2", "model"]]]
    expert = next(event.span for event in seen.events if event.kind == "tool.called")
    inside = [event.data["name"] for event in seen.events if event.kind == "step.started" and event.parent == expert]
    assert inside == ["agent meteo"]


def test_two_agents_at_once_keep_their_turns_apart() -> None:
    async def both(provider: ScriptedProvider) -> Any:
        made = agent(provider)
        return [one.output for one in await asyncio.gather(made.run("Rome"), made.run("Oslo"))]

    def answer(request: Any) -> Any:
        text = request.body.decode()
        city = "Rome" if "Rome" in text else "Oslo"
        return "done" if "mild in" in text else [{"name": "weather", "arguments": {"city": city}, "id": f"call_{city}"}]

    seen = told(answer, lambda provider: asyncio.run(both(provider)))
    turns = [["turn 1", "model", "weather"], ["turn 2", "model"]]
    assert seen.steps == [["agent meteo", *turns], ["agent meteo", *turns]]


def test_a_stream_that_is_left_closes_its_steps_and_leaves_no_scope_behind() -> None:
    async def leave(provider: ScriptedProvider) -> Any:
        async with agent(provider).run_stream("go") as result:
            async for _ in result.stream_text(debounce_by=None):
                break
        with playhead.step("outside"):
            return "left"

    seen = told([Text("one two three four five six")], lambda provider: asyncio.run(leave(provider)))
    assert [step[0] for step in seen.steps] == ["agent meteo", "outside"]
