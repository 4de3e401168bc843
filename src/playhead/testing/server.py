"""Serve scripted model answers over real HTTP on loopback, so that a real client can be used without a key."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from playhead.testing import plain, shapes
from playhead.testing.exchanges import Exchange, ReceivedRequest
from playhead.testing.script import Answer, Failure, Loose, as_answer
from playhead.testing.wire import Wire

_POLL_S = 0.02
_BODILESS = (204, 304)
_NO_ROUTE = shapes.SHAPES[0]  # whose errors are said for paths that belong to no API


class ScriptedProvider:
    """Hand out the answers of a script in order, whoever asks, in the form of the API that is asked.

        with ScriptedProvider(["Hello.", [{"name": "read_file", "arguments": {"path": "a"}}], 429]) as provider:
            client = openai.OpenAI(base_url=provider.base_url, api_key="none", max_retries=0)

    `script` may be a function that gets the request and returns the answer; with `by_prompt` the first text that is
    found in the newest part of the request decides, and the script is for the rest. With `repeat` the script begins
    again; else, when it is exhausted, the answer is an error 500 that says so. `wire` says how answers are sent that
    do not say it themselves. `log` is a file that gets each exchange as a line of JSON.
    """

    def __init__(
        self,
        script: Sequence[Loose] | Callable[[ReceivedRequest], Loose] = (),
        *,
        by_prompt: Mapping[str, Loose] | None = None,
        repeat: bool = False,
        wire: Wire | None = None,
        port: int = 0,
        log: str | Path | None = None,
    ) -> None:
        self._function = script if callable(script) else None
        self._answers = [] if callable(script) else [as_answer(loose) for loose in script]
        self._by_prompt = {text: as_answer(loose) for text, loose in (by_prompt or {}).items()}
        self._repeat = repeat
        self._wire = wire or Wire()
        self._port = port
        self._log_path = log
        self._log: TextIO | None = None
        self._kept: list[_Kept] = []
        self._taken = 0  # of the script
        self._answered = 0  # by whatever rule
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Listen on 127.0.0.1, on a free port unless one was given."""
        self._server = _Server(self, self._port)
        if self._log_path is not None:
            try:
                self._log = open(self._log_path, "w", encoding="utf-8")  # noqa: SIM115, closed in close()
            except OSError:
                self._server.server_close()
                self._server = None
                raise
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="scripted-provider", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening and hang up on clients that keep their connection open."""
        if self._server is None or self._thread is None:
            return
        self._server.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()
        self._server = self._thread = None
        with self._lock:
            for kept in self._kept:
                self._write(kept)
            if self._log is not None:
                self._log.close()
                self._log = None

    @property
    def root_url(self) -> str:
        """Return the address of the server, without a slash at the end."""
        if self._server is None:
            raise RuntimeError("the scripted provider is not running: use it in a with statement")
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        """Return the address that OpenAI's client, and those of compatible servers, take as their base."""
        return f"{self.root_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """Return the address that Anthropic's client takes as its base; it adds `/v1/messages` itself."""
        return self.root_url

    @property
    def google_url(self) -> str:
        """Return the address that Google's client takes as its base; it adds `/v1beta/models/…` itself."""
        return self.root_url

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Return what was asked so far, in the order of arrival."""
        with self._lock:
            return [kept.request for kept in self._kept]

    @property
    def exchanges(self) -> list[Exchange]:
        """Return what was asked and what was sent for it so far, in the order of arrival."""
        with self._lock:
            return [kept.exchange() for kept in self._kept]

    @property
    def remaining(self) -> int:
        """Say how many answers of the script nobody has asked for yet."""
        with self._lock:
            return max(0, len(self._answers) - self._taken)

    def _note(self, request: ReceivedRequest) -> _Kept:
        with self._lock:
            kept = _Kept(len(self._kept) + 1, request, self._lock)
            self._kept.append(kept)
            return kept

    def _settle(self, kept: _Kept) -> None:
        with self._lock:
            kept.done = True
            self._write(kept)

    def _write(self, kept: _Kept) -> None:
        if self._log is not None and not kept.logged:
            kept.logged = True
            self._log.write(kept.exchange().as_json() + "\n")
            self._log.flush()

    def _choose(self, request: ReceivedRequest) -> tuple[int, Answer]:
        """Return the answer for a request and its number, counted from one."""
        prompt = request.prompt if self._by_prompt else ""
        answer = next((answer for text, answer in self._by_prompt.items() if text in prompt), None)
        if answer is None and self._function is not None:
            answer = as_answer(self._function(request))
        with self._lock:
            self._answered += 1
            if answer is not None:
                return self._answered, answer
            if not self._answers and self._by_prompt:
                return self._answered, Failure(500, f"no text of by_prompt is in the request: {list(self._by_prompt)}")
            if self._taken >= len(self._answers) and not (self._repeat and self._answers):
                return self._answered, Failure(500, f"the script is exhausted after {self._taken} answers")
            self._taken += 1
            return self._answered, self._answers[(self._taken - 1) % len(self._answers)]


class _Kept:
    """What is known of one exchange while it goes on."""

    def __init__(self, number: int, request: ReceivedRequest, lock: threading.Lock) -> None:
        self.number, self.request = number, request
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.chunks: list[bytes] = []
        self.cut = self.left = self.done = self.logged = False
        self._lock = lock

    def head(self, status: int, headers: list[tuple[str, str]]) -> None:
        with self._lock:
            self.status, self.headers = status, headers

    def chunk(self, data: bytes) -> None:
        with self._lock:
            self.chunks.append(data)

    def exchange(self) -> Exchange:
        return Exchange(
            self.number, self.request, self.status, list(self.headers), list(self.chunks),
            self.cut, self.left, self.done,
        )  # fmt: skip


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # many clients at once must not wait for a second attempt to connect

    def __init__(self, provider: ScriptedProvider, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.provider = provider
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client may hang up in the middle of a stream; that is its right and no fault of this server.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        """End connections that are kept alive; their threads then see the end of input and return."""
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster, and the connection is over as well


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every chunk of a stream waits for the acknowledgement of the one before

    def _serve(self) -> None:
        request = ReceivedRequest(self.command, self.path, list(self.headers.items()), self._body())
        kept = self.server.provider._note(request)
        try:
            self._send(kept, self._sending(request))
        except ConnectionError:
            kept.left = True
            raise
        finally:
            self.server.provider._settle(kept)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers, up to the empty line
        return body

    def _sending(self, request: ReceivedRequest) -> shapes.Sending:
        provider = self.server.provider
        asked = shapes.asked_of(request.path, request.body)
        if asked.path.startswith(plain.PREFIX):
            try:
                answer = plain.answer(request.method, asked, self.headers.get("Content-Type", ""))
            except ValueError as error:
                return shapes.failure(_NO_ROUTE, asked, Failure(400, str(error)), Wire())
            return shapes.raw(answer, answer.wire or Wire())
        shape = shapes.shape_of(asked)
        if shape is None or request.method != "POST":
            no_route = Failure(404, f"no such route: {request.method} {request.path}")
            return shapes.failure(shape or _NO_ROUTE, asked, no_route, provider._wire)
        try:
            parsed = json.loads(request.body)
        except ValueError as error:
            return shapes.failure(shape, asked, Failure(400, f"the body is not JSON: {error}"), provider._wire)
        if not isinstance(parsed, dict):
            return shapes.failure(shape, asked, Failure(400, "the body is not a JSON object"), provider._wire)
        asked = shapes.asked_of(request.path, request.body, parsed)
        number, answer_ = provider._choose(request)
        return shapes.written(shape, asked, answer_, number, provider._wire)

    def _send(self, kept: _Kept, sending: shapes.Sending) -> None:
        """Send an answer as its wire says; what is noted is noted first, so that no client is ahead of the log."""
        wire = sending.wire
        self._wait(wire.delay_s)
        if wire.cut is not None:
            self.close_connection = True
        if wire.cut == "before-head":
            kept.cut = True
            return
        bodiless = self.command == "HEAD" or sending.status in _BODILESS
        chunks = [] if bodiless else wire.kept(sending.chunks)
        kept.head(sending.status, sending.headers)
        kept.cut = wire.cut is not None and not bodiless and (sending.chunked or chunks != sending.chunks)
        head = self._head(sending)
        if len(chunks) == 1 and not sending.chunked:
            kept.chunk(chunks[0])
            kept.done = True
            self.wfile.write(head + chunks[0])
            return
        self.wfile.write(head)
        for number, chunk in enumerate(chunks):
            if number:
                self._wait(wire.chunk_delay_s)
            kept.chunk(chunk)
            kept.done = number == len(chunks) - 1
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk) if sending.chunked else chunk)
        if sending.chunked and not kept.cut and not bodiless:
            self.wfile.write(b"0\r\n\r\n")

    def _head(self, sending: shapes.Sending) -> bytes:
        reason = self.responses.get(sending.status, ("",))[0]
        lines = [f"HTTP/1.1 {sending.status} {reason}", *(f"{name}: {value}" for name, value in sending.headers)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            self.server.closing.wait(seconds)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: the requests are kept in `ScriptedProvider.exchanges`."""
