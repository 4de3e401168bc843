"""Answer aiohttp from the tape: below its own parser, with a transport that leads nowhere.

The bytes that were recorded are handed to the connection in their turns, so that aiohttp itself makes of them what it
made of them before. Its own timers do not run: what they did was recorded, and is done in its turn.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from typing import Any

from playhead.capture import answering
from playhead.capture.clients.failures import caused, failure, kind_of, names_in, original, saying
from playhead.capture.clients.replies import Reply, ends_with_connection, wired
from playhead.capture.scope import muted

_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
_AT_THE_END = re.compile(r"\. (\w+)\(([0-9]+), '([^']*)'\)$")
_ERRORS = "aiohttp.client_exceptions."
_TIMEOUTS = (_ERRORS + "SocketTimeoutError", _ERRORS + "ServerTimeoutError")


class Pretended(asyncio.Transport):
    """A connection that is none: what is written to it is gone, and what is read from it was recorded."""

    def __init__(self, loop: Any, protocol: Any, peer: Any, secure: bool) -> None:
        super().__init__({"peername": peer})
        self._loop, self._protocol, self._secure = loop, protocol, secure
        self._closing = self._hung_up = False
        self.kept: list[bytes] | None = None  # what was sent, where the world may be asked after all
        answering.pretended.add(self)

    def get_protocol(self) -> Any:
        """Return whom it belongs to."""
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        """Belong to another one."""
        self._protocol = protocol

    def write(self, data: Any) -> None:
        """Send nothing."""
        if self.kept is not None:
            self.kept.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Send nothing."""
        for data in list_of_data:
            self.write(data)

    def write_eof(self) -> None:
        """Send no end."""

    def can_write_eof(self) -> bool:
        """Say yes, as a connection over TCP does."""
        return not self._secure

    def get_write_buffer_size(self) -> int:
        """Say that all has been sent."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Have no limits."""

    def is_reading(self) -> bool:
        """Say whether it is open."""
        return not self._closing

    def pause_reading(self) -> None:
        """Go on: what was recorded came when it came."""

    def resume_reading(self) -> None:
        """Go on."""

    def is_closing(self) -> bool:
        """Say whether it is closed."""
        return self._closing or self._hung_up

    def close(self) -> None:
        """Be closed by the client."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        """Be closed at once."""
        self.close()

    def hang_up(self) -> None:
        """Be closed, for those who look before they use it again."""
        self._hung_up = True

    def lose(self, error: BaseException | None) -> None:
        """Be closed by the other side."""
        if not self._closing:
            self._closing = True
            if error is None:
                self._protocol.eof_received()
            self._protocol.connection_lost(error)


def connected(connector: Any, request: Any) -> Any:
    """Return a connection as the connector makes them, that leads nowhere."""
    protocol = connector._factory()
    pretend(protocol, connector, request)
    return protocol


def pretend(protocol: Any, connector: Any, request: Any) -> None:
    """Let a connection lead nowhere, if it does lead anywhere."""
    real = protocol.transport
    if real is not None:
        _part(real)
    peer = (request.url.raw_host, request.url.port)
    protocol.connection_made(Pretended(connector._loop, protocol, peer, request.is_ssl()))


async def connect_really(protocol: Any, connector: Any, request: Any) -> None:
    """Let a connection lead to the world after all, and hand on what was sent over it so far."""
    token = muted.set(True)  # so that it connects
    try:
        made = await connector._create_connection(request, [], sys.modules["aiohttp.client"].DEFAULT_TIMEOUT)
    finally:
        muted.reset(token)
    pretended, transport = protocol.transport, made.transport
    if pretended is None or pretended.is_closing():  # the client has left meanwhile
        _part(transport)
        return
    made.transport = None
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if pretended.kept:
        transport.write(b"".join(pretended.kept))


def _part(transport: Any) -> None:
    """Close a connection without a word to whom it belonged."""
    transport.set_protocol(asyncio.Protocol())
    transport.close()


def is_pretended(protocol: Any) -> bool:
    """Say whether a connection is such a one."""
    return isinstance(getattr(protocol, "transport", None), Pretended)


def go_on(protocol: Any) -> None:
    """Say, as a server does who was asked for it, that the body may be sent."""
    protocol._loop.call_soon(protocol.data_received, _GO_ON)


class Feed:
    """Hand one answer to a connection, piece by piece."""

    def __init__(self, reply: Reply, request: Any, protocol: Any) -> None:
        self._reply, self._request, self._protocol = reply, request, protocol
        self._loop = protocol._loop
        self._transport = protocol.transport
        self._transport.kept = None
        self._coming: Iterator[tuple[int, bytes]] = iter(())
        self._next: bytes | None = None
        protocol._read_timeout = None  # for it would count other seconds than those that were recorded
        protocol._drop_timeout()

    def begin(self) -> None:
        """Wait for the first turn."""
        if self._reply.status is not None:
            self._coming = wired(self._reply, self._request.method)
        self._wait()

    def _wait(self) -> None:
        at_us, self._next = next(self._coming, (None, None))
        reply = self._reply
        if at_us is None:
            if reply.cancelled or reply.left:
                return  # it is for the client to end it
            if reply.error is None and not ends_with_connection(reply, self._request.method):
                return
            at_us = reply.ended_us
        player = answering.player
        assert player is not None, "only a replay has replies"
        player.call_at(at_us, self._loop, self._step)

    def _step(self) -> None:
        if self._transport.is_closing() or self._protocol.transport is not self._transport:
            return  # the client has left
        if self._next is not None:
            self._protocol.data_received(self._next)
            self._wait()
        else:
            self._end()

    def _end(self) -> None:
        error = self._reply.error
        if error is None:
            self._transport.lose(None)
            return
        name, message = str(error.get("type")), str(error.get("message"))
        if name == "TimeoutError":
            self._request._timer.timeout()  # the time for all of it is over
        elif name in _TIMEOUTS:
            self._protocol._on_read_timeout()
        elif name.startswith("aiohttp.http_exceptions."):
            self._protocol.set_exception(_processing(error))
            self._transport.close()
        elif name == _ERRORS + "ServerDisconnectedError" and message != "Server disconnected":
            self._protocol.set_exception(failure(error))  # it tells what had come of a head
            self._transport.close()
        else:
            self._transport.lose(original(error) or _told(message))


def _told(message: str) -> OSError | None:
    """Return the error of the system that aiohttp puts at the end of its own message."""
    found = _AT_THE_END.search(message)
    kind = None if found is None else kind_of(found[1])
    if found is None or kind is None or not issubclass(kind, OSError):
        return None
    return kind(int(found[2]), found[3])


def _processing(error: dict[str, Any]) -> BaseException:
    """Make an error of aiohttp's parser, which is known by a status and a message."""
    made: Any = failure(error)
    status, _, said = str(error.get("message")).partition(", message:\n")
    made.code = int(status) if status.isdigit() else 400
    made.message = "\n".join(line.removeprefix("  ") for line in said.split("\n"))
    made.headers = None
    found: BaseException = made
    return found


