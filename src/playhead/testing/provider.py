"""Serve scripted model answers over real HTTP on loopback, so that a real client can be used without a key."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from playhead.testing import openai_chat
from playhead.testing.script import Answer, Failure, Loose, as_answer

_POLL_S = 0.02


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it came in."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


class ScriptedProvider:
    """Hand out the answers of a script in order, whoever asks.

        with ScriptedProvider(["Hello.", [{"name": "read_file", "arguments": {"path": "a"}}], 429]) as provider:
            client = openai.OpenAI(base_url=provider.base_url, api_key="none", max_retries=0)

    When the script is exhausted the answer is an error 500 that says so.
    """

    def __init__(self, script: Sequence[Loose]) -> None:
        self._answers = [as_answer(loose) for loose in script]
        self._requests: list[ReceivedRequest] = []
        self._taken = 0
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
        """Listen on a free port of 127.0.0.1."""
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="scripted-provider", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening and hang up on clients that keep their connection open."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.hang_up()
            self._server.server_close()
            self._server = self._thread = None

    @property
    def base_url(self) -> str:
        """Return the address that a client takes as its base, without a slash at the end."""
        if self._server is None:
            raise RuntimeError("the scripted provider is not running: use it in a with statement")
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Return what was asked so far, in the order of arrival."""
        with self._lock:
            return list(self._requests)

    @property
    def remaining(self) -> int:
        """Say how many answers nobody has asked for yet."""
        with self._lock:
            return len(self._answers) - self._taken

    def _note(self, request: ReceivedRequest) -> None:
        with self._lock:
            self._requests.append(request)

    def _take(self) -> tuple[int, Answer]:
        """Return the next answer and its number, counted from one."""
        with self._lock:
            if self._taken == len(self._answers):
                return self._taken, Failure(500, f"the script is exhausted after {self._taken} answers")
            self._taken += 1
            return self._taken, self._answers[self._taken - 1]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, provider: ScriptedProvider) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider = provider
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

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.provider._note(ReceivedRequest(self.command, self.path, list(self.headers.items()), body))
        if self.path.partition("?")[0] != openai_chat.PATH:
            self._send(404, openai_chat.error(f"no such route: POST {self.path}", "invalid_request_error"))
            return
        try:
            request = json.loads(body)
        except ValueError as error:
            self._send(400, openai_chat.error(f"the body is not JSON: {error}", "invalid_request_error"))
            return
        if not isinstance(request, dict):
            self._send(400, openai_chat.error("the body is not a JSON object", "invalid_request_error"))
            return
        self._answer(request, body)

    def do_GET(self) -> None:
        self.server.provider._note(ReceivedRequest(self.command, self.path, list(self.headers.items()), b""))
        self._send(404, openai_chat.error(f"no such route: GET {self.path}", "invalid_request_error"))

    def _answer(self, request: dict[str, Any], body: bytes) -> None:
        number, answer = self.server.provider._take()
        if isinstance(answer, Failure):
            kind = "server_error" if answer.status >= 500 else "invalid_request_error"
            self._send(answer.status, openai_chat.error(answer.message, kind))
        elif request.get("stream"):
            lines = (_json(chunk) for chunk in openai_chat.chunks(request, body, answer, number))
            self._stream(b"data: " + line + b"\n\n" for line in (*lines, b"[DONE]"))
        else:
            self._send(200, openai_chat.completion(request, body, answer, number), f"req_scripted_{number}")

    def _send(self, status: int, value: dict[str, Any], request_id: str | None = None) -> None:
        payload = _json(value)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if request_id is not None:
            self.send_header("x-request-id", request_id)
        self.end_headers()
        self.wfile.write(payload)

    def _stream(self, events: Iterable[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: the requests are kept in `ScriptedProvider.requests`."""


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
