"""Build agents with pydantic-ai: tools run by the framework, synchronous ones in worker threads."""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from scenario import KEY, MANY, ROOT, TOOLS, main, prompt, raising_scenario, scenario


def provider() -> OpenAIProvider:
    return OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{ROOT}/v1", api_key=KEY))


def chat() -> OpenAIChatModel:
    return OpenAIChatModel("gpt-5", provider=provider())


def agent_with(model: Any, seen: list[Any]) -> Agent[None, str]:
    agent: Agent[None, str] = Agent(model, instructions="Answer shortly. Grüße!")

    @agent.tool_plain
    def weather(city: str) -> str:
        """Say how warm it is in a city."""
        seen.append({"ran": "weather", "city": city})
        return TOOLS["weather"](city)

    @agent.tool
    async def clock(context: RunContext[None], city: str) -> str:
        """Say what time it is in a city."""
        await asyncio.sleep(0)
        return TOOLS["clock"](city)

    return agent


def told(run: Any) -> Any:
    usage = run.usage() if callable(run.usage) else run.usage
    return [run.output, usage.input_tokens, usage.output_tokens]


@scenario
def sync(seen: list[Any]) -> Any:
    return told(agent_with(chat(), seen).run_sync(prompt("sync")))


@scenario
async def asynchronous(seen: list[Any]) -> Any:
    return told(await agent_with(chat(), seen).run(prompt("asynchronous")))


@scenario
async def stream_async(seen: list[Any]) -> Any:
    async with agent_with(chat(), seen).run_stream(prompt("stream_async")) as run:
        async for text in run.stream_text(delta=True, debounce_by=None):
            seen.append(text)
    return len(seen)


@scenario
def agent(seen: list[Any]) -> Any:
    return told(agent_with(chat(), seen).run_sync(prompt("agent")))


@scenario
async def agent_async(seen: list[Any]) -> Any:
    return told(await agent_with(chat(), seen).run(prompt("agent_async")))


@scenario
async def agent_stream_async(seen: list[Any]) -> Any:
    """Stream through a turn with a tool to the answer."""
    async with agent_with(chat(), seen).run_stream_events(prompt("agent_stream_async")) as events:
        return [event.event_kind async for event in events]


@scenario
def agent_responses(seen: list[Any]) -> Any:
    model = OpenAIResponsesModel("gpt-5", provider=provider())
    return told(agent_with(model, seen).run_sync(prompt("agent_responses")))


@scenario
async def agent_claude(seen: list[Any]) -> Any:
    client = AsyncAnthropic(base_url=ROOT, api_key=KEY)
    model = AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(anthropic_client=client))
    return told(await agent_with(model, seen).run(prompt("agent_claude")))


@scenario
async def agent_gemini(seen: list[Any]) -> Any:
    model = GoogleModel("gemini-2.5-flash", provider=GoogleProvider(api_key=KEY, base_url=ROOT))
    return told(await agent_with(model, seen).run(prompt("agent_gemini")))


@scenario
def parallel_tools(seen: list[Any]) -> Any:
    return told(agent_with(chat(), seen).run_sync(prompt("parallel_tools")))


@scenario
def agent_retried_tool(seen: list[Any]) -> Any:
    """Use a tool that sends the model back."""
    agent: Agent[None, str] = Agent(chat())

    @agent.tool_plain
    def weather(city: str) -> str:
        """Say how warm it is in a city."""
        raise ModelRetry(f"there is no weather in {city}")

    return told(agent.run_sync(prompt("agent_retried_tool")))


@scenario
def rate_limited(seen: list[Any]) -> Any:
    return told(agent_with(chat(), seen).run_sync(prompt("rate_limited")))


@raising_scenario
def failing(seen: list[Any]) -> Any:
    return told(agent_with(chat(), seen).run_sync(prompt("failing")))


@raising_scenario
async def cut_stream_async(seen: list[Any]) -> Any:
    async with agent_with(chat(), seen).run_stream(prompt("cut_stream_async")) as run:
        async for text in run.stream_text(delta=True, debounce_by=None):
            seen.append(text)


@scenario
async def gather(seen: list[Any]) -> Any:
    agent = agent_with(chat(), seen)
    runs = await asyncio.gather(*(agent.run(prompt(f"gather_{number}")) for number in range(MANY)))
    return [run.output for run in runs]


if __name__ == "__main__":
    main()