def is_refusal(reply: Reply) -> bool:
    """Say whether there was no connection for the request."""
    error = reply.error
    return reply.status is None and error is not None and "connect" in names_in(error)


def refusal(error: dict[str, Any], request: Any) -> BaseException:
    """Make the exception that aiohttp raised when it could not connect."""
    name, message = str(error.get("type")), str(error.get("message"))
    library = sys.modules["aiohttp"]
    kind: Any = kind_of(name)
    if name == "TimeoutError":
        late: Any = getattr(library, "ConnectionTimeoutError", library.ServerTimeoutError)
        made: BaseException = late(f"Connection timeout to host {request.url}")
        made.__cause__ = TimeoutError()
        return made
    if kind is not None and issubclass(kind, library.ClientConnectorError):
        cause = original(error) or OSError(None, message)
        made = kind.__new__(kind)
        first = (request.unix_path,) if hasattr(request, "unix_path") else ()
        made.__init__(*first, request.connection_key, cause)  # type: ignore[misc]
        return caused(saying(made, message), error)
    if kind is not None and issubclass(kind, library.ClientResponseError):
        status, _, rest = message.partition(", message='")
        made = kind(request.request_info, (), status=int(status or 0), message=rest.partition("', url=")[0])
        return caused(saying(made, message), error)
    return failure(error)
