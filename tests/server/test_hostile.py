"""What nobody should send is answered clearly: no mistake of the server, and no memory that it would not give back."""

from __future__ import annotations

import functools
import gzip
import json
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zstandard
from tests.server.otlp import JSON, PROTOBUF, as_protobuf, export, exported, logs, span, span_id, trace_id
from tests.server.serving import Client, Server, Told, in_path, until

from playhead import _limits
from playhead.server.routing import Route, load

_MB = 1024 * 1024
_ROUTES = load()


def _named(route: Route) -> str:
    return f"{route.method} {route.path}"


def _address(route: Route, **values: str) -> str:
    """Return the address of a route, each of its parts filled in."""
    filled = {"run": "run_0", "seq": "0", "name": "x", "digest": "0" * 64, "id": "x", **values}
    return route.path.replace("{name:path}", "{name}").format(**{name: in_path(one) for name, one in filled.items()})


def _clear(told: Told, *statuses: int) -> dict[str, Any]:
    """Make sure that an answer is a refusal, in the one shape."""
    assert told.status in (statuses or range(400, 500)), told
    return told.error


# Bodies that unfold, or do not.


def _gzipped(data: bytes) -> bytes:
    return gzip.compress(data, 9)


@functools.cache
def _gzip_bomb(inflated: int) -> bytes:
    packed = zlib.compressobj(9, wbits=31)
    parts = [packed.compress(b" " * _MB) for _ in range(inflated // _MB)]
    return b"".join([*parts, packed.flush()])


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs", "/ingest", "/api/query", "/api/runs/run_0/lines"])
@pytest.mark.parametrize("how", ["gzip", "deflate", "zstd", "many members"])
def test_a_bomb_is_refused_before_it_unfolds(server: Server, client: Client, path: str, how: str) -> None:
    most = 1024 * _MB
    match how:
        case "gzip":
            body, encoding = _gzip_bomb(most), "gzip"
        case "deflate":
            body, encoding = zlib.compress(b" " * (256 * _MB), 9), "deflate"
        case "zstd":
            body, encoding = zstandard.ZstdCompressor(level=3).compress(b" " * (256 * _MB)), "zstd"
        case _:
            body, encoding = _gzipped(b" " * _MB) * 1024, "gzip"
    client.ask("POST", path, b"{}", JSON)  # what is loaded at first use is none of the bomb
    server.forget_peak()
    before = server.memory_bytes()
    media = {"/api/runs/run_0/lines": "application/x-ndjson"}.get(path, "application/json")
    error = _clear(client.ask("POST", path, body, {"Content-Type": media, "Content-Encoding": encoding}), 413)
    assert error["code"] == "too_large"
    assert server.memory_bytes("VmHWM") - before < 80 * _MB


def test_every_member_of_a_body_in_gzip_is_read(client: Client) -> None:
    whole = exported([span(trace_id("members"), span_id("members"))])
    body = b"".join(_gzipped(whole[at : at + 50]) for at in range(0, len(whole), 50)) + b"\0" * 7
    told = client.ask("POST", "/v1/traces", body, {**JSON, "Content-Encoding": "gzip"})
    assert told.status == 200
    assert client.found(f"/api/runs/{trace_id('members')}")["run"]["id"].startswith("run_")


@pytest.mark.parametrize("pack", [_gzipped, zlib.compress, zstandard.compress], ids=["gzip", "deflate", "zstd"])
def test_a_compressed_body_that_is_whole_is_read_and_a_cut_one_refused(
    client: Client, pack: Callable[[bytes], bytes]
) -> None:
    encoding = {"_gzipped": "gzip", "compress": "deflate" if pack is zlib.compress else "zstd"}[pack.__name__]
    body = pack(as_protobuf(export([span(trace_id(encoding), span_id(encoding))])))
    headers = {**PROTOBUF, "Content-Encoding": encoding}
    assert client.ask("POST", "/v1/traces", body, headers).status == 200
    for cut in (1, 4, len(body) // 2):
        _clear(client.ask("POST", "/v1/traces", body[:-cut], headers), 400)
    _clear(client.ask("POST", "/v1/traces", b"\xff" * 20, headers), 400)
    _clear(client.ask("POST", "/v1/traces", b"\0" + body, headers), 400)


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "compress", "x" * 500, "gzip;q=1"])
def test_an_encoding_that_is_not_read_is_named(client: Client, encoding: str) -> None:
    _clear(client.ask("POST", "/v1/traces", b"x", {**JSON, "Content-Encoding": encoding}), 415)


# How bodies are sent.


def _raw(server: Server, *pieces: bytes, end: bool = True, wait_s: float = 20) -> bytes:
    """Send bytes as they are, and return everything that comes back until the server closes."""
    client = server.client()
    with socket.create_connection((client.host, client.port), timeout=wait_s) as connection:
        for piece in pieces:
            connection.sendall(piece)
        if end:
            connection.shutdown(socket.SHUT_WR)
        found = b""
        try:
            while data := connection.recv(65_536):
                found += data
        except (TimeoutError, ConnectionResetError):
            pass
        return found


_HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"


def test_a_body_in_chunks_is_read(server: Server, client: Client) -> None:
    body = exported([span(trace_id("chunks"), span_id("chunks"))])
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:100], body[100:])]
    told = _raw(server, _HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *chunks, b"0\r\n\r\n", end=False)
    assert told.startswith(b"HTTP/1.1 200 ")
    client.found(f"/api/runs/{trace_id('chunks')}")


