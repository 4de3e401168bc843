"""http.client and what is built on it: requests, urllib3 and urllib, against a real server."""

from __future__ import annotations

import gc
import http.client
import io
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3
from tests.capture.clients.raw_server import ANSWERS, EVENTS, GZIPPED, JSON, RawServer, Seen, attempt, seen, whole

import playhead
from playhead.capture.scope import muted
from playhead.event import wire

Get = Callable[[str], Any]


def by_requests(url: str) -> Any:
    with requests.Session() as session:
        answer = session.get(url, allow_redirects=False, timeout=5)
        return answer.status_code, list(answer.headers.items()), answer.content


def by_urllib3(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        answer = pool.request("GET", url, redirect=False, retries=False, timeout=5, preload_content=False)
        return answer.status, list(answer.headers.items()), list(answer.stream(7, decode_content=False))


def by_urllib(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as answer:
            return answer.status, answer.getheaders(), list(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.items(), error.read()


def by_http_client(url: str) -> Any:
    host, _, path = url.partition("//")[2].partition("/")
    connection = http.client.HTTPConnection(host, timeout=5)
    try:
        connection.request("GET", "/" + path)
        answer = connection.getresponse()
        pieces = []
        while piece := answer.read(6):
            pieces.append(piece)
        return answer.status, answer.getheaders(), pieces
    finally:
        connection.close()


CLIENTS = [by_requests, by_urllib3, by_urllib, by_http_client]
HELD = {"/hold", "/hold-head"}
# What arrives of the body, and how the exchange ends.
RIGHT: dict[str, tuple[bytes, str, int | None, str | None]] = {
    "/plain": (JSON, "ok", 200, None),
    "/apart": (JSON, "ok", 200, None),
    "/stream": (b"".join(EVENTS), "ok", 200, None),
    "/framed": (b"firstsecondthird", "ok", 200, None),
    "/until-close": (b"as long as it lasts", "ok", 200, None),
    "/gzip": (GZIPPED, "ok", 200, None),
    "/none": (b"", "ok", 204, None),
    "/same": (b"", "ok", 304, None),
    "/hints": (b"", "ok", 103, None),
    "/failed": (b"oops", "ok", 500, None),
    "/cut-length": (b"only this", "error", 200, "http.client.IncompleteRead"),
    "/cut-chunks": (b"onea chu", "error", 200, "http.client.IncompleteRead"),
    "/cut-head": (b"", "ok", 200, None),  # which http.client takes for an answer
    "/reset": (b"one", "error", 200, "ConnectionResetError"),
    "/silent": (b"", "error", None, "http.client.RemoteDisconnected"),
    "/nonsense": (b"", "error", None, "http.client.BadStatusLine"),
    "/large": (b"x" * 300_000, "ok", 200, None),
}


@pytest.mark.parametrize("path", RIGHT)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_an_answer_is_recorded_as_it_came_and_the_client_sees_no_difference(
    server: RawServer, client: Get, path: str
) -> None:
    found = seen(server, lambda url: client(url + path))
    whole(found)
    body, outcome, status, error = RIGHT[path]
    assert found.answers == [body]
    assert found.outcomes == [(outcome, status, error)]
    assert found.sent[0].data["url"] == server.url + path


def test_the_table_of_answers_is_tried_whole() -> None:
    assert set(RIGHT) | HELD | {"/moved"} == set(ANSWERS)


def test_a_stream_is_recorded_in_its_chunks_with_their_times(server: RawServer) -> None:
    def stream(url: str) -> Any:
        with requests.get(url + "/stream", stream=True, timeout=5) as answer:
            return list(answer.iter_content(None)), answer.raw.closed

    found = seen(server, stream)
    assert found.value[0] == EVENTS
    assert wire.response_chunks(found.received[0].data) == EVENTS
    times = found.received[0].data["chunks"]["at_us"]
    assert times == sorted(times)
    assert len(times) == len(EVENTS)


def pieces() -> Iterator[bytes]:
    yield b"first,"
    yield b""
    yield b"second"


BODIES: dict[str, Callable[[], Any]] = {
    "bytes": lambda: b'{"a": 1}',
    "text": lambda: "text",
    "bytearray": lambda: bytearray(b"array"),
    "file": lambda: io.BytesIO(b"of a file " * 5000),
    "generator": pieces,
    "list": lambda: [b"one", b"two"],
    "none": lambda: None,
    "empty": lambda: b"",
}


@pytest.mark.parametrize("body", BODIES)
def test_a_request_body_is_recorded_as_it_was_sent_by_http_client(server: RawServer, body: str) -> None:
    def post(url: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("POST", "/echo", BODIES[body](), {"X-Two": "1", "x-two": "2"})
        answer = connection.getresponse().read()
        connection.close()
        return answer

    whole(seen(server, post))


@pytest.mark.parametrize("body", [name for name in BODIES if name != "bytearray"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_body_is_recorded_as_it_was_sent_by_urllib3(server: RawServer, body: str, chunked: bool) -> None:
    def post(url: str) -> Any:
        with urllib3.PoolManager() as pool:
            return pool.urlopen("POST", url + "/echo", body=BODIES[body](), chunked=chunked).data

    whole(seen(server, post))


@pytest.mark.parametrize(
    "given",
    [
        {"json": {"text": "ä"}},
        {"data": {"a": "1", "b": ["2", "3"]}},
        {"data": pieces},
        {"files": {"file": ("name.txt", b"content")}},
    ],
)
def test_a_request_body_is_recorded_as_it_was_sent_by_requests(server: RawServer, given: Any) -> None:
    def post(url: str) -> Any:
        made = {name: value() if callable(value) else value for name, value in given.items()}
        with requests.Session() as session:
            return session.post(url + "/echo", **made, timeout=5).json()["method"]

    if "files" in given:  # its boundary is drawn anew for every request
        with playhead.record("files"):
            post(server.url)
        event = next(event for event in playhead.load("@last").events() if event.kind == "http.sent")
        assert wire.request_bytes(event.data) == server.got[0].body
    else:
        whole(seen(server, post))


def test_a_file_that_is_sent_by_hand_is_recorded(server: RawServer) -> None:
    def post(url: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.putrequest("PUT", "/echo")
        connection.putheader("Content-Length", "16")
        connection.putheader("Expect", "100-continue")
        connection.endheaders()
        connection.send(io.StringIO("text \xe4 "))
        connection.send([b"in a", b" list"])
        answer = connection.getresponse()
        read = answer.status, answer.read()
        connection.close()
        return read

    found = seen(server, post)
    whole(found)
    assert found.bodies == [b"text \xe4 in a list"]


def test_requests_over_one_connection_are_exchanges_of_their_own(server: RawServer) -> None:
    paths = ["/plain", "/stream", "/none", "/gzip", "/failed", "/plain"]

    def several(url: str) -> Any:
        with requests.Session() as session:
            return [session.get(url + path, timeout=5).content for path in paths]

    found = seen(server, several)
    whole(found)
    assert len({got.connection for got in found.got}) == 1
    assert found.answers == [RIGHT[path][0] for path in paths]


def test_every_attempt_of_a_retry_and_every_hop_of_a_redirect_is_an_exchange(server: RawServer) -> None:
    def retrying(url: str) -> Any:
        retry = urllib3.Retry(3, status_forcelist=[503], backoff_factor=0)
        with urllib3.PoolManager(retries=retry) as pool:
            return pool.request("GET", url + "/flaky").data, pool.request("GET", url + "/moved").data

    found = seen(server, retrying)
    whole(found)
    assert [status for _, status, _ in found.outcomes] == [503, 200, 302, 200]


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_refuses_is_recorded_with_the_whole_request_at_every_attempt(
    server: RawServer, scheme: str
) -> None:
    port = closed_port()

    def post(url: str) -> Any:
        with urllib3.PoolManager() as pool:
            retry = urllib3.Retry(1, backoff_factor=0, allowed_methods=None)
            return pool.request("POST", f"{scheme}://127.0.0.1:{port}/a b?c", body=b"all of it", retries=retry)

    found = seen(server, post)
    assert found.bodies == [b"all of it"] * 2
    assert {event.data["url"].partition("/a")[0] for event in found.sent} == {f"{scheme}://127.0.0.1:{port}"}
    assert found.outcomes == [("error", None, "urllib3.exceptions.NewConnectionError")] * 2


def test_a_connection_refused_to_http_client_is_recorded(server: RawServer) -> None:
    port = closed_port()

    def post(url: str) -> Any:
        http.client.HTTPConnection("127.0.0.1", port, timeout=5).request("POST", "/x", b"all of it")

    found = seen(server, post)
    assert (found.bodies, found.outcomes) == ([b"all of it"], [("error", None, "ConnectionRefusedError")])


@pytest.mark.parametrize(("path", "body", "status"), [("/hold", b"one", 200), ("/hold-head", b"", None)])
def test_a_timeout_is_recorded_with_what_had_come(
    server: RawServer, path: str, body: bytes, status: int | None
) -> None:
    found = seen(server, lambda url: requests.get(url + path, timeout=0.2))
    assert (found.answers, found.outcomes) == ([body], [("error", status, "TimeoutError")])


def test_an_answer_that_is_closed_early_is_ended_as_closed(server: RawServer) -> None:
    def peek(url: str) -> Any:
        with requests.get(url + "/hold", stream=True, timeout=5) as answer:
            return next(answer.iter_content(None))

    found = seen(server, peek)
    assert (found.value, found.answers) == (b"one", [b"one"])
    assert found.outcomes == [("cancelled", 200, "ClosedByClient")]


def test_an_answer_that_is_forgotten_is_ended_when_it_is_collected(server: RawServer) -> None:
    def forget(url: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", "/hold")
        status = connection.getresponse().status
        del connection
        gc.collect()
        return status

    assert seen(server, forget).outcomes == [("cancelled", 200, "ClosedByClient")]


@pytest.mark.parametrize("collected", [False, True])
def test_a_request_whose_answer_nobody_asks_for_is_ended(server: RawServer, collected: bool) -> None:
    def drop(url: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", "/hold-head")
        while not server.got:
            time.sleep(0.005)
        if collected:
            del connection
            gc.collect()
        else:
            connection.close()

    assert seen(server, drop).outcomes == [("cancelled", None, "ClosedByClient")]


def test_a_body_that_fails_while_it_is_made_ends_the_exchange_with_its_error(server: RawServer) -> None:
    def broken() -> Iterator[bytes]:
        yield b"first"
        raise LookupError("no more")

    def post(url: str) -> Any:
        with urllib3.PoolManager() as pool:
            pool.urlopen("POST", url + "/echo", body=broken())

    found = seen(server, post)
    assert (found.bodies, found.outcomes) == ([b"first"], [("error", None, "LookupError")])


def test_asking_for_an_answer_too_early_changes_nothing(server: RawServer) -> None:
    def early(url: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", "/plain")
        first = connection.getresponse()
        connection.request("POST", "/echo", headers={"Content-Length": "4"})
        wrong = attempt(connection.getresponse)
        read = first.read()
        connection.send(b"body")  # only now: an answer that comes earlier can end up in the buffer of the first
        second = connection.getresponse().read()
        connection.close()
        return read, wrong, second

    found = seen(server, early)
    whole(found)
    assert found.answers == [JSON, found.value[2]]
    assert found.value[1] == [http.client.ResponseNotReady]


def test_an_answer_without_a_body_to_a_head_request(server: RawServer) -> None:
    found = seen(server, lambda url: requests.head(url + "/plain", timeout=5).headers["content-length"])
    whole(found)
    assert (found.answers, found.outcomes) == ([b""], [("ok", 200, None)])


def test_https_is_recorded_in_clear_and_a_certificate_that_is_not_trusted_as_an_error(
    secure: RawServer, certificate: Path
) -> None:
    found = seen(secure, lambda url: requests.post(url + "/echo?q=1", b"body", verify=str(certificate)).json())
    whole(found)
    assert found.sent[0].data["url"] == f"{secure.url}/echo?q=1"
    found = seen(secure, lambda url: requests.post(url + "/echo", b"body"))
    assert found.bodies == [b"body"]
    assert [(outcome, status) for outcome, status, _ in found.outcomes] == [("error", None)]


def test_a_proxy_is_not_what_the_user_meant(server: RawServer, secure: RawServer, certificate: Path) -> None:
    proxies = {"http": server.url, "https": server.url}

    def plain(url: str) -> Any:
        return requests.get("http://name.invalid/plain", proxies=proxies, timeout=5).content

    found = seen(server, plain)
    whole(found)
    assert found.sent[0].data["url"] == "http://name.invalid/plain"

    def tunnelled(url: str) -> Any:
        return requests.post(url + "/echo", b"body", proxies=proxies, verify=str(certificate), timeout=5).json()

    found = seen(secure, tunnelled)
    whole(found)
    assert found.sent[0].data["url"] == f"{secure.url}/echo"
    assert server.tunnels == 2

    server.refuse_tunnel = True
    found = seen(secure, tunnelled)
    assert (found.bodies, found.got) == ([b"body"], [])
    assert found.outcomes[0][0] == "error"


def test_a_tunnel_of_http_client_is_no_exchange_of_its_own(server: RawServer) -> None:
    def tunnelled(url: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.set_tunnel("127.0.0.1", server.port)
        connection.request("POST", "/echo", pieces())
        answer = connection.getresponse().read()
        connection.close()
        return answer

    found = seen(server, tunnelled)
    whole(found)
    assert found.bodies == [b"first,second"]
    server.refuse_tunnel = True
    found = seen(server, tunnelled)
    assert found.outcomes == [("error", None, "OSError")]


def test_what_http_client_does_not_take_is_refused_as_before(server: RawServer) -> None:
    def buffered(url: str) -> Any:
        connection: Any = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", "/plain")
        refused = attempt(lambda: connection.getresponse(buffering=True))  # as urllib3 1.26 tries it
        read = refused, connection.getresponse().read()
        connection.close()
        return read

    found = seen(server, buffered)
    assert (found.answers, found.outcomes) == ([JSON], [("ok", 200, None)])


def test_threads_at_once_do_not_mix_their_bytes(server: RawServer) -> None:
    bodies = [b"body %d " % number * 200 for number in range(20)]
    with playhead.record("threads"):

        def post(body: bytes) -> None:
            assert requests.post(server.url + "/echo", body, timeout=10).json()["size"] == len(body)

        threads = [threading.Thread(target=post, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = list(playhead.load("@last").events())
    sent = [wire.request_bytes(event.data) for event in events if event.kind == "http.sent"]
    assert sorted(sent) == sorted(bodies)
    received = {event.span: event.data for event in events if event.kind == "http.received"}
    for event in events:
        if event.kind == "http.sent":
            assert received[event.span]["body"]["size"] == len(wire.request_bytes(event.data))


def test_what_is_muted_is_not_recorded(server: RawServer) -> None:
    def quiet(url: str) -> Any:
        token = muted.set(True)
        try:
            return by_requests(url + "/plain"), attempt(by_urllib3, f"https://127.0.0.1:{closed_port()}/")
        finally:
            muted.reset(token)

    assert not seen(server, quiet).sent


def test_an_answer_read_after_the_run_is_given_whole(server: RawServer) -> None:
    with playhead.record("short"):
        answer = requests.get(server.url + "/stream", stream=True, timeout=5)
    assert answer.content == b"".join(EVENTS)
    (received,) = [event for event in playhead.load("@last").events() if event.kind == "http.received"]
    assert (received.data["outcome"], received.data["error"]["type"]) == ("cancelled", "RunEnded")
    assert by_requests(server.url + "/plain")[2] == JSON


def test_the_file_of_an_answer_still_knows_its_connection(server: RawServer) -> None:
    def look(url: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", "/until-close")
        answer = connection.getresponse()
        fp: Any = answer.fp
        kinds = (type(fp), answer.fileno() > 0, type(fp.raw._sock), fp.name > 0, fp.mode, answer.peek(4)[:2])
        return kinds, answer.readline(), answer.read(), answer.isclosed()

    assert isinstance(seen(server, look), Seen)
