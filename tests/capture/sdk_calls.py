"""Make calls with real SDKs, and look at what was recorded of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai

import playhead
from playhead.event import wire
from playhead.testing import ScriptedProvider

QUESTION: list[Any] = [{"role": "user", "content": "Grüß dich, 日本語?"}]


FAST: dict[str, Any] = {"retry_after_ms": 1}


def openai_call(provider: ScriptedProvider, **options: Any) -> Any:
    with openai.OpenAI(base_url=provider.base_url, api_key="sk-none", max_retries=2, timeout=5) as client:
        return client.chat.completions.create(model="gpt-5", messages=QUESTION, **options).model_dump()


def openai_stream(provider: ScriptedProvider) -> Any:
    with openai.OpenAI(base_url=provider.base_url, api_key="sk-none", max_retries=2, timeout=5) as client:
        stream = client.chat.completions.create(model="gpt-5", messages=QUESTION, stream=True)
        return [chunk.model_dump() for chunk in stream]


def openai_async(provider: ScriptedProvider) -> Any:
    async def main() -> Any:
        async with openai.AsyncOpenAI(
            base_url=provider.base_url, api_key="sk-none", max_retries=2, timeout=5
        ) as client:
            return (await client.responses.create(model="gpt-5", input="?")).model_dump()

    return asyncio.run(main())


def openai_async_stream(provider: ScriptedProvider) -> Any:
    async def main() -> Any:
        async with openai.AsyncOpenAI(
            base_url=provider.base_url, api_key="sk-none", max_retries=2, timeout=5
        ) as client:
            stream = await client.responses.create(model="gpt-5", input="?", stream=True)
            return [event.model_dump() async for event in stream]

    return asyncio.run(main())


def anthropic_call(provider: ScriptedProvider) -> Any:
    with anthropic.Anthropic(
        base_url=provider.anthropic_url, api_key="sk-ant-none", max_retries=2, timeout=5
    ) as client:
        return client.messages.create(model="claude", max_tokens=99, messages=QUESTION).model_dump()


def anthropic_stream(provider: ScriptedProvider) -> Any:
    with anthropic.Anthropic(
        base_url=provider.anthropic_url, api_key="sk-ant-none", max_retries=2, timeout=5
    ) as client:
        manager = client.messages.stream(model="claude", max_tokens=99, messages=QUESTION)
        with manager as stream:
            return [event.model_dump() for event in stream]


SDKS: list[Callable[..., Any]] = [
    openai_call, openai_stream, openai_async, openai_async_stream, anthropic_call, anthropic_stream,
]  # fmt: skip


LONG = "An answer in several pieces: Grüße aus 東京, and more of it, and more."


def told(sdk: Callable[[ScriptedProvider], Any], provider: ScriptedProvider) -> Any:
    """Return what a call gives, or how it fails: every exception of the chain, with its message."""
    try:
        return sdk(provider)
    except Exception as error:
        trail: list[str] = []
        problem: BaseException | None = error
        while problem is not None:
            trail.append(f"{type(problem).__module__}.{type(problem).__qualname__}: {problem}")
            problem = problem.__cause__
        return trail


def whole(provider: ScriptedProvider) -> list[playhead.Event]:
    """Check that each exchange of the provider is in the last run once, byte for byte; return the openings."""
    events = list(playhead.load("@last").events())
    invoked = [event for event in events if event.kind in ("model.invoked", "http.sent")]
    responded = {event.span: event for event in events if event.kind in ("model.responded", "http.received")}
    exchanges = provider.exchanges
    assert [wire.request_bytes(event.data) for event in invoked] == [one.request.body for one in exchanges]
    assert len(responded) == len(invoked)
    for event, one in zip(invoked, exchanges, strict=True):
        answer = responded[event.span].data
        http = answer.get("http") or answer
        assert http.get("status") == one.status
        assert one.body.startswith(wire.response_bytes(answer))
        if not one.cut and one.status is not None and one.status < 400:  # of a failed stream SDKs do not read the rest
            assert wire.response_bytes(answer) == one.body
        assert [name for name, _ in event.data.get("http", event.data)["headers"]] == [
            name for name, _ in one.request.headers
        ]
        if one.status is not None:
            assert [name for name, _ in http["headers"]] == [name for name, _ in one.headers]
        assert sum((answer.get("chunks") or {"sizes": [len(wire.response_bytes(answer))]})["sizes"]) == len(
            wire.response_bytes(answer)
        )
    assert not [event for event in events if event.kind == "gap.noted"]
    verdict = playhead.verify("@last")
    assert (verdict.integrity.verdict, verdict.completeness.verdict) == ("intact", "complete")
    return invoked


def same_port(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))
