"""A transport of somebody's own is named where nothing records what goes through it, and only there."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import httpx2
import pytest

import playhead
from playhead.testing import ScriptedProvider


class Own(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    def handle_request(self, request: Any) -> httpx2.Response:
        return httpx2.Response(200, text="made up")

    async def handle_async_request(self, request: Any) -> httpx2.Response:
        return httpx2.Response(200, text="made up")


class Passing(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    def __init__(self) -> None:
        self._inner, self._inner_async = httpx2.HTTPTransport(), httpx2.AsyncHTTPTransport()

    def handle_request(self, request: Any) -> httpx2.Response:
        return self._inner.handle_request(request)

    async def handle_async_request(self, request: Any) -> httpx2.Response:
        return await self._inner_async.handle_async_request(request)


def ask(kind: str, transport: Any, url: str) -> None:
    async def asynchronously() -> None:
        async with httpx2.AsyncClient(transport=transport) as client:
            for _ in range(2):
                assert (await client.get(url)).status_code

    if kind == "async":
        asyncio.run(asynchronously())
        return
    with httpx2.Client(transport=transport) as client:
        for _ in range(2):
            assert client.get(url).status_code


class Spoiling(Own):
    def handle_request(self, request: Any) -> httpx2.Response:
        request.url = request.headers = None
        raise ValueError("of the agent")


class Outer(Passing):
    def __init__(self) -> None:
        self._client = httpx2.Client(transport=Passing())

    def handle_request(self, request: Any) -> httpx2.Response:
        return self._client.send(request)


def told() -> tuple[list[dict[str, Any]], int]:
    events = list(playhead.load("@last").events())
    gaps = [event.data for event in events if event.kind == "gap.noted"]
    return gaps, sum(event.kind == "http.sent" for event in events)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_transport_that_nobody_records_is_named_once(kind: str) -> None:
    with playhead.record("own"):
        ask(kind, Own(), "http://user:pw@model.test/v1/x?key=1")
    gaps, sent = told()
    assert sent == 0
    assert [(gap["reason"], gap["count"]) for gap in gaps] == [("not_captured", 0)]
    where, _, line = gaps[0]["detail"]["where"].partition(" at ")
    assert line.startswith("tests.capture.clients.test_httpx_clients:")
    assert where.endswith("test_httpx_clients.Own to http://model.test")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_transport_that_uses_a_recorded_one_is_not(kind: str) -> None:
    with ScriptedProvider(["x"]) as provider, playhead.record("passing"):
        ask(kind, Passing(), provider.base_url)
    assert told() == ([], 2)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_exports_of_telemetry_are_left_out_there_too(kind: str) -> None:
    with playhead.record("export"), httpx2.Client(transport=Own()) as client:
        client.post("https://cloud.langfuse.com/api/public/ingestion", content=b"{}")
    assert told() == ([], 0)


def test_the_error_of_a_transport_comes_out_as_it_is() -> None:
    def agent() -> None:
        with playhead.record("spoiled"), httpx2.Client(transport=Spoiling()) as client:
            client.get("http://model.test/")

    with pytest.raises(ValueError, match="of the agent"):
        agent()


def test_a_transport_that_uses_a_client_that_is_recorded_is_no_gap() -> None:
    with ScriptedProvider(["x"]) as provider, playhead.record("outer"):
        ask("sync", Outer(), provider.base_url)
    assert told() == ([], 2)


def test_a_request_that_is_given_up_in_another_context_is_given_up_quietly() -> None:
    class Waiting(Own):
        async def handle_async_request(self, request: Any) -> httpx2.Response:
            await asyncio.sleep(60)
            raise AssertionError

    async def begin() -> Any:
        client = httpx2.AsyncClient(transport=Waiting())
        request = client.get("http://model.test/")
        contextvars.copy_context().run(request.send, None)
        return request

    with playhead.record("closed"):
        asyncio.run(begin()).close()
