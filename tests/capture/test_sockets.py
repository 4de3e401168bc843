"""Conversations over plain sockets: not recorded, and named."""

from __future__ import annotations

import http.client
import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

import playhead
from playhead.testing import ScriptedProvider


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(self.rfile.readline())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address  # type: ignore[misc]
        server.shutdown()


def gaps(run: playhead.Run) -> list[str]:
    found = [event.data["detail"] for event in run.events() if event.kind == "gap.noted"]
    return [f"{detail['source']} {detail['where']}" for detail in found]


def test_a_connection_that_no_adapter_understands_is_named_once_with_the_line_that_made_it(
    echo: tuple[str, int],
) -> None:
    with playhead.record("agent") as run:
        for _ in range(3):
            with socket.create_connection(echo) as line:
                line.sendall(b"hello\n")
                assert line.recv(100) == b"hello\n"
    loaded = playhead.load(str(run.id))
    (told,) = gaps(loaded)
    assert told.startswith(f"socket {echo[0]}:{echo[1]} at {__name__}:")
    readiness = loaded.readiness()
    assert readiness.replayable
    assert [gap["source"] for gap in readiness.not_captured] == ["socket", "reads"]


def test_what_an_adapter_records_is_not_named() -> None:
    import httpx

    with ScriptedProvider(["hello"]) as provider:
        address = provider.base_url.removeprefix("http://").partition("/")[0]
        with playhead.record("agent") as run:
            httpx.get(f"http://{address}/x")
            connection = http.client.HTTPConnection(address)
            connection.request("GET", "/y")
            connection.getresponse().read()
            connection.close()
    assert gaps(playhead.load(str(run.id))) == []
