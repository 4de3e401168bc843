"""Record what goes through aiohttp, at the level of the wire: one request, one answer, bytes as they come.

An exchange is tied to its connection from the moment the request is sent until the answer is whole or the connection is
given back, so that bytes of one answer never count for another. Every hop of a redirect is an exchange of its own.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from types import ModuleType
from typing import Any

from playhead.capture import abandoned, answering, enforcing
from playhead.capture.begin import begin
from playhead.capture.clients import aiohttp_replies, http1
from playhead.capture.clients.replies import Reply, needed
from playhead.capture.exchange import Exchange
from playhead.capture.patches import Patches
from playhead.capture.scope import muted, place
from playhead.capture.spans import outcome
from playhead.errors import DeviationError

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
    for kind in _connectors(connector):
        patches.replace(kind, "_create_connection", _create_connection)
    patches.replace(sys.modules["aiohttp.helpers"].TimeoutHandle, "start", _start)
    patches.replace(module.ClientRequest, "send", functools.partial(_send, whole))
    patches.replace(writer, "write_headers", _write_headers)
    patches.replace(writer, "_write", _write)
    if "_writelines" in writer.__dict__:  # not in 3.9
        patches.replace(writer, "_writelines", _writelines)
    patches.replace(protocol, "data_received", _data_received)
    patches.replace(protocol, "connection_lost", _connection_lost)


def _connectors(kind: Any) -> list[Any]:
    """Return the classes that know how to connect."""
    found = [kind] if "_create_connection" in kind.__dict__ else []
    return [*found, *(each for child in kind.__subclasses__() for each in _connectors(child))]


class _Tap:
    """One request and its answer on a connection."""

    def __init__(self, request: Any, whole: type, connector: Any = None) -> None:
        self._request, self._whole, self._connector = request, whole, connector
        self.exchange: Exchange | None = None
        self.refused: Reply | None = None  # in a replay: no connection was made for it
        self._waits = False  # in a replay: for its body to be sent
        self._live: asyncio.Task[None] | None = None  # in a replay: it asks the world after all
        self.question: http1.Question | None = None
        self.answer: http1.Answer | None = None

    async def replay(self, protocol: Any) -> None:
        """Let the connection have its answer, once the request is recorded; raises where there was no connection."""
        if self.exchange is None:
            raise ConnectionRefusedError("a request that is not recorded is not answered in a replay")
        if not aiohttp_replies.is_pretended(protocol):  # it is from before, or has asked the world
            aiohttp_replies.pretend(protocol, self._connector, self._request)
        protocol.transport.kept = [] if _asks_world() else None
        if self._request._continue is not None:
            aiohttp_replies.go_on(protocol)
        if not self._feed_later(protocol):
            await aiohttp_replies.connect_really(protocol, self._connector, self._request)
        if self.refused is not None:
            reply, self.refused = self.refused, None
            await reply.wait_for_head_async()
            raise aiohttp_replies.refusal(reply.error or {}, self._request)

    def feed(self, protocol: Any) -> None:
        """Do the same where a body is on its way."""
        if self._waits and self.exchange is not None and self.exchange.recorded and not self._feed_later(protocol):
            connecting = aiohttp_replies.connect_really(protocol, self._connector, self._request)
            self._live = protocol._loop.create_task(connecting)
            self._live.add_done_callback(functools.partial(_fail, protocol))

    def _feed_later(self, protocol: Any) -> bool:
        """Let the tape answer, now or when the request is recorded; False where the world is to be asked."""
        assert self.exchange is not None
        self._waits = not self.exchange.recorded
        if self._waits:
            return True
        reply = needed(self.exchange.reply())
        if reply is None:
            return False
        if aiohttp_replies.is_refusal(reply):
            self.refused = reply
        else:
            aiohttp_replies.Feed(reply, self._request, protocol).begin()
        return True

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
        unwatched = place() is None or answering.is_left_alone(str(self.url))
        if answering.unrecorded is not None and place() is None:
            answering.unrecorded(self.method, str(self.url))
        is_tunnel = self.method == "CONNECT"
        if is_tunnel and not unwatched:
            enforcing.tunnel(str(self.url))
        if unwatched or protocol is None or is_tunnel:
            if aiohttp_replies.is_pretended(protocol):
                raise ConnectionRefusedError("a request that is not recorded is not answered in a replay")
            return await original(self, conn)
        tap = _Tap(self, whole, conn._connector)
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
            if answering.player is not None:
                await tap.replay(self._protocol)
        return await original(self, status_line, headers)

    return write_headers


def _write(original: Any) -> Any:
    @functools.wraps(original)
    def write(self: Any, chunk: Any) -> Any:
        tap: _Tap | None = getattr(self._protocol, _TAP, None)
        if tap is not None and tap.question is not None:
            _telling(tap, self._protocol, bytes(chunk))
        return original(self, chunk)

    return write


def _writelines(original: Any) -> Any:
    @functools.wraps(original)
    def writelines(self: Any, chunks: Any) -> Any:
        tap: _Tap | None = getattr(self._protocol, _TAP, None)
        if tap is not None and tap.question is not None:
            chunks = list(chunks)
            _telling(tap, self._protocol, b"".join(chunks))
        return original(self, chunks)

    return writelines


def _telling(tap: _Tap, protocol: Any, data: bytes) -> None:
    """Take in what is about to be sent."""
    assert tap.question is not None
    try:
        tap.question.feed(data)
        if answering.player is not None:
            tap.feed(protocol)
    except DeviationError as error:
        protocol.set_exception(error)  # whoever waits for the answer is in another task
        raise


def _create_connection(original: Any) -> Any:
    @functools.wraps(original)
    async def create_connection(self: Any, req: Any, *args: Any, **options: Any) -> Any:
        if answering.player is None or muted.get() or place() is None or answering.is_left_alone(str(req.url)):
            return await original(self, req, *args, **options)
        return aiohttp_replies.connected(self, req)

    return create_connection


def _start(original: Any) -> Any:
    @functools.wraps(original)
    def start(self: Any) -> Any:
        # When the time for a request was over is known in a replay.
        return original(self) if answering.player is None or _asks_world() else None

    return start


def _fail(protocol: Any, connecting: asyncio.Task[None]) -> None:
    error = None if connecting.cancelled() else connecting.exception()
    if error is not None:
        protocol.set_exception(error)  # whoever waits for the answer is in another task


def _asks_world() -> bool:
    return answering.player is not None and answering.player.asks_world


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
