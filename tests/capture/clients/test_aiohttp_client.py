"""aiohttp against a real server."""

from __future__ import annotations

import asyncio
import gc
import io
import ssl
import warnings
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.capture.clients.raw_server import EVENTS, GZIPPED, JSON, RawServer, attempt, seen, whole

import playhead
from playhead.capture.scope import muted
from playhead.event import wire


async def ask(url: str, method: str = "GET", timeout: Any = None, **options: Any) -> Any:
    async with (
        aiohttp.ClientSession(timeout=timeout or aiohttp.ClientTimeout(5)) as session,
        session.request(method, url, **options) as answer,
    ):
        chunks = [b""]
        if "Transfer-Encoding" not in answer.headers:
            return answer.status, list(answer.headers.items()), await answer.read()
        async for piece, ended in answer.content.iter_chunks():
            chunks[-1] += piece  # in which packets a chunk comes is a matter of chance
            chunks += [b""] if ended else []
        return answer.status, list(answer.headers.items()), [chunk for chunk in chunks if chunk]


def asking(path: str, method: str = "GET", **options: Any) -> Callable[[str], Any]:
    """Return a scenario; options that are made anew for each run are given as functions."""

    def scenario(url: str) -> Any:
        async def main() -> Any:
            made = {name: value() if callable(value) else value for name, value in options.items()}
            return await ask(url + path, method, **made)

        return asyncio.run(main())

    return scenario


PAYLOAD, GONE = "aiohttp.client_exceptions.ClientPayloadError", "aiohttp.client_exceptions.ServerDisconnectedError"
# What arrives of the body, and how the exchange ends. A request that can be repeated is, on a lost connection.
RIGHT: dict[str, tuple[list[bytes], list[tuple[str, int | None, str | None]]]] = {
    "/plain": ([JSON], [("ok", 200, None)]),
    "/apart": ([JSON], [("ok", 200, None)]),
    "/stream": ([b"".join(EVENTS)], [("ok", 200, None)]),
    "/framed": ([b"firstsecondthird"], [("ok", 200, None)]),
    "/until-close": ([b"as long as it lasts"], [("ok", 200, None)]),
    "/gzip": ([GZIPPED], [("ok", 200, None)]),
    "/none": ([b""], [("ok", 204, None)]),
    "/same": ([b""], [("ok", 304, None)]),
    "/hints": ([b"ok"], [("ok", 200, None)]),
    "/failed": ([b"oops"], [("ok", 500, None)]),
    "/moved": ([b"go", JSON], [("ok", 302, None), ("ok", 200, None)]),
    "/cut-length": ([b"only this"], [("error", 200, PAYLOAD)]),
    "/cut-chunks": ([b"onea chu"], [("error", 200, PAYLOAD)]),
    "/reset": ([b"one"], [("error", 200, PAYLOAD)]),
    "/large": ([b"x" * 300_000], [("ok", 200, None)]),
}


@pytest.mark.parametrize("path", RIGHT)
def test_an_answer_is_recorded_as_it_came_and_the_client_sees_no_difference(server: RawServer, path: str) -> None:
    scenario = asking(path, auto_decompress=False) if path == "/gzip" else asking(path)
    found = seen(server, scenario)
    whole(found)
    assert (found.answers, found.outcomes) == RIGHT[path]


@pytest.mark.parametrize("path", ["/silent", "/cut-head"])
def test_an_answer_that_never_comes_is_recorded_for_every_attempt(server: RawServer, path: str) -> None:
    found = seen(server, asking(path))
    whole(found)
    assert found.outcomes == [("error", None, GONE)] * len(found.got)
    assert seen(server, asking(path, "POST")).outcomes == [("error", None, GONE)]


def test_nonsense_is_recorded_as_an_error(server: RawServer) -> None:
    found = seen(server, asking("/nonsense"))
    assert found.answers == [b""]
    assert [(outcome, status) for outcome, status, _ in found.outcomes] == [("error", None)]


def test_a_stream_is_recorded_in_its_chunks_with_their_times(server: RawServer) -> None:
    found = seen(server, asking("/stream"))
    assert found.value[2] == EVENTS
    assert wire.response_chunks(found.received[0].data) == EVENTS
    times = found.received[0].data["chunks"]["at_us"]
    assert times == sorted(times)


async def pieces() -> AsyncIterator[bytes]:
    yield b"first,"
    await asyncio.sleep(0)
    yield b"second"


