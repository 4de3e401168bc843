"""A server that sends what it is told, byte by byte, and keeps what it got."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import playhead
from playhead.event import wire

CLOSE, RESET, HOLD = "close", "reset", "hold"

JSON = b'{"answer":42}'
EVENTS = [b"data: one\n\n", b"data: tw", b"o \xc3", b"\xbc\n\n", b"data: [DONE]\n\n"]
GZIPPED = gzip.compress(b'{"text":"' + b"ab" * 500 + b'"}', mtime=0)


def head(status: int = 200, **headers: Any) -> bytes:
    lines = [f"HTTP/1.1 {status} Fine", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


# By path: what is sent, piece by piece, as separate packets.
ANSWERS: dict[str, list[Any]] = {
    "/plain": [head(content_length=len(JSON), content_type="application/json"), JSON],
    "/apart": [b"HTTP/1.1 200 Fi", b"ne\r\ncontent-len", b"gth: 13\r\nx-a: 1\r\nX-A: 2\r\n\r", b"\n" + JSON[:5], JSON[5:]],
    "/stream": [head(transfer_encoding="chunked", content_type="text/event-stream"), *map(chunk, EVENTS), b"0\r\n\r\n"],
    "/framed": [
        head(Transfer_Encoding="chunked", trailer="x-end"),
        chunk(b"first", b";a=b"), chunk(b"second")[:7], chunk(b"second")[7:] + chunk(b"third") + b"0;last\r\nx-e",
        b"nd: 1\r\nx-other: 2\r\n\r\n",
    ],
    "/until-close": [head(content_type="text/plain", connection="close"), b"as long ", b"as it lasts", CLOSE],
    "/gzip": [head(content_length=len(GZIPPED), content_encoding="gzip"), GZIPPED[:20], GZIPPED[20:]],
    "/none": [head(204)],
    "/same": [head(304, content_length=13)],
    "/hints": [head(103, link="</style.css>"), head(content_length=2), b"ok"],
    "/failed": [head(500, content_length=4), b"oops"],
    "/moved": [head(302, location="/plain", content_length=2) + b"go"],
    "/cut-length": [head(content_length=100), b"only this", CLOSE],
    "/cut-chunks": [head(transfer_encoding="chunked"), chunk(b"one"), chunk(b"a chunk that is cut")[:9], CLOSE],
    "/cut-head": [b"HTTP/1.1 200 Fine\r\ncontent-le", CLOSE],
    "/reset": [head(transfer_encoding="chunked"), chunk(b"one"), RESET],
    "/silent": [CLOSE],
    "/nonsense": [b"this is no HTTP at all\r\n\r\n", CLOSE],
    "/hold": [head(transfer_encoding="chunked"), chunk(b"one"), HOLD],
    "/hold-head": [HOLD],
    "/large": [head(content_length=300_000), b"x" * 300_000],
}  # fmt: skip


@dataclass
class Got:
    """A request as it came over the wire."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int


