"""Build agents with the OpenAI Agents SDK: tools, streams, and one agent that hands over to another."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from scenario import KEY, MANY, ROOT, TOOLS, main, prompt, raising_scenario, scenario

set_tracing_disabled(True)  # else it sends its traces to the vendor


@function_tool
def weather(city: str) -> str:
    """Say how warm it is in a city."""
    return TOOLS["weather"](city)


@function_tool
async def clock(city: str) -> str:
    """Say what time it is in a city."""
    await asyncio.sleep(0)
    return TOOLS["clock"](city)


@function_tool(name_override="clock")
def broken_clock(city: str) -> str:
    """Say what time it is in a city."""
    raise ValueError(f"the clock of {city} has stopped")


def chat() -> OpenAIChatCompletionsModel:
    return OpenAIChatCompletionsModel("gpt-5", AsyncOpenAI(base_url=f"{ROOT}/v1", api_key=KEY))


def responses() -> OpenAIResponsesModel:
    return OpenAIResponsesModel("gpt-5", AsyncOpenAI(base_url=f"{ROOT}/v1", api_key=KEY))


def agent_with(model: Any, *tools: Any) -> Agent[None]:
    return Agent(name="guide", instructions="Answer shortly.", model=model, tools=list(tools or (weather, clock)))


@scenario
def sync(seen: list[Any]) -> Any:
    return Runner.run_sync(agent_with(chat()), prompt("sync")).final_output


@scenario
async def agent_async(seen: list[Any]) -> Any:
    run = await Runner.run(agent_with(chat()), prompt("agent_async"))
    return [run.final_output, [type(item).__name__ for item in run.new_items]]


@scenario
async def agent_responses(seen: list[Any]) -> Any:
    run = await Runner.run(agent_with(responses()), prompt("agent_responses"))
    return [run.final_output, [type(item).__name__ for item in run.new_items]]


@scenario
async def agent_stream_async(seen: list[Any]) -> Any:
    run = Runner.run_streamed(agent_with(chat()), prompt("agent_stream_async"))
    async for event in run.stream_events():
        delta = getattr(getattr(event, "data", None), "delta", None)
        seen.append([event.type, delta if isinstance(delta, str) else None])
    return run.final_output


@scenario
async def agent_responses_stream(seen: list[Any]) -> Any:
    run = Runner.run_streamed(agent_with(responses()), prompt("agent_responses_stream"))
    async for event in run.stream_events():
        delta = getattr(getattr(event, "data", None), "delta", None)
        seen.append([event.type, delta if isinstance(delta, str) else None])
    return run.final_output


@scenario
async def parallel_tools(seen: list[Any]) -> Any:
    run = await Runner.run(agent_with(chat()), prompt("parallel_tools"))
    return [run.final_output, [getattr(item, "output", None) for item in run.new_items]]


@scenario
async def parallel_tools_broken(seen: list[Any]) -> Any:
    """Use a tool that raises: the model is told."""
    run = await Runner.run(agent_with(chat(), weather, broken_clock), prompt("parallel_tools_broken"))
    return [run.final_output, [getattr(item, "output", None) for item in run.new_items]]


@scenario
async def handoff(seen: list[Any]) -> Any:
    clerk: Agent[None] = Agent(name="clerk", instructions="Look things up.", model=chat(), tools=[weather, clock])
    guide: Agent[None] = Agent(name="guide", instructions="Hand over.", model=chat(), handoffs=[clerk])
    run = await Runner.run(guide, prompt("handoff"))
    return [run.final_output, run.last_agent.name, [type(item).__name__ for item in run.new_items]]


@scenario
async def rate_limited_async(seen: list[Any]) -> Any:
    return (await Runner.run(agent_with(chat()), prompt("rate_limited_async"))).final_output


@raising_scenario
async def failing(seen: list[Any]) -> Any:
    return (await Runner.run(agent_with(chat()), prompt("failing"))).final_output


@raising_scenario
async def cut_stream_async(seen: list[Any]) -> Any:
    run = Runner.run_streamed(agent_with(chat()), prompt("cut_stream_async"))
    async for event in run.stream_events():
        seen.append(event.type)


@scenario
async def gather(seen: list[Any]) -> Any:
    agent = agent_with(chat())
    runs = await asyncio.gather(*(Runner.run(agent, prompt(f"gather_{number}")) for number in range(MANY)))
    return [run.final_output for run in runs]


if __name__ == "__main__":
    main()
