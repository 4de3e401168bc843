"""Refuse requests whose head has no end, or takes for ever: uvicorn's way with httptools has no limit of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from playhead import _limits

_TOO_LARGE = (b"431 Request Header Fields Too Large", "head_too_large", "the head of the request has no end")
_TOO_SLOW = (b"408 Request Timeout", "head_too_slow", "the head of the request did not come in time")
_NO_HTTP = (b"400 Bad Request", "bad_request", "this is no request of HTTP")


class Bounded(HttpToolsProtocol):
    """Read requests, and count what comes without being head or body of one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unread_bytes = 0  # since a head was whole, or a piece of a body came
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with a connection."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End with it."""
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._unread_bytes += len(data)
        super().data_received(data)
        if self._unread_bytes > _limits.HEAD_BYTES_MAX and not self.transport.is_closing():
            self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that its head is whole."""
        self._unread_bytes = 0
        self._rest()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that a piece of its body came."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that it is whole."""
        self._unread_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Say in the shape of every error that this is no request."""
        self._refuse(_NO_HTTP)

    def _wait(self) -> None:
        self._rest()
        self._timer = self.loop.call_later(_limits.HEAD_WAIT_S, self._refuse, _TOO_SLOW)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, why: tuple[bytes, str, str]) -> None:
        if self.transport.is_closing():
            return
        status, code, message = why
        error = {"code": code, "message": message, "hint": "Send it again, as HTTP/1.1 has it.", "detail": None}
        body = orjson.dumps({"error": error})
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)
        self.transport.close()