def test_a_body_that_is_shorter_than_it_says_is_not_taken(server: Server, client: Client) -> None:
    body = exported([span(trace_id("shorter"), span_id("shorter"))])
    assert b" 200 " not in _raw(server, _HEAD + b"Content-Length: %d\r\n\r\n" % (len(body) + 5), body)
    assert client.get(f"/api/runs/{trace_id('shorter')}").status == 404


@pytest.mark.parametrize(
    "length", [b"99999999999", b"9" * 5000, b"-1", b"1e3", b"0x10", b"\xb2", b"5\r\nContent-Length: 7"]
)
def test_a_length_that_is_a_lie_is_refused(server: Server, length: bytes) -> None:
    told = _raw(server, _HEAD + b"Content-Length: " + length + b"\r\n\r\n{}", end=False)
    assert told.split(b" ")[1] in (b"400", b"413"), told[:200]
    assert b'"error"' in told


@pytest.mark.parametrize(
    "request_",
    [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"FOO / HTTP/1.1\r\n\r\n", b"\0" * 500],
)
def test_what_is_no_http_is_answered_in_the_shape_of_every_error(server: Server, request_: bytes) -> None:
    told = _raw(server, request_)
    assert told.startswith(b"HTTP/1.1 400 ")
    assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"


@pytest.mark.parametrize("what", ["headers", "one header", "address", "trailers", "chunk extension"])
def test_a_head_without_an_end_is_cut_off(server: Server, what: str) -> None:
    chunked = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    start, piece = {
        "headers": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n" * 4096),
        "one header": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"a" * 65_536),
        "address": (b"GET /", b"a" * 65_536),
        "trailers": (chunked + b"0\r\n", b"X-A: b\r\n" * 4096),
        "chunk extension": (chunked + b"1;", b"a" * 65_536),
    }[what]
    before = server.memory_bytes()
    client = server.client()
    with socket.create_connection((client.host, client.port), timeout=20) as connection:
        connection.sendall(start)
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):  # noqa: PT012 - whichever of them notices
            for _ in range(1000):
                connection.sendall(piece)
    assert server.memory_bytes() - before < 5 * _MB


