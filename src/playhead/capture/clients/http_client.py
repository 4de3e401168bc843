"""Record what goes through the standard library's http.client, and so requests, urllib3, urllib and botocore.

A request is recorded when its headers are complete and before they leave, or, where its body is made on the way, before
its last piece leaves. The answer is read off the file that http.client reads from, so that whoever reads past it, as
urllib3 does, is seen too.
"""

from __future__ import annotations

import errno
import functools
import io
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from playhead.capture import abandoned, answering, enforcing
from playhead.capture.begin import begin
from playhead.capture.clients import http1, http_replies
from playhead.capture.exchange import Exchange
from playhead.capture.patches import Patches
from playhead.capture.scope import muted, place

MODULES = ("http.client",)

_CALL = "_playhead_call"  # where a connection keeps the request that waits for its answer
# After these a client may still find an answer that was sent before the connection broke.
_ANSWER_MAY_BE_THERE = frozenset({errno.EPIPE, errno.ECONNRESET, getattr(errno, "EPROTOTYPE", errno.EPIPE)})


class Wanted:
    """What a library above has been asked to send, before there is a connection for it."""

    def __init__(self, method: str, target: str, headers: Any, body: Any) -> None:
        self.method, self.target, self.headers = method, target, headers
        self.body = body.encode() if isinstance(body, str) else _whole(body)


