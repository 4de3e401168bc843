"""Call models through litellm: httpx where it is synchronous, aiohttp where it is not, in the form of three vendors."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it fetches a list of prices when it is imported

import litellm
from scenario import CITY, KEY, MANY, ROOT, TOOLS, main, prompt, raising_scenario, scenario

litellm.suppress_debug_info = True
OPENAI = {"model": "openai/gpt-5", "api_base": f"{ROOT}/v1", "api_key": KEY}
CLAUDE = {"model": "anthropic/claude-sonnet-4-5", "api_base": ROOT, "api_key": KEY}
GEMINI = {
    "model": "gemini/gemini-2.5-flash",
    "api_base": f"{ROOT}/v1beta/models/gemini-2.5-flash",
    "api_key": KEY,
}
FUNCTIONS: Any = [
    {"type": "function", "function": {"name": name, "description": tool.__doc__, "parameters": CITY}}
    for name, tool in TOOLS.items()
]


def asked(name: str) -> list[Any]:
    return [{"role": "user", "content": prompt(name)}]


def told(answer: Any) -> Any:
    choice = answer.choices[0]
    return [choice.message.content, choice.finish_reason, answer.usage.prompt_tokens, answer.usage.completion_tokens]


def ask(name: str, vendor: dict[str, str] = OPENAI, **options: Any) -> Any:
    return told(litellm.completion(**vendor, messages=asked(name), **options))


async def ask_async(name: str, vendor: dict[str, str] = OPENAI, **options: Any) -> Any:
    return told(await litellm.acompletion(**vendor, messages=asked(name), **options))


def read_stream(name: str, seen: list[Any], vendor: dict[str, str] = OPENAI) -> int:
    for chunk in litellm.completion(**vendor, messages=asked(name), stream=True):
        seen.append(chunk.choices[0].delta.content)
    return len(seen)


async def read_stream_async(name: str, seen: list[Any], vendor: dict[str, str] = OPENAI) -> int:
    async for chunk in await litellm.acompletion(**vendor, messages=asked(name), stream=True):
        seen.append(chunk.choices[0].delta.content)
    return len(seen)


def converse(name: str, seen: list[Any]) -> Any:
    messages = asked(name)
    while True:
        answer: Any = litellm.completion(**OPENAI, messages=messages, tools=FUNCTIONS)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            result = TOOLS[call.function.name](**json.loads(call.function.arguments))
            seen.append([call.id, call.function.name, result])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


@scenario
def sync(seen: list[Any]) -> Any:
    return ask("sync")


@scenario
async def asynchronous(seen: list[Any]) -> Any:
    return await ask_async("asynchronous")


@scenario
def stream(seen: list[Any]) -> Any:
    return read_stream("stream", seen)


@scenario
async def stream_async(seen: list[Any]) -> Any:
    return await read_stream_async("stream_async", seen)


@scenario
def sync_claude(seen: list[Any]) -> Any:
    return ask("sync_claude", CLAUDE)


@scenario
async def async_claude(seen: list[Any]) -> Any:
    return await ask_async("async_claude", CLAUDE)


@scenario
def stream_claude(seen: list[Any]) -> Any:
    return read_stream("stream_claude", seen, CLAUDE)


@scenario
async def stream_async_claude(seen: list[Any]) -> Any:
    return await read_stream_async("stream_async_claude", seen, CLAUDE)


@scenario
def sync_gemini(seen: list[Any]) -> Any:
    return ask("sync_gemini", GEMINI)


@scenario
async def stream_async_gemini(seen: list[Any]) -> Any:
    return await read_stream_async("stream_async_gemini", seen, GEMINI)


@scenario
def tools(seen: list[Any]) -> Any:
    return converse("tools", seen)


@scenario
def parallel_tools(seen: list[Any]) -> Any:
    return converse("parallel_tools", seen)


@scenario
def rate_limited(seen: list[Any]) -> Any:
    return ask("rate_limited", max_retries=2)


@scenario
async def server_error_async(seen: list[Any]) -> Any:
    return await ask_async("server_error_async", max_retries=2)


@raising_scenario
def failing(seen: list[Any]) -> Any:
    return ask("failing", max_retries=1)


@raising_scenario
async def cut_stream_async_claude(seen: list[Any]) -> Any:
    return await read_stream_async("cut_stream_async_claude", seen, CLAUDE)


@raising_scenario
def cut_stream(seen: list[Any]) -> Any:
    return read_stream("cut_stream", seen)


@scenario
async def torn_async_claude(seen: list[Any]) -> Any:
    return await read_stream_async("torn_async_claude", seen, CLAUDE)


@scenario
async def gzip_async_claude(seen: list[Any]) -> Any:
    return await ask_async("gzip_async_claude", CLAUDE)


@raising_scenario
async def timeout_async_claude(seen: list[Any]) -> Any:
    return await ask_async("timeout_async_claude", CLAUDE, timeout=0.3, max_retries=0)


@scenario
async def gather(seen: list[Any]) -> Any:
    return await asyncio.gather(*(ask_async(f"gather_{number}", CLAUDE) for number in range(MANY)))


@scenario
def threads(seen: list[Any]) -> Any:
    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(lambda number: ask(f"threads_{number}"), range(MANY)))


@scenario
def embeddings(seen: list[Any]) -> Any:
    vendor = OPENAI | {"model": "openai/text-embedding-3-small"}
    answer = litellm.embedding(**vendor, input=[prompt("embeddings"), "two"])
    return [one["embedding"] for one in answer.data]


if __name__ == "__main__":
    main()