def test_bodies_that_trickle_in_hold_nobody_up(server: Server, client: Client) -> None:
    waiting = [socket.create_connection((client.host, client.port)) for _ in range(80)]
    try:
        for connection in waiting:
            connection.sendall(_HEAD + b'Content-Length: 1000000\r\n\r\n{"resourceSpans":')
        for _ in range(5):
            for connection in waiting:
                connection.sendall(b" ")
            assert client.ask("POST", "/v1/traces", b"{}", JSON).status == 200
    finally:
        for connection in waiting:
            connection.close()


def test_many_large_bodies_at_once_are_refused_before_they_fill_the_memory(server: Server) -> None:
    client = server.client()
    server.forget_peak()
    before = server.memory_bytes()
    waiting = []
    refused = 0
    try:
        for _ in range(20):
            connection = socket.create_connection((client.host, client.port), timeout=30)
            waiting.append(connection)
            connection.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % (15 * _MB))
            try:
                for _ in range(14):
                    connection.sendall(b" " * _MB)
            except OSError:
                pass
        for connection in waiting:
            connection.settimeout(0.5)
            try:
                said = connection.recv(4096)
            except (TimeoutError, ConnectionResetError):
                continue
            if said:
                assert said.startswith(b"HTTP/1.1 503 "), said
                assert b"retry-after: " in said.lower()
                refused += 1
    finally:
        for connection in waiting:
            connection.close()
    assert refused >= 14
    assert server.memory_bytes("VmHWM") - before < 140 * _MB
    until(lambda: client.ask("POST", "/v1/traces", b"{}", JSON).status == 200)


# What is in them.

_DEEP = b"[" * 100_000 + b"]" * 100_000
_BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "deep": _DEEP,
    "deep inside": b'{"a":' * 500 + b"1" + b"}" * 500,
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":-Infinity}',
    "a name twice": b'{"run_id":"a","run_id":"b","spans":[]}',
    "a name twice, hidden": b'{"resourceSpans":[],"resource\\u0053pans":[]}',
    "invalid UTF-8": b'{"run_id":"\xff\xfe"}',
    "half of a pair": b'{"run_id":"\\ud800"}',
    "a NUL": b'{"run_id":"\\u0000"}',
    "a list": b"[]",
    "a number": b"1",
    "a long number": b'{"a":' + b"9" * 10_000 + b"}",
    "null": b"null",
    "a text": b'"x"',
    "a BOM": b"\xef\xbb\xbf{}",
    "UTF-16": "{}".encode("utf-16"),
    "NULs": b"\0" * 1000,
    "wrong rows": b'{"resourceSpans":{"a":1},"resourceLogs":7,"spans":"x"}',
    "rows of rows": b'{"resourceSpans":[[[]]],"resourceLogs":[null]}',
}
_TAKE = [route for route in _ROUTES if route.takes or route.method in ("POST", "PUT", "DELETE")]


@pytest.mark.parametrize("route", _TAKE, ids=_named)
@pytest.mark.parametrize("body", _BODIES.values(), ids=_BODIES)
def test_no_body_breaks_a_route(client: Client, route: Route, body: bytes) -> None:
    for media in route.takes or ("application/json",):
        told = client.ask(route.method, _address(route), body, {"Content-Type": media})
        assert told.status < 500, told
        if told.status >= 400:
            assert told.error["message"]


@pytest.mark.parametrize(
    "body", [b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a" + b"\x80" * 50, b"\x0b\x0c", b"{}"]
)
def test_what_is_no_protobuf_is_refused(client: Client, body: bytes) -> None:
    for path in ("/v1/traces", "/v1/logs"):
        assert client.ask("POST", path, body, PROTOBUF).status in (200, 400)


def test_protobuf_that_is_nested_without_end_is_refused_or_rejected(client: Client) -> None:
    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2]) + _varint(len(content)) + content

    value = field(1, b"x")
    for _ in range(5000):
        value = field(5, field(1, value))
    told = field(9, field(1, b"deep") + field(2, value))
    body = field(1, field(2, field(2, field(1, b"\1" * 16) + field(2, b"\2" * 8) + told)))
    answer = client.ask("POST", "/v1/traces", body, PROTOBUF)
    assert answer.status in (200, 400)
    if answer.status == 200:
        assert answer.body, "it is counted in partialSuccess"


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += struct.pack("B", value & 0x7F | 0x80)
        value >>= 7
    return out + struct.pack("B", value)


