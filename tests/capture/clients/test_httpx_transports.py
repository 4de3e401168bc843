"""httpx and its fork httpx2, sync and async, against real servers: recorded exactly, and nothing changes."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
from tests.capture.clients.raw_server import ANSWERS, EVENTS, GZIPPED, JSON, RawServer, Seen, seen, whole

import playhead
from playhead.event import wire
from playhead.testing import ScriptedProvider

LIBRARIES = [httpx, httpx2]
Ask = Callable[..., Any]


class Way:
    """One library, in one of its two ways, with the same few verbs."""

    def __init__(self, library: Any, asynchronous: bool) -> None:
        self.library, self.asynchronous = library, asynchronous

    def request(self, method: str, url: str, **options: Any) -> Any:
        """Return the whole answer."""
        ours = {name: options.pop(name) for name in ("follow_redirects", "timeout", "transport") if name in options}
        if not self.asynchronous:
            with self.library.Client(trust_env=False, **ours) as client:
                return client.request(method, url, **options)

        async def ask() -> Any:
            async with self.library.AsyncClient(trust_env=False, **ours) as client:
                return await client.request(method, url, **options)

        return asyncio.run(ask())

    def chunks(self, url: str, most: int | None = None) -> list[bytes]:
        """Return the chunks of an answer as they come, all or the first ones."""
        if not self.asynchronous:
            with self.library.Client(trust_env=False) as client, client.stream("GET", url) as answer:
                return list(itertools.islice(answer.iter_raw(), most))

        async def ask() -> list[bytes]:
            out: list[bytes] = []
            async with self.library.AsyncClient(trust_env=False) as client, client.stream("GET", url) as answer:
                async for chunk in answer.aiter_raw():
                    out.append(chunk)
                    if len(out) == most:
                        break
            return out

        return asyncio.run(ask())

    def pieces(self, parts: list[Any]) -> Any:
        """Return a body that is made while it is sent."""
        if not self.asynchronous:
            return iter(parts)

        async def produce() -> AsyncIterator[Any]:
            for part in parts:
                yield part

        return produce()


@pytest.fixture(
    params=[(lib, way) for lib in LIBRARIES for way in (False, True)],
    ids=lambda p: f"{p[0].__name__}-{'async' if p[1] else 'sync'}",
)
def way(request: pytest.FixtureRequest) -> Way:
    return Way(*request.param)


def told(answer: Any) -> Any:
    """Return what a caller can see of an answer."""
    return (
        answer.status_code, answer.headers.raw, answer.content, answer.http_version, answer.reason_phrase,
        sorted(answer.extensions), str(answer.url), answer.num_bytes_downloaded, answer.elapsed.total_seconds() > 0,
        type(answer.stream).__name__, type(answer.request.stream).__name__, len(answer.history), answer.is_closed,
    )  # fmt: skip


# What arrives of the body, and how the exchange ends; the error without its module, which differs between the two.
RIGHT: dict[str, tuple[bytes, str, int | None, str | None]] = {
    "/plain": (JSON, "ok", 200, None),
    "/apart": (JSON, "ok", 200, None),
    "/stream": (b"".join(EVENTS), "ok", 200, None),
    "/framed": (b"firstsecondthird", "ok", 200, None),
    "/until-close": (b"as long as it lasts", "ok", 200, None),
    "/gzip": (GZIPPED, "ok", 200, None),
    "/none": (b"", "ok", 204, None),
    "/same": (b"", "ok", 304, None),
    "/hints": (b"ok", "ok", 200, None),
    "/failed": (b"oops", "ok", 500, None),
    "/moved": (b"go", "ok", 302, None),
    "/cut-length": (b"only this", "error", 200, "RemoteProtocolError"),
    "/cut-chunks": (b"onea chu", "error", 200, "RemoteProtocolError"),
    "/cut-head": (b"", "error", None, "RemoteProtocolError"),
    "/reset": (b"one", "error", 200, "ReadError"),
    "/silent": (b"", "error", None, "RemoteProtocolError"),
    "/nonsense": (b"", "error", None, "RemoteProtocolError"),
    "/large": (b"x" * 300_000, "ok", 200, None),
}


def outcome_of(found: Seen) -> tuple[str, int | None, str | None]:
    outcome, status, error = found.outcomes[0]
    return outcome, status, None if error is None else error.rpartition(".")[2]


@pytest.mark.parametrize("path", RIGHT)
def test_an_answer_is_recorded_as_it_came_and_the_client_sees_no_difference(
    server: RawServer, way: Way, path: str
) -> None:
    found = seen(server, lambda url: told(way.request("GET", url + path)))
    whole(found)
    body, *ending = RIGHT[path]
    assert found.answers == [body]
    assert outcome_of(found) == tuple(ending)
    assert found.sent[0].data["url"] == server.url + path


def test_the_table_of_answers_is_tried_whole() -> None:
    assert set(RIGHT) | {"/hold", "/hold-head"} == set(ANSWERS)


def test_a_failure_has_the_same_message_and_the_same_causes(server: RawServer, way: Way) -> None:
    def failure(url: str) -> list[str]:
        with pytest.raises(way.library.HTTPError) as caught:
            way.request("GET", url)
        trail, error = [], caught.value
        while error is not None:
            trail.append(f"{type(error).__module__}.{type(error).__qualname__}: {error}")
            error = error.__cause__
        return trail

    for path in ("/cut-chunks", "/silent", "/nonsense"):
        seen(server, lambda url, path=path: failure(url + path))
    closed = "http://127.0.0.1:1"
    bare = failure(closed)
    with playhead.record("refused"):
        assert failure(closed) == bare
    received = last("http.received")
    assert [(event.data["outcome"], event.data["error"]["type"].rpartition(".")[2]) for event in received] == [
        ("error", "ConnectError")
    ]


def last(*kinds: str) -> list[playhead.Event]:
    """Return the events of some kinds of the last run."""
    return [event for event in playhead.load("@last").events() if event.kind in kinds]


BODIES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "json": {"json": {"ü": [1, 2.5, None], "$ref": "#/a"}},
    "form": {"data": {"a": "1", "b": "ü &="}},
    "bytes": {"content": b"\x00\xff" * 100},
    "text": {"content": "grüß dich"},
    "multipart": {
        "files": {"file": ("a.bin", b"\x00\x01\xff", "application/octet-stream"), "b": ("b.txt", "text")},
        "headers": {"content-type": "multipart/form-data; boundary=xyz"},
    },
    "spaced json": {"content": b'{"a": 1}\n', "headers": {"content-type": "application/json"}},
    "gzip": {"content": GZIPPED, "headers": {"content-encoding": "gzip"}},
}


@pytest.mark.parametrize("body", BODIES)
def test_a_request_is_recorded_as_it_was_sent(server: RawServer, way: Way, body: str) -> None:
    found = seen(server, lambda url: told(way.request("POST", url + "/echo", **BODIES[body])))
    whole(found)
    assert len(found.sent) == 1


def test_a_body_that_is_made_while_it_is_sent_passes_unread(server: RawServer, way: Way) -> None:
    found = seen(
        server, lambda url: told(way.request("POST", url + "/echo", content=way.pieces([b"one", b"", b"two"])))
    )
    whole(found)
    assert found.bodies == [b"onetwo"]


@pytest.mark.parametrize("part", ["a text", 7, None], ids=repr)
def test_a_body_with_a_wrong_piece_fails_as_it_would(server: RawServer, way: Way, part: Any) -> None:
    def failure(url: str) -> Any:
        try:
            return told(way.request("POST", url + "/echo", content=way.pieces([b"one", part])))
        except Exception as error:
            return type(error), str(error)

    assert seen(server, failure).value[0] is not None


def test_a_body_whose_making_fails_is_recorded_as_far_as_it_went(server: RawServer, way: Way) -> None:
    def parts() -> Iterator[bytes]:
        yield b"one"
        raise LookupError("no more")

    async def parts_async() -> AsyncIterator[bytes]:
        for part in parts():
            yield part

    def failure(url: str) -> str:
        with pytest.raises(LookupError) as caught:
            way.request("POST", url + "/echo", content=parts_async() if way.asynchronous else parts())
        return str(caught.value)

    bare = failure(server.url)
    with playhead.record("made"):
        assert failure(server.url) == bare
    sent, received = last("http.sent", "http.received")
    assert wire.request_bytes(sent.data) == b"one"
    assert received.data["error"]["type"] == "LookupError"


def test_what_a_body_asks_for_while_it_is_made_is_recorded_too(server: RawServer, way: Way) -> None:
    inner = Way(way.library, False)

    def parts() -> Iterator[bytes]:
        yield b"one"
        yield inner.request("GET", server.url + "/plain").content

    async def parts_async() -> AsyncIterator[bytes]:
        yield b"one"
        yield await asyncio.to_thread(lambda: inner.request("GET", server.url + "/plain").content)

    with playhead.record("nested"):
        way.request("POST", server.url + "/echo", content=parts_async() if way.asynchronous else parts())
    assert sorted(event.data["method"] for event in last("http.sent")) == ["GET", "POST"]


def test_a_stream_passes_in_its_chunks_and_they_are_recorded_with_their_times(server: RawServer, way: Way) -> None:
    found = seen(server, lambda url: way.chunks(url + "/stream"))
    assert found.value == EVENTS
    data = found.received[0].data
    assert wire.response_chunks(data) == EVENTS
    times = data["chunks"]["at_us"]
    assert len(times) == len(EVENTS)
    assert times == sorted(times)
    assert data["head_us"] <= times[0]
    assert 0 <= data["sent_us"] + times[-1] <= found.received[0].elapsed_us - found.sent[0].elapsed_us


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("split", ["1000", "7"])
def test_encoded_answers_are_kept_still_encoded(way: Way, encoding: str, split: str) -> None:
    with ScriptedProvider() as provider, playhead.record("encoded"):
        chunks = way.chunks(f"{provider.root_url}/plain/a?size=300&encoding={encoding}&split={split}&chunked=1")
        assert len(way.request("GET", f"{provider.root_url}/plain/a?size=300&encoding={encoding}").content) == 300
        exchanges = provider.exchanges
    received = last("http.received")
    assert [wire.response_bytes(event.data) for event in received] == [exchange.body for exchange in exchanges]
    assert [event.data["form"] for event in received] == ["bytes", "bytes"]
    assert wire.response_chunks(received[0].data) == chunks == exchanges[0].chunks


def test_each_hop_of_a_redirect_is_an_exchange(server: RawServer, way: Way) -> None:
    found = seen(server, lambda url: told(way.request("GET", url + "/moved", follow_redirects=True)))
    whole(found)
    assert [data.data["status"] for data in found.received] == [302, 200]


def test_a_body_goes_along_with_a_redirect(server: RawServer, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERS, "/again", [b"HTTP/1.1 307 Again\r\nlocation: /echo\r\ncontent-length: 0\r\n\r\n"])
    found = seen(server, lambda url: told(way.request("POST", url + "/again", json={"a": 1}, follow_redirects=True)))
    whole(found)
    assert found.bodies == [b'{"a":1}', b'{"a":1}']


def test_a_timeout_is_recorded_and_raised_as_before(server: RawServer, way: Way) -> None:
    def late(url: str) -> str:
        with pytest.raises(way.library.ReadTimeout) as caught:
            way.request("GET", url, timeout=0.05)
        return f"{caught.value} {type(caught.value.__cause__)}"

    for path, body, status in (("/hold-head", b"", None), ("/hold", b"one", 200)):
        found = seen(server, lambda url, path=path: late(url + path))
        assert found.answers == [body]
        assert outcome_of(found) == ("error", status, "ReadTimeout")


def test_a_reader_that_leaves_early_is_recorded_with_what_it_read(server: RawServer, way: Way) -> None:
    found = seen(server, lambda url: way.chunks(url + "/hold", most=1))
    assert found.answers == [b"one"]
    assert found.outcomes == [("cancelled", 200, "ClosedByClient")]


def test_a_stream_that_is_abandoned_and_collected_is_ended(server: RawServer, way: Way) -> None:
    def abandon(client: Any) -> bytes:
        answer = client.send(client.build_request("GET", server.url + "/hold"), stream=True)
        return next(answer.iter_raw())

    async def abandon_async(client: Any) -> bytes:
        answer = await client.send(client.build_request("GET", server.url + "/hold"), stream=True)
        return await anext(answer.aiter_raw())

    with playhead.record("abandoned"):
        if way.asynchronous:
            assert asyncio.run(abandon_async(way.library.AsyncClient(trust_env=False))) == b"one"
        else:
            assert abandon(way.library.Client(trust_env=False)) == b"one"
        gc.collect()
    (received,) = last("http.received")
    assert wire.response_bytes(received.data) == b"one"
    assert received.data["outcome"] == "cancelled"


def test_a_run_that_ends_before_a_stream_keeps_what_came_and_the_reader_goes_on(server: RawServer, way: Way) -> None:
    def read() -> list[bytes]:
        with way.library.Client(trust_env=False) as client:
            recording = playhead.record("short")
            with recording:
                answer = client.send(client.build_request("GET", server.url + "/stream"), stream=True)
                chunks = answer.iter_raw()
                first = next(chunks)
            rest = list(chunks)
            answer.close()
            return [first, *rest]

    async def read_async() -> list[bytes]:
        async with way.library.AsyncClient(trust_env=False) as client:
            with playhead.record("short"):
                answer = await client.send(client.build_request("GET", server.url + "/stream"), stream=True)
                chunks = answer.aiter_raw()
                first = await anext(chunks)
            rest = [chunk async for chunk in chunks]
            await answer.aclose()
            return [first, *rest]

    assert (asyncio.run(read_async()) if way.asynchronous else read()) == EVENTS
    (received,) = last("http.received")
    assert wire.response_bytes(received.data) == EVENTS[0]
    assert received.data["outcome"] == "cancelled"
    assert playhead.verify("@last").integrity.verdict == "intact"


@pytest.mark.parametrize("path", ["/hold", "/hold-head"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_task_that_is_cancelled_is_recorded_as_cancelled(server: RawServer, library: Any, path: str) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def read() -> None:
            async with library.AsyncClient(trust_env=False) as client:
                asyncio.get_running_loop().call_later(0.2, begun.set)
                async with client.stream("GET", server.url + path) as answer:
                    async for _ in answer.aiter_raw():
                        begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with playhead.record("cancelled"):
        asyncio.run(main())
    (received,) = last("http.received")
    assert received.data["outcome"] == "cancelled"
    assert wire.response_bytes(received.data) == (b"one" if path == "/hold" else b"")


def test_twenty_at_once_are_each_recorded_once_in_a_lane_of_their_own(way: Way) -> None:
    async def all_at_once(url: str) -> None:
        async with way.library.AsyncClient(trust_env=False) as client:
            await asyncio.gather(*(client.post(url, json={"n": n}) for n in range(20)))

    with ScriptedProvider() as provider, playhead.record("many"):
        url = f"{provider.root_url}/plain/echo"
        if way.asynchronous:
            asyncio.run(all_at_once(url))
        else:
            with way.library.Client(trust_env=False) as client:
                threads = [
                    threading.Thread(target=client.post, args=(url,), kwargs={"json": {"n": n}}) for n in range(20)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        exchanges = provider.exchanges
    sent, received = last("http.sent"), {event.span: event for event in last("http.received")}
    assert sorted(wire.request_bytes(event.data) for event in sent) == sorted(one.request.body for one in exchanges)
    assert len({event.lane for event in sent}) == len({event.span for event in sent}) == len(received) == 20
    answers = {one.request.body: one.body for one in exchanges}
    for event in sent:
        assert wire.response_bytes(received[event.span].data) == answers[wire.request_bytes(event.data)]
        assert received[event.span].lane == event.lane
    assert playhead.verify("@last").integrity.verdict == "intact"


def test_a_client_made_before_the_run_is_recorded_and_after_it_is_not(server: RawServer, way: Way) -> None:
    with way.library.Client(trust_env=False) as client:
        client.get(server.url + "/plain")
        with playhead.record("between"):
            client.get(server.url + "/plain")
        client.get(server.url + "/plain")
    assert len(last("http.sent")) == 1


def test_two_runs_at_once_keep_apart(server: RawServer, way: Way) -> None:
    barrier = threading.Barrier(2)

    def run(name: str) -> None:
        with playhead.record(name):
            barrier.wait()
            for _ in range(5):
                way.request("POST", f"{server.url}/echo", json={"of": name})
            barrier.wait()

    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("one", "two"):
        sent = [event for event in playhead.load(name).events() if event.kind == "http.sent"]
        assert [event.data["body"] for event in sent] == [{"of": name}] * 5


def test_nothing_is_recorded_with_capture_off(server: RawServer, way: Way) -> None:
    with playhead.record("off", capture=False):
        way.request("GET", server.url + "/plain")
    assert last("http.sent", "http.received") == []


def test_a_transport_of_the_user_is_left_alone_and_one_built_on_theirs_is_recorded_once(
    server: RawServer, way: Way
) -> None:
    library = way.library
    mock = library.MockTransport(lambda request: library.Response(200, json={"from": "mock"}))

    class Own(library.AsyncHTTPTransport if way.asynchronous else library.HTTPTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            request.headers["x-own"] = "1"
            return super().handle_request(request)

        async def handle_async_request(self, request: Any) -> Any:
            request.headers["x-own"] = "1"
            return await super().handle_async_request(request)

    with playhead.record("transports"):
        assert way.request("GET", "http://nowhere/", transport=mock).json() == {"from": "mock"}
        assert way.request("GET", server.url + "/plain", transport=Own()).content == JSON
    (sent,) = last("http.sent")
    assert "x-own" in [name for name, _ in sent.data["headers"]]


def test_every_patched_attribute_is_restored_by_identity(way: Way, server: RawServer) -> None:
    owners = [(way.library.HTTPTransport, "handle_request"), (way.library.AsyncHTTPTransport, "handle_async_request")]
    before = [owner.__dict__[name] for owner, name in owners]
    with playhead.record("outer"):
        during = [owner.__dict__[name] for owner, name in owners]
        assert all(now is not then for now, then in zip(during, before, strict=True))
        with playhead.record("inner"):
            way.request("GET", server.url + "/plain")
        assert all(owner.__dict__[name] is now for (owner, name), now in zip(owners, during, strict=True))
    assert all(owner.__dict__[name] is then for (owner, name), then in zip(owners, before, strict=True))


def test_who_patches_over_us_stays_and_is_not_recorded_twice_afterwards(server: RawServer, way: Way) -> None:
    owner = way.library.AsyncHTTPTransport if way.asynchronous else way.library.HTTPTransport
    name = "handle_async_request" if way.asynchronous else "handle_request"
    original = owner.__dict__[name]
    calls = []
    try:
        with playhead.record("first"):
            ours = owner.__dict__[name]

            def theirs(self: Any, request: Any) -> Any:
                calls.append(request.method)
                return ours(self, request)

            setattr(owner, name, theirs)
            way.request("GET", server.url + "/plain")
        assert owner.__dict__[name] is theirs
        way.request("GET", server.url + "/plain")
        with playhead.record("second"):
            way.request("GET", server.url + "/plain")
        assert owner.__dict__[name] is theirs
    finally:
        setattr(owner, name, original)
    assert calls == ["GET"] * 3
    assert [len([e for e in playhead.load(run).events() if e.kind == "http.sent"]) for run in ("first", "second")] == [
        1,
        1,
    ]


def test_a_body_beyond_the_limit_is_kept_in_part_and_counted(
    server: RawServer, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead._limits.BODY_BYTES_MAX", 20)
    with playhead.record("large"):
        assert b"".join(way.chunks(server.url + "/stream")) == b"".join(EVENTS)
    (received,) = last("http.received")
    assert b"".join(EVENTS).startswith(wire.response_bytes(received.data))
    assert [event.data["reason"] for event in last("gap.noted")] == ["body_too_large"]


def test_a_large_body_that_is_made_while_it_is_sent_is_bounded_too(
    server: RawServer, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead._limits.BODY_BYTES_MAX", 40)
    with playhead.record("large"):
        way.request("POST", server.url + "/echo", content=way.pieces([b"x" * 30, b"y" * 30, b"z" * 2]))
    assert server.got[0].body == b"x" * 30 + b"y" * 30 + b"zz"
    (sent,) = last("http.sent")
    assert wire.request_bytes(sent.data) == b"x" * 30
    assert [event.data["reason"] for event in last("gap.noted")] == ["body_too_large"]


def test_a_body_that_nobody_can_open_leaves_only_its_digest(
    server: RawServer, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = b"this-text-must-not-be-on-the-disk" * 3
    monkeypatch.setitem(
        ANSWERS,
        "/odd",
        [b"HTTP/1.1 200 OK\r\ncontent-encoding: rot13\r\ncontent-length: %d\r\n\r\n" % len(secret), secret],
    )
    with playhead.record("unopened") as run:
        assert (
            way.request("POST", server.url + "/odd", content=secret, headers={"content-encoding": "rot13"}).content
            == secret
        )
    sent, received = last("http.sent", "http.received")
    for event in (sent, received):
        assert event.data["form"] == wire.UNOPENED
        assert event.data["body"]["why"] == "no_decoder"
    for file in run.path.parent.parent.rglob("*"):
        assert not file.is_file() or secret[:33] not in file.read_bytes(), file
    assert sum(event.data["count"] for event in last("gap.noted")) == 2
    assert json.dumps(received.data["body"])
