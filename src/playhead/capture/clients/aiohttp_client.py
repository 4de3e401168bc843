"""Record what goes through aiohttp, at the level of the wire: one request, one answer, bytes as they come.

An exchange is tied to its connection from the moment the request is sent until the answer is whole or the connection is
given back, so that bytes of one answer never count for another. Every hop of a redirect is an exchange of its own.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from playhead.capture import abandoned
from playhead.capture.clients import http1
from playhead.capture.exchange import Exchange, begin
from playhead.capture.patches import Patches
from playhead.capture.scope import place
from playhead.capture.spans import outcome

MODULES = ("aiohttp.client",)

_TAP = "_playhead_tap"  # where a connection keeps the exchange that goes over it now
_LEFT = "Connection closed"  # what aiohttp sets as the error of a body when the agent closes the answer


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into requests, connections and the connector."""
    connector = sys.modules["aiohttp.connector"].BaseConnector
    protocol = sys.modules["aiohttp.client_proto"].ResponseHandler
    writer = sys.modules["aiohttp.http_writer"].StreamWriter
    whole = sys.modules["aiohttp.payload"].BytesPayload
    patches.replace(connector, "connect", functools.partial(_connect, whole))
    patches.replace(connector, "_release", _release)
    patches.replace(module.ClientRequest, "send", functools.partial(_send, whole))
    patches.replace(writer, "write_headers", _write_headers)
    patches.replace(writer, "_write", _write)
    if "_writelines" in writer.__dict__:  # not in 3.9
        patches.replace(writer, "_writelines", _writelines)
    patches.replace(protocol, "data_received", _data_received)
    patches.replace(protocol, "connection_lost", _connection_lost)


class _Tap:
    """One request and its answer on a connection."""

    def __init__(self, request: Any, whole: type) -> None:
        self._request, self._whole = request, whole
        self.exchange: Exchange | None = None
        self.question: http1.Question | None = None
        self.answer: http1.Answer | None = None

    def begin(self, headers: Any) -> None:
        """Record the request, or begin to listen for its body where that is made while it is sent."""
        request, body = self._request, self._known_body()
        pairs = [(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers.items()]
        self.exchange = begin(request.method, str(request.url), pairs, body)
        if self.exchange is not None:
            self.answer = http1.Answer(self.exchange, request.method, lambda status: status < 200 and status != 101)
            self.question = None if body is not None else http1.Question(self.exchange, pairs)

    def _known_body(self) -> bytes | None:
        body: Any = self._request.body
        if isinstance(body, (bytes, bytearray)):
            return bytes(body)
        if not isinstance(body, self._whole) or self._request.compress:
            return None
        value: Any = body._value  # type: ignore[attr-defined]
        length = self._request.headers.get("Content-Length")
        return bytes(value) if length is None or length == str(len(value)) else None

    def failed(self, error: BaseException) -> None:
        """Take in the error that ends the exchange."""
        if self.exchange is not None:
            # Inside aiohttp a timeout of the whole request is a cancellation; what the agent gets is a timeout.
            expired = outcome(error) == "cancelled" and getattr(self._request._timer, "_cancelled", False)
            self.exchange.end(TimeoutError() if expired else error)

    def left(self) -> None:
        """Take in that nobody waits for the rest of the answer."""
        if self.exchange is not None:
            self.exchange.end(closed=True)

    def __del__(self) -> None:
        if self.exchange is not None and not self.exchange.ended:
            abandoned.leave(self.left)


def _connect(whole: type, original: Any) -> Any:
    @functools.wraps(original)
    async def connect(self: Any, req: Any, *args: Any, **options: Any) -> Any:
        try:
            return await original(self, req, *args, **options)
        except BaseException as error:
            if place() is not None:
                tap = _Tap(req, whole)
                tap.begin(req.headers)
                tap.failed(error)
            raise

    return connect


def _send(whole: type, original: Any) -> Any:
    @functools.wraps(original)
    async def send(self: Any, conn: Any) -> Any:
        protocol = conn.protocol
        if place() is None or protocol is None or self.method == "CONNECT":  # which only opens a tunnel
            return await original(self, conn)
        tap = _Tap(self, whole)
        setattr(protocol, _TAP, tap)
        transport = protocol.transport
        if type(transport).__module__.startswith("uvloop"):
            transport.set_protocol(protocol)  # it keeps the methods that it found first, which may be from before us
        try:
            return await original(self, conn)
        except BaseException as error:
            tap.failed(error)
            raise

    return send


def _write_headers(original: Any) -> Any:
    @functools.wraps(original)
    async def write_headers(self: Any, status_line: str, headers: Any) -> Any:
        tap: _Tap | None = getattr(self._protocol, _TAP, None)
        if tap is not None and tap.exchange is None:
            tap.begin(headers)  # aiohttp has just added the last of them, and nothing has left
        return await original(self, status_line, headers)

    return write_headers


def _write(original: Any) -> Any:
    @functools.wraps(original)
    def write(self: Any, chunk: Any) -> Any:
        tap: _Tap | None = getattr(self._protocol, _TAP, None)
        if tap is not None and tap.question is not None:
            tap.question.feed(bytes(chunk))
        return original(self, chunk)

    return write


def _writelines(original: Any) -> Any:
    @functools.wraps(original)
    def writelines(self: Any, chunks: Any) -> Any:
        tap: _Tap | None = getattr(self._protocol, _TAP, None)
        if tap is not None and tap.question is not None:
            chunks = list(chunks)
            tap.question.feed(b"".join(chunks))
        return original(self, chunks)

    return writelines


def _data_received(original: Any) -> Any:
    @functools.wraps(original)
    def data_received(self: Any, data: bytes) -> Any:
        tap: _Tap | None = self.__dict__.get(_TAP)
        if tap is not None and tap.answer is not None and data:
            tap.answer.feed(data)
            if tap.exchange is not None and tap.exchange.ended:
                del self.__dict__[_TAP]
        return original(self, data)

    return data_received


def _connection_lost(original: Any) -> Any:
    @functools.wraps(original)
    def connection_lost(self: Any, exc: BaseException | None) -> Any:
        tap: _Tap | None = self.__dict__.pop(_TAP, None)
        if tap is None or tap.answer is None:
            return original(self, exc)
        if self.transport is None:  # closed by the agent
            tap.left()
        elif exc is None:
            tap.answer.closed_here()
        payload = self._payload
        result = original(self, exc)
        error = self.exception() or exc
        if payload is not None and payload.exception() is not None:
            error = payload.exception()
        if error is None:
            tap.left()
        else:
            tap.failed(error)
        return result

    return connection_lost


def _release(original: Any) -> Any:
    @functools.wraps(original)
    def release(self: Any, key: Any, protocol: Any, **options: Any) -> Any:
        tap: _Tap | None = protocol.__dict__.pop(_TAP, None)
        if tap is not None:
            error = protocol.exception() or _error_of(protocol._payload) or _interruption()
            if error is None:
                tap.left()
            else:
                tap.failed(error)
        return original(self, key, protocol, **options)

    return release


def _error_of(payload: Any) -> BaseException | None:
    error: BaseException | None = None if payload is None else payload.exception()
    return None if error is None or str(error) == _LEFT else error


def _interruption() -> BaseException | None:
    """Return the cancellation or timeout in whose course this happens. Other errors are the agent's own."""
    error = sys.exc_info()[1]
    return error if isinstance(error, TimeoutError) or outcome(error) == "cancelled" else None
