"""Answer http.client, and so whatever stands on it, from the tape: with a connection that leads nowhere.

The bytes that were recorded come out of it in their turns, so that the client's own parser, and those above it, meet
what they met: whole answers, cut ones, silence.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

from playhead.capture import answering
from playhead.capture.clients.failures import caused, failure, kind_of, names_in, saying
from playhead.capture.clients.replies import Reply, ends_with_connection, needed, wired
from playhead.capture.exchange import Exchange
from playhead.capture.scope import muted

_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
# What the client says of a connection that ended: it will say so again.
_ENDS = ("http.client.IncompleteRead", "http.client.RemoteDisconnected")
_EARLY = frozenset({"connect", "send", "endheaders", "_validate_conn", "_prepare_proxy"})


class Pretended(socket.socket):
    """A connection that is none. It has a descriptor, since some look at that, and nothing ever arrives there."""

    def __init__(self, peer: Any) -> None:
        ours, self._other = socket.socketpair()
        super().__init__(fileno=ours.detach())
        self._peer = peer
        self._held = memoryview(b"")
        self._coming: Iterator[bytes] = iter(())
        self._said = False
        self._kept: list[bytes] | None = None  # what was sent, where the world may be asked after all
        answering.pretended.add(self)

    def begin(self) -> None:
        """Be ready for a request."""
        self._kept = [] if _player().asks_world else None

    def answer_with(self, reply: Reply, method: str) -> None:
        """Let what comes next be this answer."""
        self._coming = _coming(reply, method)
        self._kept = None

    def sent(self) -> bytes:
        """Return what was sent over it."""
        return b"".join(self._kept or ())

    def hang_up(self) -> None:
        """Be seen to be closed by the other side."""
        self._other.close()

    def allow_to_go_on(self) -> None:
        """Say, as a server does who was asked for it, that the body may be sent."""
        self._held, self._said = memoryview(_GO_ON), True
        self._other.send(b".")  # some look first whether there is anything to read

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Return what has come, in its turn."""
        if self._said:
            self._said = False
            super().recv(1)
        if not self._held:
            self._held = memoryview(next(self._coming, b""))
        room = memoryview(buffer).cast("B")
        count = min(len(room), nbytes or len(room), len(self._held))
        room[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Return the same as bytes."""
        buffer = bytearray(bufsize)
        return bytes(buffer[: self.recv_into(buffer)])

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send nothing."""
        if self._kept is not None:
            self._kept.append(bytes(data))

    def send(self, data: Any, flags: int = 0) -> int:
        """Send nothing, all at once."""
        self.sendall(data)
        return memoryview(data).nbytes

    def setsockopt(self, *args: Any) -> None:
        """Set nothing: it is not a connection over TCP."""

    def getpeername(self) -> Any:
        """Return the address that it seems to lead to."""
        return self._peer

    def _real_close(self, *args: Any) -> None:  # type: ignore[override,unused-ignore]
        self._other.close()
        super()._real_close(*args)  # type: ignore[misc,unused-ignore]


def _coming(reply: Reply, method: str) -> Iterator[bytes]:
    player = _player()
    if reply.status is not None:
        for at_us, data in wired(reply, method):
            player.wait(at_us)
            yield data
        if reply.left:
            reply.no_further()
    if reply.error is not None or ends_with_connection(reply, method):
        player.wait(reply.ended_us)
    if reply.error is not None and reply.error.get("type") not in _ENDS:
        raise failure(reply.error)


def answer(connection: Any, exchange: Exchange, method: str, headers: list[tuple[bytes, bytes]]) -> None:
    """Let a connection have the answer to a request that is recorded; raises what happened before there was any."""
    reply = needed(exchange.reply())
    if reply is None:
        _connect_really(connection)
        return
    if reply.status is None and reply.error is not None and is_early(reply.error):
        _player().wait(reply.ended_us)
        if hasattr(connection, "_has_connected_to_proxy"):
            connection._has_connected_to_proxy = "_tunnel" in names_in(reply.error)
        connection.sock = None
        raise _refused(connection, reply.error)
    connection.sock.answer_with(reply, method)


def _connect_really(connection: Any) -> None:
    """Let a connection lead to the world after all, and hand on what was sent over it so far."""
    pretended, connection.sock = connection.sock, None
    token = muted.set(True)  # so that it connects
    try:
        connection.connect()
    finally:
        muted.reset(token)
        pretended.close()
    if sent := pretended.sent():
        connection.sock.sendall(sent)


def _player() -> answering.Player:
    assert answering.player is not None, "only a replay has replies"
    return answering.player


def is_early(error: dict[str, Any]) -> bool:
    """Say whether an error came before the client waited for an answer."""
    names = names_in(error)
    return bool(names & _EARLY) and "getresponse" not in names


def _refused(connection: Any, error: dict[str, Any]) -> BaseException:
    """Make an error of connecting; urllib3 has some that know their connection."""
    name, message = str(error.get("type")), str(error.get("message"))
    kind = kind_of(name)
    if kind is None or not name.startswith("urllib3."):
        made = failure(error)
        if isinstance(made, ssl.SSLError) and "_validate_conn" in names_in(error):
            from urllib3.exceptions import SSLError  # which it says there, and only there before it raises

            wrapped = SSLError(made)
            wrapped.__context__ = made
            return wrapped
        return made
    short, said = name.rpartition(".")[2], message.partition(": ")[2]
    make: Any = kind
    cause = error.get("cause")
    if short == "NameResolutionError" and isinstance(cause, dict):
        made = make(connection.host, connection, failure(cause))
    elif short == "ConnectTimeoutError":
        made = make(connection, message.partition(", '")[2].removesuffix("')") or message)
    elif short == "NewConnectionError":
        made = make(connection, said)
    else:
        return failure(error)
    # What stands there of the connection may be its place in memory, which is another one now.
    return caused(made if "object at 0x" in message else saying(made, message), error)