@dataclass
class RawServer:
    """Answer by the table above; `/echo` sends back what it got, `/flaky` fails once."""

    tls: ssl.SSLContext | None = None
    got: list[Got] = field(default_factory=list)
    tunnels: int = 0
    refuse_tunnel: bool = False

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._released = threading.Event()
        self._connections = 0
        self._open: set[socket.socket] = set()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._released.set()
        # Whoever waits in `accept` is woken first: it would go on with the next socket that has this number.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._socket.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._connections += 1
            threading.Thread(target=self._serve, args=(connection, self._connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.add(connection)
            file = connection.makefile("rb")
            while (request := self._read(file, connection, number)) is not None:
                if request.method == "CONNECT":
                    self._tunnel(connection, file, request)
                    return
                self.got.append(request)
                if not self._answer(connection, request):
                    break
            file.close()
        self._open.discard(connection)
        connection.close()

    def _tunnel(self, connection: socket.socket, file: Any, request: Got) -> None:
        self.tunnels += 1
        if self.refuse_tunnel:
            connection.sendall(head(403, content_length=0))
            return
        host, _, port = request.target.rpartition(":")
        with socket.create_connection((host, int(port))) as other:
            connection.sendall(head(200))
            threading.Thread(target=_pump, args=(other, connection), daemon=True).start()
            _pump(connection, other)

    def _read(self, file: Any, connection: socket.socket, number: int) -> Got | None:
        line = file.readline()
        if not line:
            return None
        method, target, _ = line.decode().split(" ", 2)
        headers = []
        while (line := file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name, value.strip()))
        fields = {name.lower(): value for name, value in headers}
        if fields.get("expect", "").lower() == "100-continue":
            connection.sendall(head(100))
        if "chunked" in fields.get("transfer-encoding", ""):
            body = b""
            while size := int(file.readline().split(b";")[0], 16):
                body += file.read(size)
                file.readline()
            while file.readline() not in (b"\r\n", b""):
                pass
        else:
            body = file.read(int(fields.get("content-length", 0)))
        return Got(method, target, headers, body, number)

    def _answer(self, connection: socket.socket, request: Got) -> bool:
        path = "/" + request.target.partition("//")[2].partition("/")[2] if "//" in request.target else request.target
        path = path.partition("?")[0]
        if path == "/echo":
            text = json.dumps({"size": len(request.body), "method": request.method}).encode()
            pieces: list[Any] = [head(content_length=len(text), content_type="application/json"), text]
        elif path == "/v1/traces":  # where exporters send to
            pieces = [head(content_length=0)]
        elif path == "/flaky":
            first = sum(got.target == request.target for got in self.got) % 2 == 1
            pieces = [head(503, content_length=4), b"busy"] if first else ANSWERS["/plain"]
        else:
            pieces = ANSWERS[path]
        for piece in pieces:
            if piece == RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            if piece == CLOSE:
                return False
            if piece == HOLD:
                self._released.wait(30)
                return False
            if request.method == "HEAD" and not piece.startswith(b"HTTP/"):
                continue
            connection.sendall(piece)
            self._released.wait(0.002)  # so that it leaves as a packet of its own
        return True


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@dataclass
class Seen:
    """What a run holds, and what the server got, of the same calls."""

    value: Any
    sent: list[playhead.Event]
    received: list[playhead.Event]
    events: list[playhead.Event]
    got: list[Got]

    @property
    def bodies(self) -> list[bytes]:
        return [wire.request_bytes(event.data) for event in self.sent]

    @property
    def answers(self) -> list[bytes]:
        return [wire.response_bytes(event.data) for event in self.received]

    @property
    def outcomes(self) -> list[tuple[str, int | None, str | None]]:
        return [
            (event.data["outcome"], event.data.get("status"), (event.data.get("error") or {}).get("type"))
            for event in self.received
        ]


def attempt(scenario: Callable[..., Any], *args: Any) -> Any:
    """Return what a scenario gives, or how it fails, in a form that can be compared."""
    try:
        return scenario(*args)
    except BaseException as error:
        trail = [type(error)]
        while (cause := error.__cause__ or error.__context__) is not None:
            trail.append(type(cause))
            error = cause
        return trail


def seen(server: RawServer, scenario: Callable[[str], Any]) -> Seen:
    """Run a scenario without and with a recorder; it must not notice. Return what was recorded."""
    server.got.clear()
    bare = attempt(scenario, server.url)
    before = [(got.method, got.target, got.headers, got.body) for got in server.got]
    server.got.clear()
    with playhead.record("calls"):
        value = attempt(scenario, server.url)
    assert value == bare
    assert [(got.method, got.target, got.headers, got.body) for got in server.got] == before
    events = list(playhead.load("@last").events())
    sent = [event for event in events if event.kind == "http.sent"]
    spans = {event.span: event for event in events if event.kind == "http.received"}
    found = Seen(value, sent, [spans[event.span] for event in sent if event.span in spans], events, list(server.got))
    assert len(found.received) == len(sent), "an exchange was never ended"
    assert not [event for event in events if event.kind == "gap.noted" and event.data["reason"] != "not_captured"]
    return found


def whole(found: Seen) -> None:
    """Check that every request that reached the server is in the timeline once, with the bytes it got."""
    assert [event.data["method"] for event in found.sent] == [got.method for got in found.got]
    assert [[name for name, _ in event.data["headers"]] for event in found.sent] == [
        [name for name, _ in got.headers] for got in found.got
    ]
    assert found.bodies == [got.body for got in found.got]


@contextlib.contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    server = RawServer(tls)
    try:
        yield server
    finally:
        server.close()
