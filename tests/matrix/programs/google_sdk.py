"""Use google-genai, of this generation or an earlier one: it takes httpx or httpx2, and aiohttp when that is there."""

# Without annotations from __future__: google-genai 1 cannot call tools whose annotations are text.
import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google import genai
from google.genai import types
from scenario import CITY, KEY, MANY, ROOT, TOOLS, clock, main, prompt, raising_scenario, scenario, weather

MODEL = "gemini-2.5-flash"
DECLARED: Any = [
    {
        "function_declarations": [
            {"name": name, "description": tool.__doc__, "parameters_json_schema": CITY} for name, tool in TOOLS.items()
        ]
    }
]


def client(retries: int = 3, timeout_ms: int | None = None) -> genai.Client:
    again = types.HttpRetryOptions(attempts=retries, initial_delay=0.01, max_delay=0.05)
    options = types.HttpOptions(base_url=ROOT, retry_options=again, timeout=timeout_ms)
    return genai.Client(api_key=KEY, http_options=options)


def told(answer: Any) -> dict[str, Any]:
    usage = answer.usage_metadata.model_dump(mode="json", exclude_none=True) if answer.usage_metadata else None
    candidate = answer.candidates[0]
    parts = [part.model_dump(mode="json", exclude_none=True) for part in candidate.content.parts or []]
    return {"parts": parts, "finish": str(candidate.finish_reason), "usage": usage}


def ask(name: str, **options: Any) -> dict[str, Any]:
    made = client(**options)  # held, because a client closes itself when nobody holds it
    return told(made.models.generate_content(model=MODEL, contents=prompt(name)))


async def ask_async(name: str, **options: Any) -> dict[str, Any]:
    made = client(**options)
    try:
        return told(await made.aio.models.generate_content(model=MODEL, contents=prompt(name)))
    finally:
        await made.aio.aclose()


def read_stream(name: str, seen: list[Any]) -> int:
    made = client()
    for answer in made.models.generate_content_stream(model=MODEL, contents=prompt(name)):
        seen.append(told(answer))
    return len(seen)


async def read_stream_async(name: str, seen: list[Any]) -> int:
    made = client()
    try:
        async for answer in await made.aio.models.generate_content_stream(model=MODEL, contents=prompt(name)):
            seen.append(told(answer))
    finally:
        await made.aio.aclose()
    return len(seen)


def watched(seen: list[Any]) -> list[Any]:
    """Return tools that say when they are called; the SDK calls them by itself."""

    def weather_here(city: str) -> str:
        seen.append({"ran": "weather", "city": city})
        return weather(city)

    def clock_here(city: str) -> str:
        seen.append({"ran": "clock", "city": city})
        return clock(city)

    weather_here.__name__, clock_here.__name__ = "weather", "clock"
    weather_here.__doc__, clock_here.__doc__ = weather.__doc__, clock.__doc__
    return [weather_here, clock_here]


@scenario
def sync(seen: list[Any]) -> Any:
    return ask("sync")


@raising_scenario
def forgotten(seen: list[Any]) -> Any:
    """Hold no client: it is closed before it is asked, and a recorder must not keep it alive."""
    return told(client().models.generate_content(model=MODEL, contents=prompt("forgotten")))


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
def tools(seen: list[Any]) -> Any:
    """Run the tools by hand."""
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=prompt("tools"))])]
    made = client()
    config = types.GenerateContentConfig(
        tools=DECLARED, automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )
    while True:
        answer = made.models.generate_content(model=MODEL, contents=contents, config=config)
        if not answer.function_calls:
            return told(answer)
        contents.append(answer.candidates[0].content)  # type: ignore[index]
        results = []
        for call in answer.function_calls:
            result = TOOLS[str(call.name)](**(call.args or {}))
            seen.append([call.name, result])
            results.append(types.Part.from_function_response(name=str(call.name), response={"result": result}))
        contents.append(types.Content(role="user", parts=results))


@scenario
def automatic_tools(seen: list[Any]) -> Any:
    """Let the SDK run the tools."""
    made = client()
    config = types.GenerateContentConfig(tools=watched(seen))
    return told(made.models.generate_content(model=MODEL, contents=prompt("automatic_tools"), config=config))


@scenario
async def automatic_tools_async(seen: list[Any]) -> Any:
    made = client()
    config = types.GenerateContentConfig(tools=watched(seen))
    try:
        answer = await made.aio.models.generate_content(
            model=MODEL, contents=prompt("automatic_tools_async"), config=config
        )
    finally:
        await made.aio.aclose()
    return told(answer)


@scenario
def parallel_tools(seen: list[Any]) -> Any:
    made = client()
    config = types.GenerateContentConfig(tools=watched(seen))
    return told(made.models.generate_content(model=MODEL, contents=prompt("parallel_tools"), config=config))


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
    return ask("cut_body", retries=1)


@raising_scenario
async def cut_body_async(seen: list[Any]) -> Any:
    return await ask_async("cut_body_async", retries=1)


@scenario
async def gather(seen: list[Any]) -> Any:
    made = client()

    async def one(number: int) -> Any:
        return told(await made.aio.models.generate_content(model=MODEL, contents=prompt(f"gather_{number}")))

    try:
        return await asyncio.gather(*(one(number) for number in range(MANY)))
    finally:
        await made.aio.aclose()


@scenario
def threads(seen: list[Any]) -> Any:
    made = client()
    with ThreadPoolExecutor(MANY) as pool:
        return list(
            pool.map(
                lambda number: told(made.models.generate_content(model=MODEL, contents=prompt(f"threads_{number}"))),
                range(MANY),
            )
        )


@scenario
def gzip(seen: list[Any]) -> Any:
    return ask("gzip")


@scenario
async def gzip_async(seen: list[Any]) -> Any:
    return await ask_async("gzip_async")


@scenario
def torn(seen: list[Any]) -> Any:
    return read_stream("torn", seen)


@scenario
async def torn_async(seen: list[Any]) -> Any:
    return await read_stream_async("torn_async", seen)


@raising_scenario
def timeout(seen: list[Any]) -> Any:
    return ask("timeout", retries=1, timeout_ms=300)


@raising_scenario
async def timeout_async(seen: list[Any]) -> Any:
    return await ask_async("timeout_async", retries=1, timeout_ms=300)


@raising_scenario
async def cancelled(seen: list[Any]) -> Any:
    """Give up on a stream from outside after its first piece."""
    came = asyncio.Event()
    made = client()

    async def read() -> None:
        async for answer in await made.aio.models.generate_content_stream(model=MODEL, contents=prompt("cancelled")):
            seen.append(told(answer))
            came.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(read())
    await came.wait()
    task.cancel()
    try:
        await task
    finally:
        await made.aio.aclose()


@scenario
def large(seen: list[Any]) -> Any:
    made = client()
    answer = made.models.generate_content(model=MODEL, contents=prompt("large") + "ä long text " * 40_000)
    return len(answer.text or "")


if __name__ == "__main__":
    main()