_ODD_SPANS: dict[str, dict[str, Any]] = {
    "is its own parent": span(trace_id("odd"), span_id("self"), span_id("self")),
    "has a path for an id": {**span("../../../etc/passwd", "../x"), "name": "path"},
    "has ids of zeros": span("0" * 32, "0" * 16),
    "has a short id": span(trace_id("odd"), "12"),
    "ends before it begins": {**span(trace_id("odd"), span_id("back")), "endTimeUnixNano": "1"},
    "is of another age": {**span(trace_id("odd"), span_id("old")), "startTimeUnixNano": "0", "endTimeUnixNano": "0"},
    "is of no age": {**span(trace_id("odd"), span_id("far")), "startTimeUnixNano": str(2**64 - 1), "endTimeUnixNano": str(2**64 - 1)},
    "has no times": {"traceId": trace_id("odd"), "spanId": span_id("timeless"), "name": "x"},
    "has a NUL in its name": span(trace_id("odd"), span_id("nul"), name="a\0b"),
    "has a long name": span(trace_id("odd"), span_id("long"), name="x" * 1_000_000),
    "has control characters": span(trace_id("odd"), span_id("control"), name="\x1b[2J\r\n\x07", **{"\x1b[0m": "\x9b"}),
    "has a name for a mark": span(trace_id("odd"), span_id("mark"), **{"$same": "0#/name", "$blob": "x", "$extends": "1#"}),
    "has marks for values": span(trace_id("odd"), span_id("marks"), a={"$same": "99#/x"}, b={"$bytes": 1}, c={"$float": "x"}),
    "has a wrong kind": {**span(trace_id("odd"), span_id("kind")), "kind": 10**9},
    "has a wrong value": {**span(trace_id("odd"), span_id("value")), "attributes": [{"key": "a", "value": {"intValue": "x"}}]},
    "says wrong things of a model": span(
        trace_id("odd"), span_id("model"), None, "chat",
        **{"gen_ai.operation.name": "chat", "gen_ai.request.model": 7, "gen_ai.usage.input_tokens": -5,
           "gen_ai.usage.output_tokens": 2**62, "gen_ai.input.messages": "[[[", "gen_ai.output.messages": [1, {}],
           "gen_ai.response.id": ["x"], "gen_ai.agent.name": {"a": 1}, "session.id": "../../x"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", _ODD_SPANS.values(), ids=_ODD_SPANS)
@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_an_odd_span_is_kept_or_rejected_and_its_run_can_be_read(
    client: Client, odd: dict[str, Any], encoding: str
) -> None:
    run = f"odd {encoding} {odd['spanId'][:30]}"
    document = export([odd, span(trace_id(run), span_id(run))], **{"playhead.run.id": run})
    if encoding == "json":
        told = client.ask("POST", "/v1/traces", json.dumps(document).encode(), JSON)
    else:
        try:
            body = as_protobuf(document)
        except (ValueError, KeyError):
            pytest.skip("protobuf cannot say that")
        told = client.ask("POST", "/v1/traces", body, PROTOBUF)
    assert told.status == 200
    _read_everywhere(client, run)


def _read_everywhere(client: Client, run: str, *more: int) -> None:
    """Ask every route that reads a run, and make sure that none breaks."""
    for route in _ROUTES:
        if route.method != "GET" or "{run}" not in route.path or route.path.endswith("/follow"):
            continue
        for seq in ("0", "1", "2", "9"):
            told = client.get(_address(route, run=run, seq=seq, name="context_pack.json"))
            assert told.status in (200, 404, 409, 410, 422), (route.path, told)
            if "json" in told.headers["content-type"] and "ndjson" not in told.headers["content-type"]:
                told.json()
            if "{seq}" not in route.path:
                break
    client.found("/api/diff", left=run, right=run)
    for form in ("html", "md", "json"):
        assert client.get(f"/api/runs/{in_path(run)}/report", form=form).status == 200
    for path in ("/api/runs", "/api/stats", "/api/audit", "/api/search"):
        client.found(path, **({"q": "work"} if path == "/api/search" else {}))


@pytest.mark.parametrize("text", [":x", " :x", ": ", '":', '"', '\\":', "\\", '\\\\":x', '":":"'])
def test_a_text_that_looks_like_the_end_of_a_key_is_no_key(client: Client, text: str) -> None:
    id = f"colon {text}"
    for separators in ((",", ":"), (", ", ": "), (" , ", " : ")):
        document = export([span(trace_id(id), span_id(id), a=text, **{text: "b"})])
        body = json.dumps(document, separators=separators).encode()
        assert client.ask("POST", "/v1/traces", body, JSON).status == 200
        twice = body.replace(b'"traceId"', b'"traceId"%b"x",\n"traceId"' % separators[1].encode())
        _clear(client.ask("POST", "/v1/traces", twice, JSON), 400)


def test_odd_log_records_are_kept_or_rejected(client: Client) -> None:
    records: list[dict[str, Any]] = [
        {"traceId": trace_id("logs"), "spanId": span_id("logs"), "body": {"stringValue": "a\0b"}},
        {"traceId": trace_id("logs"), "body": {"kvlistValue": {"values": [{"key": "$same", "value": {"stringValue": "0#"}}]}}},
        {"timeUnixNano": str(2**64 - 1), "traceId": trace_id("logs"), "severityNumber": 99},
        {"traceId": "x", "body": None},
        {"body": {"doubleValue": "NaN"}},
        {},
    ]  # fmt: skip
    told = client.ask("POST", "/v1/logs", logs(records), JSON)
    assert told.status == 200
    assert told.json()["partialSuccess"]["rejectedLogRecords"] == "1"
    _read_everywhere(client, trace_id("logs"))


# Addresses.

_NAMES = ("../x", "..", ".", "%2e%2e", "a/../../b", "\0", "x" * 8000, "é\u202e😀", "run_", "@last~99999999999999", "@last~-1",
          "@last~", "a\r\nX-Evil: 1", "C:\\x", "//etc/passwd", "\ufffd", "%", "' OR 1=1 --", "*", "run_0?", "#")  # fmt: skip


@pytest.mark.parametrize("route", [route for route in _ROUTES if "{" in route.path], ids=_named)
def test_no_name_in_an_address_breaks_a_route_or_leads_out(client: Client, route: Route) -> None:
    for name in _NAMES:
        values = dict.fromkeys(("run", "seq", "name", "digest", "id"), name)
        for headers in ({"Content-Type": route.takes[0]} if route.takes else {}, {"Accept": "application/x-ndjson"}):
            told = client.ask(route.method, _address(route, **values), b"{}" if route.takes else None, headers)
            if told.status == 200:  # `@last~-1` might have been one
                assert name.startswith("@last"), (name, told)
            else:
                _clear(told)
            assert "x-evil" not in told.headers


@pytest.mark.parametrize(
    "path",
    [b"/api/runs/..%2f..%2f..%2fetc%2fpasswd", b"/../../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"/api/runs/%ff%fe",
     b"/api/runs/%00", b"/api/runs/%", b"/api/runs/%zz", b"//", b"/api//runs", b"/api/runs/", b"http://evil/api/runs/nobody",
     b"*", b"/api/runs/x;y=1", b"/api/runs/x/artifacts/../../../server.db", b"/api/runs/x/files/%2e%2e%2fserver.db"],
)  # fmt: skip
def test_no_path_leads_out_of_the_store(server: Server, path: bytes) -> None:
    told = _raw(server, b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", end=False)
    assert told.split(b" ")[1] in (b"400", b"404", b"422"), told[:300]
    assert b'{"error":' in told
    assert b"root:" not in told
    assert b"SQLite" not in told


@pytest.mark.parametrize("route", _ROUTES, ids=_named)
def test_every_error_of_a_route_has_the_one_shape(client: Client, route: Route) -> None:
    _clear(client.ask(route.method, _address(route) + "?nothing=1", b"{}" if route.takes else None), 422)
    _clear(client.ask(route.method, _address(route) + "?nothing=1&nothing=2"), 422)
    others = {one.method for one in _ROUTES if one.path == route.path}
    for method in ("PATCH", "OPTIONS", "DELETE", "PUT", "POST"):
        told = client.ask(method, _address(route))
        if told.status == 405:
            told.error  # noqa: B018 - looks at the shape
            assert others & set(told.headers["allow"].split(", "))
        else:
            assert any(one.method == method for one in _ROUTES), (method, told)


@pytest.mark.parametrize(
    "route",
    [one for one in _ROUTES if one.method == "GET" and "follow" not in one.path and "{" not in one.path],
    ids=_named,
)
def test_head_answers_as_get_does_without_a_body(client: Client, route: Route) -> None:
    query = "?q=x" if route.path == "/api/search" else "?left=@last&right=@last" if route.path == "/api/diff" else ""
    got, told = client.get(route.path + query), client.ask("HEAD", route.path + query)
    assert (told.status, told.body) == (got.status, b"")
    assert told.headers["content-type"] == got.headers["content-type"]


_QUERIES = ("since=99999999999d", "since=0001-01-01T00:00:00%2B14:00", "since=9999-12-31T23:59:59-14:00", "until=-1h", "q=%22",
            "q=*", "q=a+AND+(", "q=NEAR(", "q=%00", "q=-", "q=%F0%9F%98%80", "cursor=abcd", "cursor=W10", "cursor=WzEsMl0",
            "cursor=%00", "limit=0", "limit=-1", "limit=1e3", "limit=99999999999999999999999", "limit=" + "9" * 5000,
            "text=%00", "text=%25", "commit=zz%25", "tag==", "tag=a=b=c", "error=maybe", "status=%27", "start=-1",
            "start=9007199254740993", "at=99999999999999999999", "at=x%23y", "step=%23", "by=x", "left=@last&right=%2e%2e",
            "runs=,,,", "rule=x", "ignore=x", "baseline=x", "kind=.", "deep=2", "a=1&a=2", "%00=%00", "=", "&&&", "%ff=%fe",
            "name=" + "x" * 9000)  # fmt: skip


@pytest.mark.parametrize("query", _QUERIES)
def test_no_parameter_breaks_a_route(client: Client, query: str) -> None:
    for route in _ROUTES:
        if route.method == "GET" and not route.path.endswith("follow"):
            told = client.get(f"{_address(route, run='@last')}?{query}")
            assert told.status < 500, (route.path, told)
            if told.status >= 400:
                told.error  # noqa: B018 - looks at the shape


@pytest.mark.parametrize("origin", ["http://[", "null", "http://evil", "x", "http://localhost:1", "http://[::1]:x"])
def test_pages_of_others_are_refused_whatever_they_say_they_are(client: Client, origin: str) -> None:
    _clear(client.ask("POST", "/v1/traces", b"{}", {**JSON, "Origin": origin}), 403)


# Questions.


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM runs", "ATTACH '/etc/passwd' AS x", "PRAGMA writable_schema=1", "SELECT load_extension('x')",
     "SELECT readfile('/etc/passwd')", "SELECT 1; SELECT 2", "\0", "SELECT 1\0", "VACUUM INTO '/tmp/x'", "", ";", "--",
     "SELECT * FROM pragma_database_list", "SELECT writefile('/tmp/x', 'y')", "SELECT '\ud83d\ude00'", "SELECT ?99999",
     "SELECT " + "(" * 2000 + "1" + ")" * 2000, "SELECT fts3_tokenizer('x')", "EXPLAIN SELECT 1", "BEGIN", "SELECT :a"],
)  # fmt: skip
def test_no_question_writes_or_reads_anything_but_the_index(client: Client, sql: str) -> None:
    told = client.post("/api/query", {"sql": sql})
    assert told.status in (200, 422), told
    assert b"root:" not in told.body


@pytest.mark.parametrize(
    "sql",
    ["SELECT zeroblob(900000000)", "SELECT hex(zeroblob(400000000))", "SELECT replace(hex(zeroblob(10000)), '0', hex(zeroblob(30000)))",
     "SELECT printf('%.*c', 500000000, 'x')", "SELECT group_concat(hex(zeroblob(1000000))) FROM json_each('[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]')",
     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5000) SELECT hex(zeroblob(100000)) FROM n"],
)  # fmt: skip
def test_an_answer_that_would_fill_the_memory_is_refused(server: Server, client: Client, sql: str) -> None:
    client.post("/api/query", {"sql": "SELECT 1"})
    server.forget_peak()
    before = server.memory_bytes()
    told = client.post("/api/query", {"sql": sql})
    if told.status == 200:
        assert told.json()["rows"] == [[None]], "printf gives nothing where it may not give more"
    else:
        assert _clear(told, 422)["code"] == "usage"
    assert server.memory_bytes("VmHWM") - before < 120 * _MB


@pytest.mark.hard  # ten seconds
def test_a_question_that_takes_too_long_is_stopped(client: Client) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    assert "longer" in _clear(client.post("/api/query", {"sql": endless}), 422)["message"]
    assert client.post("/api/query", {"sql": "SELECT 1", "params": [2**70]}).status in (200, 400, 422)


# Cassettes.


def _zip(*members: tuple[str, bytes]) -> bytes:
    import io
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members:
            packed.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize(
    "body",
    [b"", b"PK", b"PK\3\4" + b"\0" * 100, b"{}", b'{"format":"playhead.cassette","version":1}\n', _DEEP, b"\0" * 1000,
     _zip(("../../evil", b"x")), _zip(("cassette.json", b"{}")), _zip(("cassette.json", _DEEP)),
     _zip(("cassette.json", b" " * (64 * _MB)))],
)  # fmt: skip
def test_a_cassette_that_is_none_is_refused(server: Server, client: Client, body: bytes) -> None:
    told = client.ask("POST", "/api/cassettes/upload", body, {"Content-Type": "application/zip"})
    error = _clear(told, 400, 413, 422)
    assert "/tmp" not in error["message"]
    assert not list(server.store.parent.rglob("evil"))


@pytest.fixture(autouse=True)
def is_there_afterwards(client: Client) -> Iterator[None]:
    """Whatever came, the server goes on."""
    yield
    assert client.get("/health").status == 200


def test_limits_of_this_page_are_those_of_the_server() -> None:
    assert _limits.BODY_INFLATED_BYTES_MAX == 16 * _MB
    assert _limits.BODIES_BYTES_MAX == 64 * _MB


def test_who_sends_grpc_or_a_slash_too_many_is_told_or_taken(server: Server) -> None:
    told = server.client().ask("POST", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", b"x")
    assert told.status == 404
    assert "http/protobuf" in told.error["hint"]
    assert server.client().ask("POST", "/v1/traces/", b"{}", {"Content-Type": "application/json"}).status == 200
    assert server.address in server.client().get("/").body.decode()
