"""Ask a server over one connection that stays open, at as little cost as Python allows."""

from __future__ import annotations

import http.client
import time
from typing import NamedTuple

from bench.peers.load import Request
from bench.peers.process import ServerFailed

TIMEOUT_S = 300
_REFUSED = (429, 503)
_REFUSED_PAUSE_S = 0.05
_IDLE_S_MAX = 1  # servers close a connection that is silent for some seconds


class Question(NamedTuple):
    """One HTTP request."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = {}


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._used_s = time.monotonic()
        self.refused = 0

    def ask(self, question: Question) -> bytes:
        """Return the body of the answer, which must be a 200."""
        status, body = self._ask(question)
        if status != 200:
            raise ServerFailed(f"{question.method} {question.path} was answered with {status}: {body[:500]!r}")
        return body

    def timed(self, question: Question) -> tuple[float, bytes]:
        """Return how many seconds the answer took, and the answer."""
        if time.monotonic() - self._used_s > _IDLE_S_MAX:
            self._connection.close()
            self._connection.connect()
        start = time.perf_counter()
        body = self.ask(question)
        return time.perf_counter() - start, body

    def send(self, request: Request, headers: dict[str, str]) -> float:
        """Post spans and return how many seconds it took until they were taken. Who refuses them is asked again."""
        question = Question("POST", "/v1/traces", request.body, {"Content-Type": "application/x-protobuf", **headers})
        start = time.perf_counter()
        while True:
            status, body = self._ask(question)
            if status == 200:
                return time.perf_counter() - start
            if status not in _REFUSED:
                raise ServerFailed(f"spans were answered with {status}: {body[:500]!r}")
            self.refused += 1
            time.sleep(_REFUSED_PAUSE_S)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask(self, question: Question) -> tuple[int, bytes]:
        self._connection.request(question.method, question.path, question.body or None, question.headers)
        answer = self._connection.getresponse()
        body = answer.read()
        self._used_s = time.monotonic()
        return answer.status, body
