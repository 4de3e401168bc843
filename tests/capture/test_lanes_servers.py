"""Lanes of servers: connections come as chance has it, and use up no number of what the agent begins itself."""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.capture.test_lanes import act, recorded


class Outside:
    """A thread from before the run, that connects to what it is told, one connection after the other."""

    def __init__(self) -> None:
        self.count = 0
        self._asked: queue.Queue[tuple[Any, Callable[[], object]] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def connect(self, address: Any, done: Callable[[], object]) -> None:
        self._asked.put((address, done))

    def end(self) -> None:
        self._asked.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            address, done = asked
            for _ in range(self.count):
                with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as line:
                    line.connect(address)
                    line.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    while line.recv(100):
                        pass
            done()


@pytest.fixture
def outside() -> Iterator[Outside]:
    caller = Outside()
    yield caller
    caller.end()


async def called(outside: Outside, server: Any) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    outside.connect(server.sockets[0].getsockname(), lambda: loop.call_soon_threadsafe(done.set))
    await done.wait()
    server.close()


async def streams(outside: Outside) -> None:
    async def serve(reader: Any, writer: Any) -> None:
        await reader.readline()
        act(f"served {len(served)}")
        served.append(None)
        await asyncio.create_task(asyncio.sleep(0))
        writer.close()

    served: list[None] = []
    await called(outside, await asyncio.start_server(serve, "127.0.0.1", 0))


async def protocol(outside: Outside) -> None:
    class Serving(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            self.tasks = [asyncio.ensure_future(self.serve("made"))]

        def data_received(self, data: bytes) -> None:
            self.tasks.append(asyncio.ensure_future(self.serve("received")))

        async def serve(self, what: str) -> None:
            act(f"served {what} {len(served)}")
            served.append(None)
            if what == "received":
                self.transport.close()

    served: list[None] = []
    await called(outside, await asyncio.get_running_loop().create_server(Serving, "127.0.0.1", 0))


async def aiohttp_web(outside: Outside) -> None:
    web = pytest.importorskip("aiohttp.web")

    async def serve(request: Any) -> Any:
        act(f"served {len(served)}")
        served.append(None)
        await asyncio.create_task(asyncio.sleep(0))
        return web.Response(text="ok")

    served: list[None] = []
    application = web.Application()
    application.router.add_get("/", serve)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    await called(outside, site._server)
    await runner.cleanup()


def in_asyncio(serving: Callable[[Outside], Awaitable[None]], outside: Outside) -> Callable[[], None]:
    async def main() -> None:
        await serving(outside)
        await asyncio.create_task(asyncio.to_thread(act, "after"))

    return lambda: asyncio.run(main())


def in_uvloop(serving: Callable[[Outside], Awaitable[None]], outside: Outside) -> Callable[[], None]:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        await serving(outside)
        await asyncio.create_task(asyncio.to_thread(act, "after"))

    return lambda: uvloop.run(main())


def lanes_of(outside: Outside, work: Callable[[], None], *, apart: bool = True) -> None:
    """Check that the lane of what comes later is the same however many connections there are, and each has its own."""
    after = set()
    for outside.count in (1, 4):
        found = recorded(work)
        after.add(found.pop("after"))
        assert len(found) % outside.count == 0
        assert len(found) >= outside.count
        assert not apart or len({*found.values()}) == len(found), "each of what is served has a lane of its own"
    assert len(after) == 1, after


@pytest.mark.parametrize("serving", [streams, protocol, aiohttp_web])
@pytest.mark.parametrize("run", [in_asyncio, in_uvloop])
def test_connections_to_a_server_of_asyncio_shift_no_lane(outside: Outside, run: Any, serving: Any) -> None:
    # From 3.12 on aiohttp makes its tasks with `asyncio.Task`, which has the lane of its maker: with uvloop, the server's.
    lanes_of(outside, run(serving, outside), apart=(run, serving) != (in_uvloop, aiohttp_web))


@pytest.mark.parametrize("family", ["tcp", "unix"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_connections_to_a_server_of_anyio_shift_no_lane(
    outside: Outside, backend: str, family: str, tmp_path: Path
) -> None:
    anyio = pytest.importorskip("anyio")
    if backend == "trio":
        pytest.importorskip("trio")
    times = iter(range(10))

    async def main() -> None:
        async def serve(stream: Any) -> None:
            async with stream:
                await stream.receive()
                act(f"served {len(served)}")
                served.append(None)

        served: list[None] = []
        if family == "tcp":
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        else:
            listener = await anyio.create_unix_listener(tmp_path / f"socket{next(times)}")
        address = listener.extra(anyio.abc.SocketAttribute.local_address)
        token, done = anyio.lowlevel.current_token(), anyio.Event()
        outside.connect(address, lambda: anyio.from_thread.run_sync(done.set, token=token))
        async with anyio.create_task_group() as group:

            async def end() -> None:
                await done.wait()
                group.cancel_scope.cancel()

            group.start_soon(end)
            async with listener:
                await listener.serve(serve)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, act, "after")

    lanes_of(outside, lambda: anyio.run(main, backend=backend))


def test_connections_to_a_server_of_trio_shift_no_lane(outside: Outside) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        async def serve(stream: Any) -> None:
            async with stream:
                await stream.receive_some()
                act(f"served {len(served)}")
                served.append(None)

        served: list[None] = []
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        token, done = trio.lowlevel.current_trio_token(), trio.Event()
        outside.connect(listeners[0].socket.getsockname(), lambda: token.run_sync_soon(done.set))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, serve, listeners)
            await done.wait()
            nursery.cancel_scope.cancel()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, act, "after")

    lanes_of(outside, lambda: trio.run(main))
