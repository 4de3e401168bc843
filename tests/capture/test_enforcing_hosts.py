"""A host is asked about before anybody is told of it: before it is looked up, and before a proxy is asked for a way."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import requests

import playhead
from playhead.errors import EffectDenied, PolicyDenied
from playhead.policy.rules import FILE
from playhead.testing import ScriptedProvider


def rule(*allowed: str) -> None:
    Path(FILE).write_text(f'mode = "enforce"\n[capabilities."net.connect"]\nallow = {list(allowed)}\n')


@pytest.mark.parametrize(
    "look",
    [
        lambda: socket.gethostbyname("evil.invalid"),
        lambda: socket.gethostbyname_ex("evil.invalid"),
        lambda: socket.getaddrinfo("evil.invalid", None),
        lambda: socket.getaddrinfo(b"evil.invalid", "http"),
        lambda: socket.gethostbyaddr("evil.invalid"),
    ],
    ids=["gethostbyname", "gethostbyname_ex", "without a port", "with one", "gethostbyaddr"],
)
def test_a_host_is_not_looked_up_that_is_not_allowed(look: Callable[[], Any]) -> None:
    rule("good.invalid")
    with playhead.record("r"), pytest.raises(EffectDenied, match=r"evil\.invalid"):
        look()


def test_the_network_is_not_asked_what_an_address_is_called_that_is_not_allowed() -> None:
    rule("good.invalid")
    with playhead.record("r"):
        for look in (lambda: socket.gethostbyaddr("192.0.2.1"), lambda: socket.getnameinfo(("192.0.2.1", 80), 0)):
            with pytest.raises(EffectDenied, match=r"192\.0\.2\.1"):
                look()
        assert socket.getfqdn("192.0.2.1") == "192.0.2.1"
        assert socket.getnameinfo(("192.0.2.1", 80), socket.NI_NUMERICHOST)[0] == "192.0.2.1"
        for look in (lambda: socket.gethostbyaddr("127.0.0.1"), lambda: socket.getnameinfo(("127.0.0.1", 80), 0)):
            with contextlib.suppress(socket.herror, socket.gaierror):  # not every machine knows its own name
                look()


@pytest.mark.parametrize("allowed", ["good.invalid", "good.invalid:9", "*.invalid:*"])
def test_a_host_that_is_allowed_is_looked_up_also_without_a_port(allowed: str) -> None:
    rule(allowed)
    with playhead.record("r"):
        for look in (lambda: socket.gethostbyname("good.invalid"), lambda: socket.getaddrinfo("good.invalid", None)):
            with pytest.raises(socket.gaierror):
                look()


def test_this_machine_needs_no_leave_to_be_looked_up_nor_to_listen_on() -> None:
    async def serve() -> None:
        server = await asyncio.start_server(lambda *_: None, "localhost", 0)
        server.close()
        await server.wait_closed()

    rule("good.invalid")
    with playhead.record("r"):
        asyncio.run(serve())
        socket.getaddrinfo("127.0.0.1", 0, flags=socket.AI_PASSIVE)
        socket.getaddrinfo("127.0.0.1", 80, 0, 0, 0, socket.AI_PASSIVE)
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(EffectDenied):
                socket.getaddrinfo(host, 80)
        socket.gethostbyname("localhost")
        with contextlib.suppress(socket.gaierror):  # not every machine knows its own name
            socket.gethostbyname(socket.gethostname())


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """Serve as a proxy that keeps what it is asked for, and has no way to anywhere."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    got.append(connection.recv(100))
                    connection.sendall(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", got
        server.shutdown(socket.SHUT_RDWR)


def _by_aiohttp(proxy: str) -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            await session.get("https://evil.invalid/", proxy=proxy)

    asyncio.run(ask())


@pytest.mark.parametrize(
    "ask", [lambda proxy: requests.get("https://evil.invalid/", proxies={"https": proxy}), _by_aiohttp]
)
def test_a_proxy_is_not_asked_for_a_way_to_a_host_that_is_not_allowed(
    ask: Callable[[str], Any], proxy: tuple[str, list[bytes]]
) -> None:
    rule("127.0.0.1")
    with playhead.record("r"), pytest.raises(PolicyDenied, match=r"evil\.invalid:443"):
        ask(proxy[0])
    assert not any(proxy[1])
    rule("127.0.0.1", "evil.invalid")
    with playhead.record("r"), pytest.raises((requests.RequestException, aiohttp.ClientError)):
        ask(proxy[0])
    assert proxy[1][-1].startswith(b"CONNECT evil.invalid:443")


def test_a_loop_that_looks_up_hosts_in_c_tells_which_they_are() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def ask(url: str) -> str:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text()

    rule("localhost")
    with ScriptedProvider(["x"]) as provider:
        url = provider.root_url.replace("127.0.0.1", "localhost")
        with playhead.record("r"):
            assert uvloop.run(ask(url))
            with pytest.raises((PolicyDenied, aiohttp.ClientError)):
                uvloop.run(ask(provider.root_url))