@pytest.mark.parametrize(
    "given",
    [
        {"json": {"text": "ä"}},
        {"data": b"bytes"},
        {"data": "text ü"},
        {"data": b""},
        {"data": {"a": "1", "b": "2"}},
        {"data": lambda: io.BytesIO(b"of a file " * 5000)},
        {"data": pieces},
        {"data": b"chunked", "chunked": True},
        {"data": b"continued", "expect100": True},
        {"data": pieces, "expect100": True},
        {"data": b"", "method": "GET"},
        {},
    ],
)
def test_a_request_is_recorded_as_it_was_sent(server: RawServer, given: dict[str, Any]) -> None:
    whole(seen(server, asking("/echo", **{"method": "POST", **given})))


def test_a_compressed_request_is_recorded_as_it_was_sent(server: RawServer) -> None:
    found = seen(server, asking("/echo", "POST", data=b"a" * 1000, compress="deflate"))
    whole(found)
    assert zlib.decompress(found.bodies[0]) == b"a" * 1000


def test_a_form_with_a_file_is_recorded_as_it_was_sent(server: RawServer) -> None:
    def form() -> Any:
        form = aiohttp.FormData()
        form.add_field("file", io.BytesIO(b"content"), filename="name.txt")
        form.add_field("text", "value")
        return form

    with playhead.record("form"):  # its boundary is drawn anew for every request
        asking("/echo", "POST", data=form)(server.url)
    event = next(event for event in playhead.load("@last").events() if event.kind == "http.sent")
    assert wire.request_bytes(event.data) == server.got[0].body
    assert b"content" in server.got[0].body


def test_requests_over_one_connection_are_exchanges_of_their_own(server: RawServer) -> None:
    paths = ["/plain", "/stream", "/none", "/gzip", "/failed", "/plain"]

    async def several(url: str) -> Any:
        out = []
        async with aiohttp.ClientSession() as session:
            for path in paths:
                async with session.get(url + path) as answer:
                    out.append(await answer.read())
        return out

    found = seen(server, lambda url: asyncio.run(several(url)))
    whole(found)
    assert len({got.connection for got in found.got}) == 1
    assert found.answers == [RIGHT[path][0][0] for path in paths]


def test_tasks_at_once_do_not_mix_their_bytes(server: RawServer) -> None:
    bodies = [b"body %d " % number * 200 for number in range(20)]

    async def main() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=4)) as session:

            async def post(body: bytes) -> None:
                async with session.post(server.url + "/echo", data=body) as answer:
                    assert (await answer.json())["size"] == len(body)

            await asyncio.gather(*map(post, bodies))

    with playhead.record("tasks"):
        asyncio.run(main())
    events = list(playhead.load("@last").events())
    received = {event.span: event.data for event in events if event.kind == "http.received"}
    sent = [event for event in events if event.kind == "http.sent"]
    assert sorted(wire.request_bytes(event.data) for event in sent) == sorted(bodies)
    for event in sent:
        assert received[event.span]["body"]["size"] == len(wire.request_bytes(event.data))


@pytest.mark.parametrize(("path", "body", "status"), [("/hold", b"one", 200), ("/hold-head", b"", None)])
def test_a_timeout_is_recorded_with_what_had_come(
    server: RawServer, path: str, body: bytes, status: int | None
) -> None:
    found = seen(server, asking(path, timeout=aiohttp.ClientTimeout(total=0.2)))
    assert (found.answers, found.outcomes) == ([body], [("error", status, "TimeoutError")])
    found = seen(server, asking(path, timeout=aiohttp.ClientTimeout(sock_read=0.2)))
    assert found.answers == [body]
    assert [(outcome, code) for outcome, code, _ in found.outcomes] == [("error", status)]
    assert found.outcomes[0][2] != "TimeoutError"


@pytest.mark.parametrize(("path", "body", "status"), [("/hold", b"one", 200), ("/hold-head", b"", None)])
def test_a_cancelled_call_is_recorded_as_cancelled(
    server: RawServer, path: str, body: bytes, status: int | None
) -> None:
    async def cancelled(url: str) -> Any:
        task = asyncio.create_task(ask(url + path))
        await asyncio.sleep(0.2)
        task.cancel()
        return await asyncio.wait([task]) and task.cancelled()

    found = seen(server, lambda url: asyncio.run(cancelled(url)))
    assert found.value is True
    assert (found.answers, found.outcomes) == ([body], [("cancelled", status, "asyncio.exceptions.CancelledError")])


