"""Answer httpx and httpx2 from the tape, at the transport, with responses of the library's own."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from playhead.capture import abandoned
from playhead.capture.clients.failures import NOT_REACHED, failure
from playhead.capture.clients.replies import Reply
from playhead.capture.exchange import Exchange


class Replaying:
    """Make responses of what was recorded."""

    def __init__(self, module: ModuleType, streams: Any) -> None:
        self._library = sys.modules[module.__name__.partition(".")[0]]
        self._streams = streams
        self._whole = type("Whole", (_Whole, module.SyncByteStream), {})
        self._whole_async = type("WholeAsync", (_WholeAsync, module.AsyncByteStream), {})
        self._sync = type("Replayed", (_Replayed, module.SyncByteStream), {})
        self._async = type("ReplayedAsync", (_ReplayedAsync, module.AsyncByteStream), {})

    def sync(self, exchange: Exchange, request: Any) -> Any:
        """Answer a request; None where the world is to be asked."""
        if not exchange.recorded and not hasattr(request, "_content"):
            sending = self._streams.sending(exchange, request.stream, False)
            request.stream = self._library.ByteStream(b"".join(sending))  # made as it would be sent
        reply = exchange.reply()
        if reply is None:
            return None
        reply.wait_for_head()
        if reply.status is None:
            raise self._ended(exchange, reply, request)
        if reply.body is not None:
            return self._response(exchange, reply, self._whole(exchange, reply))
        return self._response(exchange, reply, self._streams.receiving(exchange, self._sync(self, reply, request)))

    async def asynchronous(self, exchange: Exchange, request: Any) -> Any:
        """Answer a request of a client in an event loop; None where the world is to be asked."""
        if not exchange.recorded and not hasattr(request, "_content"):
            sending = self._streams.sending_async(exchange, request.stream, False)
            request.stream = self._library.ByteStream(b"".join([piece async for piece in sending]))
        reply = await exchange.reply_async()
        if reply is None:
            return None
        try:
            await reply.wait_for_head_async()
        except BaseException as error:
            exchange.end(error)
            raise
        if reply.status is None:
            raise self._ended(exchange, reply, request)
        if reply.body is not None:
            return self._response(exchange, reply, self._whole_async(exchange, reply))
        inner = self._async(self, reply, request)
        return self._response(exchange, reply, self._streams.receiving_async(exchange, inner))

    def _ended(self, exchange: Exchange, reply: Reply, request: Any) -> BaseException:
        error = self.error(reply, request)
        exchange.end(error)
        return error

    def error(self, reply: Reply, request: Any) -> BaseException:
        """Make the exception that was recorded."""
        described = reply.error or {"type": f"{self._library.__name__}.ReadError", "message": ""}
        if described["type"] == NOT_REACHED:
            described = {**described, "type": f"{self._library.__name__}.ConnectError"}
        made: Any = failure(described)
        if isinstance(made, self._library.RequestError):
            made._request = request
        error: BaseException = made
        return error

    def _response(self, exchange: Exchange, reply: Reply, stream: Any) -> Any:
        told = reply.version.startswith("HTTP/1.")  # later ones have no such words
        exchange.head(reply.status or 0, reply.headers, reason=reply.reason if told else None, version=reply.version)
        extensions = {"http_version": reply.version.encode("latin-1", "replace")}
        if told:
            extensions["reason_phrase"] = reply.reason.encode("latin-1", "replace")
        return self._library.Response(reply.status, headers=reply.headers, stream=stream, extensions=extensions)


class _OfWhole:
    def __init__(self, exchange: Exchange, reply: Reply) -> None:
        self._exchange, self._reply = exchange, reply
        self._read = False

    def __del__(self) -> None:
        if not self._exchange.ended:
            abandoned.leave(self._exchange.left)  # nobody read it, and nobody closed it

    def _came(self) -> bytes:
        body = self._reply.body or b""
        self._read = True
        self._exchange.chunk(body)
        self._exchange.end()
        return body

    def _left(self) -> None:
        if not self._exchange.ended:
            self._exchange.left()


class _Whole(_OfWhole):
    """The body of an answer that came whole."""

    def __iter__(self) -> Any:
        if not self._read:
            self._reply.wait_for_end()
            yield self._came()

    def close(self) -> None:
        """Let go of it."""
        self._left()


class _WholeAsync(_OfWhole):
    """The same in an event loop."""

    async def __aiter__(self) -> Any:
        if self._read:
            return
        try:
            await self._reply.wait_for_end_async()
        except BaseException as error:
            self._exchange.end(error)
            raise
        yield self._came()

    async def aclose(self) -> None:
        """Let go of it."""
        self._left()


class _Replayed:
    """What comes piece by piece. Whoever asks for it anew, as the openai SDK does to read the rest, gets the rest."""

    def __init__(self, replaying: Replaying, reply: Reply, request: Any) -> None:
        self._replaying, self._reply, self._request = replaying, reply, request
        self._left = self._pieces()

    def __iter__(self) -> Any:
        for piece in self._left:  # noqa: UP028  # `yield from` would end it with its reader
            yield piece

    def _pieces(self) -> Any:
        yield from self._reply.chunks()
        if self._reply.error is not None:
            raise self._replaying.error(self._reply, self._request)

    def close(self) -> None:
        """Let go of it."""


class _ReplayedAsync:
    """The same in an event loop."""

    def __init__(self, replaying: Replaying, reply: Reply, request: Any) -> None:
        self._replaying, self._reply, self._request = replaying, reply, request
        self._left = self._pieces()

    async def __aiter__(self) -> Any:
        async for piece in self._left:
            yield piece

    async def _pieces(self) -> Any:
        async for chunk in self._reply.chunks_async():
            yield chunk
        if self._reply.error is not None:
            raise self._replaying.error(self._reply, self._request)

    async def aclose(self) -> None:
        """Let go of it."""
