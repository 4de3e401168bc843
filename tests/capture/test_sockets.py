"""Conversations over plain sockets: not recorded, and named."""

from __future__ import annotations

import asyncio
import http.client
import logging.handlers
import multiprocessing
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

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


def told(work: Callable[[], Any]) -> list[str]:
    """Do something in a run, and return what was named, without the number of the line."""
    with playhead.record("agent") as run:
        work()
    return [gap.rpartition(":")[0] for gap in gaps(playhead.load(str(run.id)))]


def test_a_unix_socket_is_named_by_its_path(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")

    def work() -> None:
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(path)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(5)
        assert told(work) == [f"socket {path} at {__name__}"]


def test_datagrams_are_named_where_they_go_and_where_they_are_awaited() -> None:
    def work() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as here, socket.socket(type=socket.SOCK_DGRAM) as there:
            here.bind(("127.0.0.1", 0))
            port = here.getsockname()[1]
            for _ in range(2):
                there.sendto(b"question", ("127.0.0.1", port))
                question, sender = here.recvfrom(100)
                here.sendto(question, sender)
                assert there.recv(100) == b"question"
            there.connect(("127.0.0.1", port))
            there.sendmsg([b"one more"])
            ports.append(port)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as here:
            here.bind("\0playhead-test")

    ports: list[int] = []
    assert told(work) == [
        f"socket datagrams to 127.0.0.1:{ports[0]} at {__name__}",
        f"socket datagrams that come to @playhead-test at {__name__}",
    ]


def test_connections_to_a_server_of_the_agents_are_named_at_the_first_with_the_line_that_made_it() -> None:
    def work() -> None:
        with socket.create_server(("127.0.0.1", 0)):
            pass  # to find a port that is free
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            for _ in range(2):
                caller = threading.Thread(target=socket.create_connection, args=(address,))  # no code of the agent's
                caller.start()
                server.accept()[0].close()
                caller.join()
            ports.append(address[1])

    ports: list[int] = []
    assert told(work) == [f"socket connections to 127.0.0.1:{ports[0]} at {__name__}"]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_connections_to_a_server_of_a_loop_are_named(loop: str) -> None:
    run = asyncio.run if loop == "asyncio" else pytest.importorskip("uvloop").run

    async def main() -> None:
        async def serve(reader: Any, writer: Any) -> None:
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", ports[0])
        assert await reader.read() == b""
        writer.close()
        server.close()

    ports: list[int] = []
    found, source = told(lambda: run(main())), "socket" if loop == "asyncio" else loop
    assert f"{source} connections to 127.0.0.1:{ports[0]} at {__name__}" in found


def test_what_talks_for_itself_is_not_named(tmp_path: Path) -> None:
    def work() -> None:
        handler = logging.handlers.SysLogHandler(str(tmp_path / "log"))
        handler.emit(logging.makeLogRecord({"msg": "a line"}))
        handler.close()
        with Listener(str(tmp_path / "parts"), "AF_UNIX") as listener, Client(listener.address):
            listener.accept().close()
        asyncio.run(asyncio.sleep(0))  # which talks to itself
        with ScriptedProvider(["hello"]) as provider:
            http.client.HTTPConnection(provider.base_url.removeprefix("http://").partition("/")[0]).connect()

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(tmp_path / "log"))
        assert told(work) == []


def test_a_process_of_multiprocessing_names_what_it_talks_to_as_any_other(echo: tuple[str, int]) -> None:
    def work() -> None:
        process = multiprocessing.get_context("fork").Process(target=lambda: socket.create_connection(echo).close())
        process.start()
        process.join()

    assert told(work) == [f"socket {echo[0]}:{echo[1]} at {__name__}"]


def test_a_handler_of_a_server_names_what_it_talks_to(echo: tuple[str, int]) -> None:
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            socket.create_connection(echo).close()
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    def work() -> None:
        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            connection = http.client.HTTPConnection(*server.server_address)
            connection.request("GET", "/")
            assert connection.getresponse().status == 204
            thread.join()
            ports.append(server.server_port)

    ports: list[int] = []
    assert told(work) == [
        f"socket connections to 127.0.0.1:{ports[0]} at {__name__}",
        f"socket {echo[0]}:{echo[1]} at {__name__}",
    ]


def test_no_code_of_the_programs_own_sockets_is_run_for_the_record() -> None:
    class Failure(Exception):
        pass

    def fail(self: object, *_: object) -> None:
        raise Failure

    class Own(socket.socket):
        type = property(fail)  # type: ignore[assignment]
        getsockname = fail  # type: ignore[assignment]
        __hash__ = fail  # type: ignore[assignment]
        __eq__ = fail  # type: ignore[assignment]

    with playhead.record("agent") as run, Own(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
    recorded = playhead.load(str(run.id))
    assert [event.data for event in recorded.events() if event.kind == "gap.noted"] == []