@pytest.mark.parametrize("how", ["close", "release", "leave", "raise", "session", "forget"])
def test_an_answer_that_is_left_early_is_ended_as_closed(server: RawServer, how: str) -> None:
    async def peek(url: str) -> Any:
        session = aiohttp.ClientSession()
        answer = await session.get(url + "/hold")
        first = await answer.content.readany()
        if how in ("close", "release"):
            getattr(answer, how)()
        elif how == "leave":
            async with answer:
                pass
        elif how == "raise":
            try:
                async with answer:
                    raise LookupError
            except LookupError:
                pass
        elif how == "forget":
            del answer
            gc.collect()
        await session.close()
        await asyncio.sleep(0.01)
        return first

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of a connection that nobody closed
        found = seen(server, lambda url: asyncio.run(peek(url)))
    assert (found.value, found.answers) == (b"one", [b"one"])
    assert found.outcomes == [("cancelled", 200, "ClosedByClient")]


def test_raise_for_status_leaves_the_answer_as_it_came(server: RawServer) -> None:
    found = seen(server, asking("/failed", raise_for_status=True))
    assert found.value == [aiohttp.ClientResponseError]
    assert [status for _, status, _ in found.outcomes] == [500]


def test_a_server_that_refuses_is_recorded_with_the_whole_request(server: RawServer) -> None:
    async def refused(url: str) -> Any:
        return await ask("http://127.0.0.1:1/x?y=1", "POST", data=b"all of it")

    found = seen(server, lambda url: asyncio.run(refused(url)))
    assert found.value[0] is aiohttp.ClientConnectorError
    assert (found.bodies, found.sent[0].data["url"]) == ([b"all of it"], "http://127.0.0.1:1/x?y=1")
    assert found.outcomes == [("error", None, "aiohttp.client_exceptions.ClientConnectorError")]


def test_a_body_that_fails_while_it_is_made_ends_the_exchange_with_an_error(server: RawServer) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"first"
        raise LookupError("no more")

    found = seen(server, asking("/echo", "POST", data=broken))
    assert found.bodies == [b"first"]
    assert [(outcome, status) for outcome, status, _ in found.outcomes] == [("error", None)]


def test_an_answer_to_a_head_request(server: RawServer) -> None:
    found = seen(server, asking("/plain", "HEAD"))
    whole(found)
    assert (found.answers, found.outcomes) == ([b""], [("ok", 200, None)])


def test_https_and_proxies_are_recorded_as_the_user_meant_them(
    server: RawServer, secure: RawServer, certificate: Path
) -> None:
    context = ssl.create_default_context(cafile=str(certificate))
    found = seen(secure, asking("/echo", "POST", data=b"body", ssl=lambda: context))
    whole(found)
    assert found.sent[0].data["url"] == f"{secure.url}/echo"

    found = seen(secure, asking("/echo", "POST", data=b"body"))
    assert (found.bodies, found.outcomes[0][0]) == ([b"body"], "error")

    found = seen(secure, asking("/echo", "POST", data=b"body", ssl=lambda: context, proxy=server.url))
    whole(found)
    assert (found.sent[0].data["url"], server.tunnels) == (f"{secure.url}/echo", 2)

    async def forwarded(url: str) -> Any:
        return await ask("http://name.invalid/plain", proxy=url)

    found = seen(server, lambda url: asyncio.run(forwarded(url)))
    whole(found)
    assert found.sent[0].data["url"] == "http://name.invalid/plain"

    server.refuse_tunnel = True
    found = seen(secure, asking("/echo", "POST", data=b"body", ssl=lambda: context, proxy=server.url))
    assert (found.bodies, found.outcomes[0][0], found.got) == ([b"body"], "error", [])


def test_a_connection_made_before_the_run_is_covered(server: RawServer) -> None:
    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            async with session.get(server.url + "/plain") as answer:
                await answer.read()
            with playhead.record("later"):
                async with session.get(server.url + "/stream") as answer:
                    assert await answer.read() == b"".join(EVENTS)
            async with session.get(server.url + "/plain") as answer:
                assert await answer.read() == JSON

    asyncio.run(main())
    events = [event for event in playhead.load("@last").events() if event.kind == "http.received"]
    assert [wire.response_chunks(event.data) for event in events] == [EVENTS]
    assert len({got.connection for got in server.got}) == 1


def test_what_is_muted_is_not_recorded(server: RawServer) -> None:
    def quiet(url: str) -> Any:
        token = muted.set(True)
        try:
            return asking("/plain")(url), attempt(asyncio.run, ask("http://127.0.0.1:1/"))
        finally:
            muted.reset(token)

    assert not seen(server, quiet).sent
