"""google-genai calls the functions of an agent by itself: each call is told once, also in the middle of a stream."""

# Without annotations from __future__: google-genai 1 cannot call tools whose annotations are text.
import asyncio
from typing import Any

import pytest
from tests.capture.frameworks.telling import Told, told

import playhead
from playhead.testing import ScriptedProvider, Text, ToolCall, ToolCalls

genai = pytest.importorskip("google.genai", reason="google-genai is not installed here; the matrix has it")

from google.genai import types  # noqa: E402


def weather(city: str) -> str:
    """Say how warm it is."""
    return f"mild in {city}"


async def people(city: str) -> int:
    """Count the people."""
    return len(city)


def broken(number: int) -> str:
    """Fail."""
    raise ValueError(f"no {number}")


@playhead.tool(effects=["write"])
def saved(text: str) -> str:
    """Save a text."""
    return text.upper()


SYNC = [weather, broken, saved]
ALL: list[Any] = [*SYNC, people]


def client(provider: ScriptedProvider) -> Any:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=provider.google_url))


def asked(tools: list[Any]) -> dict[str, Any]:
    return {"model": "gemini-2.5-flash", "contents": "go", "config": types.GenerateContentConfig(tools=tools)}


def plain(provider: ScriptedProvider) -> Any:
    made = client(provider)
    return made.models.generate_content(**asked(SYNC)).text


def asynchronous(provider: ScriptedProvider) -> Any:
    async def ask() -> Any:
        made = client(provider)
        return (await made.aio.models.generate_content(**asked(ALL))).text

    return asyncio.run(ask())


def streamed(provider: ScriptedProvider) -> Any:
    made = client(provider)
    return len(list(made.models.generate_content_stream(**asked(SYNC))))


def streamed_async(provider: ScriptedProvider) -> Any:
    async def ask() -> Any:
        made = client(provider)
        return len([chunk async for chunk in await made.aio.models.generate_content_stream(**asked(ALL))])

    return asyncio.run(ask())


def chat(provider: ScriptedProvider) -> Any:
    made = client(provider)
    chat = made.chats.create(model="gemini-2.5-flash", config=types.GenerateContentConfig(tools=SYNC))
    return chat.send_message("go").text


WAYS = [pytest.param(way, id=way.__name__) for way in (plain, asynchronous, streamed, streamed_async, chat)]


def one(name: str, **arguments: Any) -> list[Any]:
    return [ToolCalls((ToolCall(name, arguments, "call_a"),)), Text("done")]


def model_spans(seen: Told) -> list[str]:
    return [event.span for event in seen.events if event.kind == "model.invoked"]


@pytest.fixture(autouse=True)
def other_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check what is asked by whom in these tests: the answers have another form than those of OpenAI."""
    monkeypatch.setattr(Told, "check", lambda self: None)


@pytest.mark.parametrize("way", WAYS)
def test_a_function_is_told_once_under_the_call_that_asked_for_it(way: Any) -> None:
    seen = told(one("weather", city="Rome"), way)
    tool = seen.tool("call_a")
    assert (tool.input, tool.output, tool.inferred) == ({"city": "Rome"}, "mild in Rome", False)
    assert tool.asked_by == model_spans(seen)[0]
    assert len(seen.tools) == 1
    assert seen.steps[0] == ["turn 1", "model", "weather"]


@pytest.mark.parametrize("way", WAYS)
def test_calls_that_are_alike_are_told_apart(way: Any) -> None:
    calls = tuple(ToolCall("weather", {"city": "Rome"}, call) for call in ("call_a", "call_b"))
    seen = told([ToolCalls(calls), Text("done")], way)
    assert [tool.call for tool in seen.tools] == ["call_a", "call_b"]


@pytest.mark.parametrize("way", WAYS)
def test_a_call_without_an_id_is_told_once(way: Any) -> None:
    seen = told([ToolCalls((ToolCall("weather", {"city": "Rome"}),)), Text("done")], way)
    assert [(tool.call, tool.asked_by, tool.inferred) for tool in seen.tools] == [(None, model_spans(seen)[0], False)]


@pytest.mark.parametrize("way", WAYS)
def test_the_error_is_the_one_that_the_function_raised(way: Any) -> None:
    seen = told(one("broken", number=7), way)
    assert [(tool.status, tool.error) for tool in seen.tools] == [("error", "ValueError")]


@pytest.mark.parametrize("way", [asynchronous, streamed_async])
def test_an_asynchronous_function_is_told(way: Any) -> None:
    assert told(one("people", city="Rome"), way).tool("call_a").output == 4


@pytest.mark.parametrize("way", WAYS)
def test_a_function_that_is_decorated_too_is_told_once_with_its_effects(way: Any) -> None:
    seen = told(one("saved", text="x"), way)
    assert [(tool.name, tool.effects) for tool in seen.tools] == [("saved", ["write"])]
