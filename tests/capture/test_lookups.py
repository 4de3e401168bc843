from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import playhead
from playhead import _limits
from playhead.capture import lookups
from playhead.testing.provider import ScriptedProvider


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def connections() -> list[dict[str, Any]]:
    events = playhead.load("@last").events()
    return [one.data for one in events if one.kind == "effect.observed" and one.data["what"] == "socket.connected"]


def test_a_connection_says_which_host_was_looked_up_for_it(port: int) -> None:
    async def connect() -> None:
        _, writer = await asyncio.open_connection("LOCALHOST", port, family=socket.AF_INET)
        writer.close()

    with playhead.record("run"):
        socket.create_connection(("127.0.0.1", port)).close()  # by its number
        asyncio.run(connect())
        socket.create_connection(("127.0.0.1", port)).close()
    by_number, by_name, again = connections()
    assert (by_number["target"], "names" in by_number["detail"]) == (f"127.0.0.1:{port}", False)
    assert by_name["target"] == again["target"] == by_number["target"]
    assert by_name["detail"]["names"] == again["detail"]["names"] == ["localhost"]


def test_nothing_is_remembered_and_nothing_replaced_when_the_last_run_has_closed(port: int) -> None:
    original = socket.getaddrinfo
    with playhead.record("run"):
        socket.getaddrinfo("localhost", port)
        assert lookups.names_of("127.0.0.1:1") == ["localhost"]
    assert socket.getaddrinfo is original
    assert lookups.names_of("127.0.0.1:1") == []


def test_remembering_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "LOOKUPS_MAX", 2)
    for number in (1, 2, 3):
        lookups._remember("host", [f"10.0.0.{number}"])
    try:
        assert [lookups.names_of(f"10.0.0.{number}:80") for number in (1, 2, 3)] == [[], ["host"], ["host"]]
    finally:
        lookups.uninstall()


def test_an_audit_tells_a_request_and_its_connection_as_one() -> None:
    async def ask(url: str) -> None:
        async with httpx.AsyncClient() as client:
            await client.get(url)

    with ScriptedProvider(["x"]) as provider:
        root = provider.root_url.replace("127.0.0.1", "localhost")
        place = root.removeprefix("http://")
        with playhead.record("run"):
            with playhead.step("sync"):
                httpx.get(f"{root}/nothing")
            with playhead.step("async"):
                asyncio.run(ask(f"{root}/nothing"))
    told = [one for one in playhead.audit("@last").findings if one.rule == "network"]
    assert [(one.target, one.path) for one in told] == [(place, "step sync"), (place, "step async")]
    for one in told:
        assert one.detail.startswith(f"{place}: GET, ")
        assert "127.0.0.1" in one.detail
        assert len(one.seqs) >= 2