wanted: ContextVar[Wanted | None] = ContextVar("playhead_wanted", default=None)
_awaiting: ContextVar[_Call | None] = ContextVar("playhead_awaiting", default=None)


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into connections and answers."""
    connection, response = module.HTTPConnection, module.HTTPResponse
    for kind in (connection, getattr(module, "HTTPSConnection", None)):
        if kind is not None:
            patches.replace(kind, "connect", connecting)
    patches.replace(connection, "endheaders", _endheaders)
    patches.replace(connection, "send", _send)
    patches.replace(connection, "getresponse", functools.partial(_getresponse, module.ResponseNotReady))
    patches.replace(connection, "close", _close)
    patches.replace(response, "begin", functools.partial(_begin_response, module.IncompleteRead))


class _Call:
    """One request that is on its way over a connection."""

    def __init__(self, exchange: Exchange, question: http1.Question | None) -> None:
        self.exchange, self.question = exchange, question
        self.replayed: Callable[[], None] | None = None  # gives the connection its answer, in a replay
        self.sending = self.answered = False
        self._error: BaseException | None = None

    def replay(self) -> None:
        """Give the connection its answer in a replay, once the request is recorded."""
        if self.replayed is not None and self.exchange.recorded:
            answer, self.replayed = self.replayed, None
            answer()

    def failed(self, error: BaseException, connected: bool) -> None:
        """Take in that sending failed."""
        if connected and isinstance(error, OSError) and error.errno in _ANSWER_MAY_BE_THERE:
            self._error = error
        else:
            self.exchange.end(error)

    def left(self, error: BaseException | None = None) -> None:
        """Take in that nobody waits for the answer any more."""
        if not self.answered:
            error = self._error or error
            self.exchange.end(error, closed=error is None)

    def __del__(self) -> None:
        if not self.answered and not self.exchange.ended:
            abandoned.leave(self.left)


def _endheaders(original: Any) -> Any:
    @functools.wraps(original)
    def endheaders(self: Any, message_body: Any = None, **options: Any) -> Any:
        call = None if place() is None and answering.unrecorded is None else _begin(self, message_body)
        if call is None:
            self.__dict__.pop(_CALL, None)
            if isinstance(self.sock, http_replies.Pretended):
                self.close()  # what is not watched is not answered either
            return original(self, message_body, **options)
        self.__dict__[_CALL] = call
        try:
            if answering.player is not None:
                _replay(self, call)
            return original(self, message_body, **options)
        except BaseException as error:
            call.failed(error, self.sock is not None)
            raise

    return endheaders


def connecting(original: Any) -> Any:
    """Connect, or in a replay seem to."""

    @functools.wraps(original)
    def connect(self: Any) -> Any:
        if getattr(self, "_tunnel_host", None):
            enforcing.tunnel(address("https", self._tunnel_host, self._tunnel_port, ""))
        if answering.player is None or muted.get() or place() is None:
            return original(self)
        if answering.is_left_alone(f"//{self.host}:{self.port}"):
            return original(self)
        return _pretend(self)

    return connect


def _pretend(connection: Any) -> None:
    host, port = connection.host, connection.port
    connection.sock = http_replies.Pretended((host, port))
    if hasattr(connection, "proxy_is_verified"):
        connection._has_connected_to_proxy = bool(getattr(connection, "proxy", None))
    if hasattr(connection, "cert_reqs") and connection.default_port == 443:
        from urllib3.util.ssl_ import resolve_cert_reqs  # it is a connection of urllib3

        required = resolve_cert_reqs(connection.cert_reqs) == ssl.CERT_REQUIRED
        connection.is_verified = required or bool(getattr(connection, "assert_fingerprint", None))


def _replay(connection: Any, call: _Call) -> None:
    """Let a connection be answered from the tape, when its request is whole."""
    if not isinstance(connection.sock, http_replies.Pretended):
        if connection.sock is not None:
            connection.sock.close()  # of a request before, which the world has answered
        _pretend(connection)
    connection.sock.begin()
    lines: list[bytes] = connection._buffer
    method = lines[0].partition(b" ")[0].decode("latin-1")
    headers = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines[1:])]
    call.replayed = functools.partial(http_replies.answer, connection, call.exchange, method, headers)
    if http1.value_of(headers, b"expect").lower() == b"100-continue":
        connection.sock.allow_to_go_on()
    call.replay()


def _begin(connection: Any, given: Any) -> _Call | None:
    lines: list[bytes] = connection._buffer
    if not lines:
        return None  # the call will fail
    method, _, rest = lines[0].decode("latin-1").partition(" ")
    target = rest.rpartition(" ")[0]
    pairs = [line.partition(b":") for line in lines[1:]]
    headers = [(name, value.strip()) for name, _, value in pairs]
    body = _known_body(headers, given)
    exchange = begin(method, _url(connection, target), headers, body)
    if exchange is None:
        return None
    return _Call(exchange, http1.Question(exchange, headers) if body is None else None)


def _known_body(headers: http1.Headers, given: Any) -> bytes | None:
    """Return the body, where it is there already; None where it is made while it is sent."""
    if given is not None:
        return _whole(given)
    length = http1.length_of(headers)
    if not length and not http1.value_of(headers, b"transfer-encoding"):
        return b""
    asked = wanted.get()
    known = asked is not None and asked.body is not None and length in (None, len(asked.body))
    return asked.body if asked is not None and known else None


def _url(connection: Any, target: str) -> str:
    if target.startswith(("http://", "https://")):
        return target  # through a proxy
    secure = connection.default_port == 443
    host, port = connection.host, connection.port
    if connection._tunnel_host:
        host, port = connection._tunnel_host, connection._tunnel_port
    return address("https" if secure else "http", host, port, target)


def address(scheme: str, host: str, port: int | None, target: str) -> str:
    """Return a URL as a user would write it."""
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    usual = port is None or port == (443 if scheme == "https" else 80)
    return f"{scheme}://{host}{'' if usual else f':{port}'}{'' if target.startswith('/') else '/'}{target}"


def never_sent(url: str, error: BaseException) -> None:
    """Record a request for which no connection could be made."""
    asked = wanted.get()
    if asked is not None:
        headers = asked.headers.items() if asked.headers else ()
        exchange = begin(asked.method, url, [(str(k), _header_text(v)) for k, v in headers], asked.body or b"")
        if exchange is not None:
            exchange.end(error)


def _header_text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _send(original: Any) -> Any:
    @functools.wraps(original)
    def send(self: Any, data: Any) -> Any:
        call: _Call | None = self.__dict__.get(_CALL)
        if call is None or call.sending:  # inside: what opens a tunnel through a proxy
            return original(self, data)
        call.sending = True
        try:
            if call.question is None:
                return original(self, data)
            result = _send_telling(original, self, data, call.question)
            call.replay()
            return result
        except BaseException as error:
            call.failed(error, self.sock is not None)
            raise
        finally:
            call.sending = False

    return send


def _send_telling(original: Any, connection: Any, data: Any, question: http1.Question) -> Any:
    if hasattr(data, "read"):  # http.client does the same, out of our sight
        text = isinstance(data, io.TextIOBase)
        while block := data.read(connection.blocksize):
            block = block.encode("iso-8859-1") if text else block
            question.feed(bytes(block))
            original(connection, block)
        return None
    piece = _buffered(data)
    if piece is not None:
        question.feed(piece)
    elif isinstance(data, Iterable) and not isinstance(data, str):
        data = _telling(data, question)
    return original(connection, data)


def _telling(pieces: Iterable[Any], question: http1.Question) -> Iterator[Any]:
    for piece in pieces:
        question.feed(_buffered(piece) or b"")
        yield piece


def _buffered(data: Any) -> bytes | None:
    """Return the bytes of something that has them all; None otherwise."""
    if isinstance(data, bytes):
        return data
    try:
        return bytes(memoryview(data))
    except TypeError:
        return None


def _whole(body: Any) -> bytes | None:
    """Return a body that is there as a whole; a file is read while it is sent, even if it has a buffer."""
    return None if hasattr(body, "read") else _buffered(body)


def _getresponse(not_ready: type[Exception], original: Any) -> Any:
    @functools.wraps(original)
    def getresponse(self: Any) -> Any:  # no more than the original takes: urllib3 1 tries whether there is more
        call: _Call | None = self.__dict__.pop(_CALL, None)
        if call is None:
            return original(self)
        token = _awaiting.set(call)
        try:
            response = original(self)
        except not_ready:
            self.__dict__[_CALL] = call  # another answer has to be read first
            raise
        except BaseException as error:
            call.exchange.end(error)
            raise
        finally:
            _awaiting.reset(token)
        if not call.answered:  # an answer of a class of its own, of which only this can be seen
            call.exchange.head(response.status, response.getheaders())
        return response

    return getresponse


def _close(original: Any) -> Any:
    @functools.wraps(original)
    def close(self: Any) -> Any:
        call: _Call | None = self.__dict__.get(_CALL)
        if call is not None and not call.sending:  # else the error that closes it is told
            del self.__dict__[_CALL]
            call.left(sys.exc_info()[1])
        return original(self)

    return close


def _begin_response(cut: type[Exception], original: Any) -> Any:
    @functools.wraps(original)
    def begin(self: Any) -> Any:
        call = _awaiting.get()
        if call is None or call.answered or not hasattr(self.fp, "readinto"):
            return original(self)
        call.answered = True
        # botocore reads the status line itself when it waited for leave to go on.
        answer = http1.Answer(call.exchange, self._method or "", lambda status: status == 100)
        if status := getattr(self, "_status_tuple", None):
            answer.status_read(status[1])
        # Nothing is read yet. Below the buffer what arrives is seen as it arrives, also if nobody reads it.
        raw = self.fp.detach() if type(self.fp) is io.BufferedReader else self.fp
        self.fp = io.BufferedReader(_Tap(raw, call.exchange, answer, cut))
        result = original(self)
        if not answer.headed:  # http.client takes what it can get
            line = f"HTTP/{self.version // 10}.{self.version % 10} {self.status} {self.reason}".encode()
            answer.head(self.status, [(name.encode(), value.encode()) for name, value in self.getheaders()], line)
        return result

    return begin


class _Tap(io.RawIOBase):
    """Read from a connection, and tell what came.

    No `__getattr__`: the buffer above asks before every read for an attribute that a file has only once it is closed.
    """

    def __init__(self, inner: Any, exchange: Exchange, answer: http1.Answer, cut: type[Exception]) -> None:
        self._inner, self._exchange, self._answer, self._cut = inner, exchange, answer, cut
        self._sock = getattr(inner, "_sock", None)  # where many a recipe finds the socket of an answer

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has come."""
        try:
            count: int | None = self._inner.readinto(buffer)
        except BaseException as error:
            self._exchange.end(error)
            raise
        if count:
            self._answer.feed(bytes(buffer[:count]))
        elif count == 0 and not self._answer.closed_here() and self._answer.headed:
            self._exchange.end(self._cut(b"", self._answer.left))
        return count

    def close(self) -> None:
        """Close the connection's file; an answer that is not whole was left."""
        if not self.closed:
            try:
                self._inner.close()
            finally:
                super().close()
                if self._answer.headed:  # otherwise the call for the answer fails, and tells why
                    self._exchange.end(closed=True)

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        number: int = self._inner.fileno()
        return number

    @property
    def name(self) -> Any:
        """Return the name of the connection's file."""
        return self._inner.name

    @property
    def mode(self) -> Any:
        """Return the mode of the connection's file."""
        return self._inner.mode
