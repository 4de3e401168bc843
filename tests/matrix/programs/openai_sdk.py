"""Use the openai client, of this generation or an earlier one, in every way it offers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
from scenario import CITY, KEY, MANY, ROOT, TOOLS, main, prompt, raising_scenario, scenario

MODEL = "gpt-5"
BASE = f"{ROOT}/v1"
FUNCTIONS: Any = [
    {"type": "function", "function": {"name": name, "description": tool.__doc__, "parameters": CITY}}
    for name, tool in TOOLS.items()
]


def client(**options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=BASE, api_key=KEY, **options)


def async_client(**options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=BASE, api_key=KEY, **options)


def asked(name: str) -> list[Any]:
    return [{"role": "system", "content": "Answer shortly. Grüße!"}, {"role": "user", "content": prompt(name)}]


def told(answer: Any) -> dict[str, Any]:
    choice = answer.choices[0]
    return {"text": choice.message.content, "finish": choice.finish_reason, "usage": answer.usage.model_dump()}


def ask(name: str, **options: Any) -> dict[str, Any]:
    with client(**options) as made:
        return told(made.chat.completions.create(model=MODEL, messages=asked(name)))


async def ask_async(name: str, **options: Any) -> dict[str, Any]:
    async with async_client(**options) as made:
        return told(await made.chat.completions.create(model=MODEL, messages=asked(name)))


def piece(chunk: Any) -> Any:
    if not chunk.choices:
        return {"usage": chunk.usage.model_dump() if chunk.usage else None}
    delta = chunk.choices[0].delta
    calls = [[call.index, call.id, call.function.name, call.function.arguments] for call in delta.tool_calls or []]
    return [delta.content, calls, chunk.choices[0].finish_reason]


def read_stream(name: str, seen: list[Any], **options: Any) -> int:
    with client() as made:
        stream: Any = made.chat.completions.create(model=MODEL, messages=asked(name), stream=True, **options)
        for chunk in stream:
            seen.append(piece(chunk))
    return len(seen)


async def read_stream_async(name: str, seen: list[Any], **options: Any) -> int:
    async with async_client() as made:
        stream: Any = await made.chat.completions.create(model=MODEL, messages=asked(name), stream=True, **options)
        async for chunk in stream:
            seen.append(piece(chunk))
    return len(seen)


def converse(name: str, seen: list[Any]) -> str:
    """Be the loop that everybody writes."""
    messages = asked(name)
    with client() as made:
        while True:
            answer = made.chat.completions.create(model=MODEL, messages=messages, tools=FUNCTIONS)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return str(message.content)
            for call in message.tool_calls:
                assert call.type == "function"
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
    return read_stream("stream", seen, stream_options={"include_usage": True})


@scenario
async def stream_async(seen: list[Any]) -> Any:
    return await read_stream_async("stream_async", seen, stream_options={"include_usage": True})


@scenario
def unbuffered(seen: list[Any]) -> Any:
    """See the first piece long before the last one is sent."""
    first = 0.0
    with client() as made:
        stream: Any = made.chat.completions.create(model=MODEL, messages=asked("unbuffered"), stream=True)
        for _ in stream:
            first = first or time.monotonic()
    return "at once" if time.monotonic() - first > 0.2 else "only at the end"


@scenario
def raw_pieces(seen: list[Any]) -> Any:
    """Look at the bytes of a stream as they come."""
    with client() as made:
        create = made.chat.completions.with_streaming_response.create
        with create(model=MODEL, messages=asked("raw_pieces"), stream=True) as response:
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


@raising_scenario
def cut_head(seen: list[Any]) -> Any:
    return ask("cut_head", max_retries=0)


@scenario
async def gather(seen: list[Any]) -> Any:
    async with async_client() as made:

        async def one(number: int) -> Any:
            return told(await made.chat.completions.create(model=MODEL, messages=asked(f"gather_{number}")))

        return await asyncio.gather(*(one(number) for number in range(MANY)))


@scenario
def threads(seen: list[Any]) -> Any:
    with client() as made, ThreadPoolExecutor(MANY) as pool:

        def one(number: int) -> Any:
            return told(made.chat.completions.create(model=MODEL, messages=asked(f"threads_{number}")))

        return list(pool.map(one, range(MANY)))


@scenario
def bare_threads(seen: list[Any]) -> Any:
    """Start a thread for each call, each with a client of its own and a stream."""
    pieces: dict[int, list[Any]] = {number: [] for number in range(4)}
    started = [
        threading.Thread(target=read_stream, args=(f"bare_threads_{number}", pieces[number])) for number in pieces
    ]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return pieces


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
def zstd(seen: list[Any]) -> Any:
    return ask("zstd")


@scenario
def torn(seen: list[Any]) -> Any:
    return read_stream("torn", seen)


@scenario
async def torn_async(seen: list[Any]) -> Any:
    return await read_stream_async("torn_async", seen)


@raising_scenario
def timeout(seen: list[Any]) -> Any:
    return ask("timeout", timeout=0.3, max_retries=0)


@raising_scenario
async def timeout_async(seen: list[Any]) -> Any:
    return await ask_async("timeout_async", timeout=0.3, max_retries=0)


@raising_scenario
async def cancelled(seen: list[Any]) -> Any:
    """Give up on a stream from outside after its first piece."""
    came = asyncio.Event()

    async def read() -> None:
        async with async_client() as made:
            stream: Any = await made.chat.completions.create(model=MODEL, messages=asked("cancelled"), stream=True)
            async for chunk in stream:
                seen.append(piece(chunk))
                came.set()
                await asyncio.Event().wait()

    task = asyncio.create_task(read())
    await came.wait()
    task.cancel()
    await task


@raising_scenario
async def cancelled_waiting(seen: list[Any]) -> Any:
    """Give up while the provider has not answered yet."""
    return await asyncio.wait_for(ask_async("cancelled_waiting"), 0.3)


@scenario
def closed_early(seen: list[Any]) -> Any:
    with client() as made:
        stream: Any = made.chat.completions.create(model=MODEL, messages=asked("closed_early"), stream=True)
        for chunk in stream:
            seen.append(piece(chunk))
            if len(seen) == 2:
                break
        stream.close()
        return told(made.chat.completions.create(model=MODEL, messages=asked("closed_early")))


@scenario
def large(seen: list[Any]) -> Any:
    messages = [*asked("large"), {"role": "user", "content": "ä long text " * 40_000}]
    with client() as made:
        answer = made.chat.completions.create(model=MODEL, messages=messages)
    return [answer.choices[0].finish_reason, len(answer.choices[0].message.content or "")]


@scenario
def embeddings(seen: list[Any]) -> Any:
    with client() as made:
        answer = made.embeddings.create(model="text-embedding-3-small", input=[prompt("embeddings"), "two"])
    return [one.embedding for one in answer.data]


def responses_tools_of() -> Any:
    return [
        {"type": "function", "name": name, "description": tool.__doc__, "parameters": CITY, "strict": True}
        for name, tool in TOOLS.items()
    ]


@scenario
def responses(seen: list[Any]) -> Any:
    with client() as made:
        answer = made.responses.create(model=MODEL, input=prompt("responses"))
    return [answer.output_text, answer.usage.model_dump() if answer.usage else None]


@scenario
def responses_stream(seen: list[Any]) -> Any:
    with client() as made:
        for event in made.responses.create(model=MODEL, input=prompt("responses_stream"), stream=True):
            seen.append([event.type, getattr(event, "delta", None)])
    return len(seen)


@scenario
def responses_tools(seen: list[Any]) -> Any:
    items: list[Any] = [{"role": "user", "content": prompt("responses_tools")}]
    with client() as made:
        while True:
            answer = made.responses.create(model=MODEL, input=items, tools=responses_tools_of())
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return answer.output_text
            items += [item.model_dump(exclude_none=True) for item in answer.output]
            for call in calls:
                result = TOOLS[call.name](**json.loads(call.arguments))
                seen.append([call.call_id, call.name, result])
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


@scenario
async def responses_async(seen: list[Any]) -> Any:
    async with async_client() as made:
        answer = await made.responses.create(model=MODEL, input=prompt("responses_async"))
    return answer.output_text


if __name__ == "__main__":
    main()
