"""Use the anthropic client, of this generation or an earlier one, in every way it offers."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
from scenario import CITY, KEY, MANY, ROOT, TOOLS, main, prompt, raising_scenario, scenario

MODEL = "claude-sonnet-4-5"
FUNCTIONS: Any = [{"name": name, "description": tool.__doc__, "input_schema": CITY} for name, tool in TOOLS.items()]


def client(**options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=ROOT, api_key=KEY, **options)


def async_client(**options: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=ROOT, api_key=KEY, **options)


def asked(name: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt(name)}]
    return {"model": MODEL, "max_tokens": 1000, "system": "Answer shortly. Grüße!", "messages": messages}


def told(answer: Any) -> dict[str, Any]:
    blocks = [block.model_dump(exclude_none=True) for block in answer.content]
    return {"content": blocks, "stop": answer.stop_reason, "usage": answer.usage.model_dump(exclude_none=True)}


def ask(name: str, **options: Any) -> dict[str, Any]:
    with client(**options) as made:
        return told(made.messages.create(**asked(name)))


async def ask_async(name: str, **options: Any) -> dict[str, Any]:
    async with async_client(**options) as made:
        return told(await made.messages.create(**asked(name)))


def piece(event: Any) -> Any:
    return event.model_dump(exclude_none=True, include={"type", "index", "delta", "content_block", "usage"})


def read_stream(name: str, seen: list[Any], **options: Any) -> int:
    with client() as made:
        for event in made.messages.create(**asked(name), stream=True, **options):
            seen.append(piece(event))
    return len(seen)


async def read_stream_async(name: str, seen: list[Any]) -> int:
    async with async_client() as made:
        async for event in await made.messages.create(**asked(name), stream=True):
            seen.append(piece(event))
    return len(seen)


def converse(name: str, seen: list[Any]) -> Any:
    """Be the loop that everybody writes."""
    request = asked(name)
    with client() as made:
        while True:
            answer = made.messages.create(**request, tools=FUNCTIONS)
            blocks = [block.model_dump(exclude_none=True) for block in answer.content]
            request["messages"].append({"role": "assistant", "content": blocks})
            if answer.stop_reason != "tool_use":
                return told(answer)
            results = []
            for block in answer.content:
                if block.type == "tool_use":
                    result = TOOLS[block.name](**block.input)
                    seen.append([block.id, block.name, result])
                    results.append({"type": "tool_result", "tool_use_id": block.id, "content": result})
            request["messages"].append({"role": "user", "content": results})


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
def stream_manager(seen: list[Any]) -> Any:
    """Let the SDK put the message together."""
    with client() as made, made.messages.stream(**asked("stream_manager")) as stream:
        seen += list(stream.text_stream)
        return told(stream.get_final_message())


@scenario
async def stream_manager_async(seen: list[Any]) -> Any:
    async with async_client() as made, made.messages.stream(**asked("stream_manager_async")) as stream:
        async for text in stream.text_stream:
            seen.append(text)
        return told(await stream.get_final_message())


@scenario
def raw_pieces(seen: list[Any]) -> Any:
    """Look at the bytes of a stream as they come."""
    with client() as made:
        create = made.messages.with_streaming_response.create
        with create(**asked("raw_pieces"), stream=True) as response:
            seen += [data.decode("latin-1") for data in response.http_response.iter_raw()]
    return len(seen)


@scenario
def tools(seen: list[Any]) -> Any:
    return converse("tools", seen)


@scenario
def parallel_tools(seen: list[Any]) -> Any:
    return converse("parallel_tools", seen)


@scenario
def tools_stream(seen: list[Any]) -> Any:
    return read_stream("tools_stream", seen, tools=FUNCTIONS)


@scenario
def rate_limited(seen: list[Any]) -> Any:
    return ask("rate_limited")


@scenario
async def rate_limited_async(seen: list[Any]) -> Any:
    return await ask_async("rate_limited_async")


@scenario
def server_error(seen: list[Any]) -> Any:
    return ask("server_error")


@raising_scenario
def failing(seen: list[Any]) -> Any:
    return ask("failing")


@raising_scenario
def refused(seen: list[Any]) -> Any:
    return ask("refused")


@raising_scenario
def cut_stream(seen: list[Any]) -> Any:
    return read_stream("cut_stream", seen)


@raising_scenario
async def cut_stream_async(seen: list[Any]) -> Any:
    return await read_stream_async("cut_stream_async", seen)


@raising_scenario
def cut_body(seen: list[Any]) -> Any:
    return ask("cut_body")


@scenario
async def gather(seen: list[Any]) -> Any:
    async with async_client() as made:

        async def one(number: int) -> Any:
            return told(await made.messages.create(**asked(f"gather_{number}")))

        return await asyncio.gather(*(one(number) for number in range(MANY)))


@scenario
def threads(seen: list[Any]) -> Any:
    with client() as made, ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(lambda number: told(made.messages.create(**asked(f"threads_{number}"))), range(MANY)))


@scenario
def gzip(seen: list[Any]) -> Any:
    return ask("gzip")


@scenario
def gzip_stream(seen: list[Any]) -> Any:
    return read_stream("gzip_stream", seen)


@scenario
def br(seen: list[Any]) -> Any:
    return ask("br")


@scenario
def torn(seen: list[Any]) -> Any:
    return read_stream("torn", seen)


@raising_scenario
def timeout(seen: list[Any]) -> Any:
    return ask("timeout", timeout=0.3, max_retries=0)


@raising_scenario
async def cancelled(seen: list[Any]) -> Any:
    """Give up on a stream from outside after its first piece."""
    came = asyncio.Event()

    async def read() -> None:
        async with async_client() as made:
            async for event in await made.messages.create(**asked("cancelled"), stream=True):
                seen.append(piece(event))
                came.set()
                await asyncio.Event().wait()

    task = asyncio.create_task(read())
    await came.wait()
    task.cancel()
    await task


@scenario
def closed_early(seen: list[Any]) -> Any:
    with client() as made:
        with made.messages.stream(**asked("closed_early")) as stream:
            for text in stream.text_stream:
                seen.append(text)
                break
        return told(made.messages.create(**asked("closed_early")))


@scenario
def large(seen: list[Any]) -> Any:
    request = asked("large")
    request["messages"][0]["content"] += "ä long text " * 40_000
    with client() as made:
        answer = made.messages.create(**request)
    return [answer.stop_reason, sum(len(getattr(block, "text", "")) for block in answer.content)]


if __name__ == "__main__":
    main()
