"""Websockets are named as gaps, once for each address, and work as before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import pytest
import websocket
import websockets.asyncio.client
import websockets.sync.client
import websockets.sync.server

import playhead
from playhead.capture.scope import muted


@pytest.fixture
def echo() -> Iterator[str]:
    def handler(connection: Any) -> None:
        for message in connection:
            connection.send(message)

    with websockets.sync.server.serve(handler, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


def by_sync(url: str) -> Any:
    with websockets.sync.client.connect(url, proxy=None) as connection:
        connection.send("hello")
        return connection.recv()


def by_asyncio(url: str) -> Any:
    async def main() -> Any:
        async with websockets.asyncio.client.connect(url, proxy=None) as connection:
            await connection.send("hello")
            return await connection.recv()

    return asyncio.run(main())


def by_aiohttp(url: str) -> Any:
    async def main() -> Any:
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as connection:
            await connection.send_str("hello")
            return await connection.receive_str()

    return asyncio.run(main())


def by_websocket_client(url: str) -> Any:
    connection = websocket.create_connection(url)
    connection.send("hello")
    answer = connection.recv()
    connection.close()
    return answer


CLIENTS = [by_sync, by_asyncio, by_aiohttp, by_websocket_client]


def gaps() -> list[Any]:
    return [
        (event.data["detail"]["source"], event.data["detail"]["where"].partition(" at ")[0])
        for event in playhead.load("@last").events()
        if event.kind == "gap.noted"
    ]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_websocket_is_named_once_for_each_address_without_its_secrets(
    echo: str, client: Callable[[str], Any]
) -> None:
    with playhead.record("talk"):
        for path in ("/live?key=sesame", "/live?key=other", "/else"):
            assert client(f"ws://user:word@{echo}{path}") == "hello"
    assert gaps() == [("websocket", f"ws://{echo}/live"), ("websocket", f"ws://{echo}/else")]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_what_is_muted_or_in_no_run_is_not_named(echo: str, client: Callable[[str], Any]) -> None:
    with playhead.record("talk"):
        token = muted.set(True)
        assert client(f"ws://{echo}/") == "hello"
        muted.reset(token)
    assert gaps() == []
    assert client(f"ws://{echo}/") == "hello"


def test_the_handshake_of_aiohttp_is_an_exchange_that_ends_with_the_switch(echo: str) -> None:
    with playhead.record("talk"):
        by_aiohttp(f"ws://{echo}/live")
    received = [event.data for event in playhead.load("@last").events() if event.kind == "http.received"]
    assert [(data["outcome"], data["status"], data["form"]) for data in received] == [("ok", 101, "none")]
