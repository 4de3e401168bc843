"""Take HTTP/1 apart as it passes: tell an exchange what is body, and leave out what is framing.

For clients that are watched at the level of the wire. Nothing here decides what the client gets; bytes that make no
sense are left to the client to complain about.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable

from playhead.capture.exchange import Exchange

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+")

Headers = list[tuple[bytes, bytes]]


class Body:
    """Cut a body out of its framing: chunks, a known length, or everything until the connection closes."""

    def __init__(self, headers: Headers, tell: Callable[..., None], *, empty: bool = False) -> None:
        self._tell = tell
        self.chunked = not empty and value_of(headers, b"transfer-encoding").lower().endswith(b"chunked")
        self._left = None if self.chunked else 0 if empty else length_of(headers)
        self.until_close = not self.chunked and self._left is None
        self._line = b""  # of the framing, as much of it as has come
        self._trailers = False
        self.done = self._left == 0

    @property
    def left(self) -> int | None:
        """Return how many bytes are still to come, as far as that is known."""
        return self._left

    def feed(self, data: bytes) -> None:
        """Take in what comes next."""
        if self.done or not data:
            return
        if self.chunked:
            self._feed_chunked(data)
        elif self._left is None:
            self._tell(data)
        else:
            piece = data[: self._left]
            self._left -= len(piece)
            self.done = not self._left
            self._tell(piece)

    def _feed_chunked(self, data: bytes) -> None:
        at, end = 0, len(data)
        while at < end and not self.done:
            if self._left:
                piece = data[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if self._left:
                    self._tell(piece, unended=True)
                else:
                    self._tell(piece)
                continue
            stop = data.find(b"\n", at)
            if stop < 0:
                self._line += data[at:]
                return
            line, self._line = (self._line + data[at:stop]).strip(), b""
            at = stop + 1
            if self._trailers:
                self.done = not line
            elif line:  # an empty one ends the chunk before
                self._size(line)

    def _size(self, line: bytes) -> None:
        try:
            self._left = max(0, int(line.partition(b";")[0], 16))
            self._trailers = self._left == 0
        except ValueError:
            self.chunked, self._left, self._tell = False, None, _ignore  # what follows has no meaning any more


class Answer:
    """Follow an answer from its first byte: its head, past those that only say to go on, its body and its end."""

    def __init__(self, exchange: Exchange, method: str, goes_on: Callable[[int], bool]) -> None:
        self._exchange, self._method = exchange, method
        self._goes_on = goes_on  # for which status the client waits for another head
        self._head = b""
        self._nonsense = False
        self._now = 0
        self._body: Body | None = None

    @property
    def headed(self) -> bool:
        """Say whether the head has come."""
        return self._body is not None

    @property
    def left(self) -> int | None:
        """Return how many bytes are still to come, as far as that is known."""
        return None if self._body is None else self._body.left

    def feed(self, data: bytes) -> None:
        """Take in what came from the connection."""
        self._now = time.monotonic_ns()  # of all that comes in one packet
        body = self._body
        if body is None:
            data = self._feed_head(data)
            body = self._body
        if body is not None:
            body.feed(data)
            if body.done:
                self._exchange.end(at=self._now)

    def status_read(self, status: int) -> None:
        """Take in the status from a client that read the first line itself."""
        self._head = b"HTTP/1.1 %d \r\n" % status

    def head(self, status: int, headers: Headers, line: bytes = b"") -> None:
        """Take in the head, with its first line; also from a client that made one out of something else."""
        version, _, rest = line.decode("latin-1").strip().partition(" ")
        reason = rest.strip().partition(" ")[2].strip() if line else None
        self._exchange.head(status, headers, reason=reason, version=version or None, at=self._now)
        empty = self._method == "HEAD" or status < 200 or status in (204, 304)
        self._body = Body(headers, self._tell, empty=empty)

    def _tell(self, piece: bytes, *, unended: bool = False) -> None:
        self._exchange.chunk(piece, unended=unended, at=self._now)

    def closed_here(self) -> bool:
        """Say whether the answer is whole when the connection closes now, and end it if so."""
        whole = self._body is not None and self._body.until_close
        if whole:
            self._exchange.end()
        return whole

    def _feed_head(self, data: bytes) -> bytes:
        """Return what follows the head, when it is whole."""
        held = (self._head + data).lstrip(b"\r\n")
        while not self._nonsense and (end := _HEAD_END.search(held)) is not None:
            line, headers = _head_parts(held[: end.start()])
            held = held[end.end() :]
            try:
                status = int(line.split(None, 2)[1])
            except (IndexError, ValueError):
                self._nonsense = True
                break
            if not self._goes_on(status):
                self.head(status, headers, line)
                return held
        self._head = held
        return b""


class Question:
    """Find the body in the bytes of a request on its way, and record the request before its last piece leaves."""

    def __init__(self, exchange: Exchange, headers: Headers) -> None:
        self._exchange = exchange
        self._head: bytes | None = b""
        self._body = Body(headers, exchange.sent)

    def feed(self, data: bytes) -> None:
        """Take in what is about to be sent."""
        if self._head is not None:
            self._head += data
            end = _HEAD_END.search(self._head)
            if end is None:
                return
            data, self._head = self._head[end.end() :], None
        self._body.feed(data)
        if self._body.done:
            self._exchange.opened()


def value_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return the value of a header, or nothing."""
    return next((value.strip() for key, value in headers if key.lower() == name), b"")


def length_of(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Return the length that the headers announce."""
    text = value_of(headers, b"content-length")
    return int(text) if text.isdigit() else None


def _head_parts(head: bytes) -> tuple[bytes, Headers]:
    first, *lines = _FOLD.sub(b" ", head).split(b"\n")
    pairs = (line.partition(b":") for line in lines)
    return first, [(name.strip(), value.strip()) for name, colon, value in pairs if colon]


def _ignore(data: bytes, *, unended: bool = False) -> None:
    """Take in nothing."""
