"""The OpenAI Agents SDK: runs, turns, tools, handoffs and agents that are tools, streamed or not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.capture.frameworks.telling import told

import playhead
from playhead.testing import ScriptedProvider, Text, ToolCall, ToolCalls

agents = pytest.importorskip("agents", reason="openai-agents is not installed here; the matrix has it")
openai = pytest.importorskip("openai")

agents.set_tracing_disabled(True)


@agents.function_tool
def weather(city: str) -> str:
    """Say how warm it is."""
    return f"mild in {city}"


@agents.function_tool
async def people(city: str) -> int:
    """Count the people."""
    await asyncio.sleep(0)
    return len(city)


@agents.function_tool
def broken(number: int) -> str:
    """Fail, and let the model know."""
    raise ValueError(f"no {number}")


@agents.function_tool(failure_error_function=None)
def fatal(number: int) -> str:
    """Fail, and end the run."""
    raise ValueError(f"no {number}")


@agents.function_tool
@playhead.tool(effects=["write"])
def saved(text: str) -> str:
    """Save a text."""
    return text.upper()


def agent(provider: ScriptedProvider, name: str = "triage", **options: Any) -> Any:
    client = openai.AsyncOpenAI(base_url=provider.base_url, api_key="none")
    model = agents.OpenAIChatCompletionsModel("gpt-5", client)
    tools = [weather, people, broken, fatal, saved, *options.pop("tools", ())]
    return agents.Agent(name=name, model=model, tools=tools, **options)


async def plain(made: Any) -> Any:
    return (await agents.Runner.run(made, "go")).final_output


async def streamed(made: Any) -> Any:
    result = agents.Runner.run_streamed(made, "go")
    async for _ in result.stream_events():
        pass
    return result.final_output


def run(provider: ScriptedProvider) -> Any:
    return asyncio.run(plain(agent(provider)))


def run_streamed(provider: ScriptedProvider) -> Any:
    return asyncio.run(streamed(agent(provider)))


WAYS = [pytest.param(way, id=way.__name__) for way in (run, run_streamed)]


def one(name: str, **arguments: Any) -> list[Any]:
    return [ToolCalls((ToolCall(name, arguments, "call_a"),)), Text("done")]


@pytest.mark.parametrize("way", WAYS)
def test_a_run_is_a_step_and_so_is_each_turn_with_its_tools(way: Any) -> None:
    seen = told(one("weather", city="Rome"), way)
    assert seen.steps == [["agent triage", ["turn 1", "model", "weather"], ["turn 2", "model"]]]
    assert seen.tool("call_a").input == {"city": "Rome"}
    assert seen.tool("call_a").output == "mild in Rome"


@pytest.mark.parametrize("way", WAYS)
def test_tools_that_run_side_by_side_have_a_lane_each(way: Any) -> None:
    calls = (ToolCall("people", {"city": "Rome"}, "call_a"), ToolCall("weather", {"city": "Oslo"}, "call_b"))
    seen = told([ToolCalls(calls), Text("done")], way)
    assert seen.tool("call_a").lane != seen.tool("call_b").lane
    assert seen.tool("call_a").output == 4
    assert seen.steps[0][1][0] == "turn 1"
    assert sorted(seen.steps[0][1][1:]) == ["model", "people", "weather"]


@pytest.mark.parametrize("way", WAYS)
def test_an_error_that_the_model_is_told_of_is_an_error_of_the_tool(way: Any) -> None:
    tool = told(one("broken", number=7), way).tool("call_a")
    assert (tool.status, tool.error) == ("error", "ValueError")
    assert "An error occurred" in tool.output


@pytest.mark.parametrize("way", WAYS)
def test_an_error_that_ends_the_run_ends_its_steps(way: Any) -> None:
    seen = told(one("fatal", number=7), way, raises=True)
    assert (seen.tool("call_a").status, seen.tool("call_a").error) == ("error", "ValueError")
    assert seen.result[:2] == ("raised", "UserError")
    assert [event.data["status"] for event in seen.events if event.kind == "step.finished"] == ["error", "error"]


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_is_decorated_too_is_told_once(way: Any) -> None:
    assert [tool.name for tool in told(one("saved", text="x"), way).tools] == ["saved"]


def test_effects_are_kept_where_the_sdk_shows_the_function() -> None:
    expected = ["write"] if hasattr(saved, "__wrapped__") else []
    assert told(one("saved", text="x"), run).tool("call_a").effects == expected


@pytest.mark.parametrize("going", [plain, streamed])
def test_a_handoff_is_told_by_the_turn_and_is_no_tool(going: Any) -> None:
    def ask(provider: ScriptedProvider) -> Any:
        return asyncio.run(going(agent(provider, handoffs=[agent(provider, "billing")])))

    script = [ToolCalls((ToolCall("transfer_to_billing", {}, "call_h"),)), *one("weather", city="Rome")]
    seen = told(script, ask)
    assert [tool.name for tool in seen.tools] == ["weather"]
    assert seen.steps == [
        ["agent triage", ["turn 1", "model"], ["turn 2 (billing)", "model", "weather"], ["turn 3 (billing)", "model"]]
    ]
    attributes = [event.data.get("attributes") for event in seen.events if event.kind == "step.finished"]
    assert {"handoff": "billing"} in attributes


@pytest.mark.parametrize("going", [plain, streamed])
def test_an_agent_that_is_a_tool_is_inside_its_call(going: Any) -> None:
    def ask(provider: ScriptedProvider) -> Any:
        expert = agent(provider, "expert").as_tool("ask_expert", "Ask an expert.")
        return asyncio.run(going(agent(provider, tools=[expert])))

    seen = told([*one("ask_expert", input="?")[:1], "mild", "done"], ask)
    assert seen.steps == [["agent triage", ["turn 1", "model", "ask_expert"], ["turn 2", "model"]]]
    assert seen.tool("call_a").output == "mild"
    expert = next(event.span for event in seen.events if event.kind == "tool.called")
    inside = [event.data["name"] for event in seen.events if event.kind == "step.started" and event.parent == expert]
    assert inside == ["agent expert"]


def test_a_guardrail_beside_the_first_turn_changes_nothing() -> None:
    async def checked(context: Any, agent: Any, question: Any) -> Any:
        return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    def ask(provider: ScriptedProvider) -> Any:
        return asyncio.run(plain(agent(provider, input_guardrails=[agents.InputGuardrail(checked)])))

    seen = told(one("weather", city="Rome"), ask)
    assert seen.steps == [["agent triage", ["turn 1", "model", "weather"], ["turn 2", "model"]]]


def test_a_stream_that_is_cancelled_closes_its_steps() -> None:
    async def leave(provider: ScriptedProvider) -> Any:
        result = agents.Runner.run_streamed(agent(provider), "go")
        async for _ in result.stream_events():
            result.cancel()
        with playhead.step("outside"):
            await asyncio.sleep(0.05)
        return "left"

    def ask(provider: ScriptedProvider) -> Any:
        return asyncio.run(leave(provider))

    with ScriptedProvider([Text("one two three four five six")]) as provider, playhead.record("test") as run:
        assert ask(provider) == "left"
    events = list(playhead.load(str(run.path)).events())
    opened = {event.span for event in events if event.kind == "step.started"}
    assert opened == {event.span for event in events if event.kind == "step.finished"}
