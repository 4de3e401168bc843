"""Record what goes through httpx and its fork httpx2, at the transport, where chunks pass as they come."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator
from types import ModuleType
from typing import Any

from playhead.capture import abandoned, answering
from playhead.capture.begin import begin
from playhead.capture.clients.httpx_replies import Replaying
from playhead.capture.exchange import Exchange
from playhead.capture.patches import Patches
from playhead.capture.scope import muted

MODULES = ("httpx._transports.default", "httpx2._transports.default")


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into the two transports of the library."""
    streams = _Streams(module)
    replaying = Replaying(module, streams)
    patches.replace(module.HTTPTransport, "handle_request", functools.partial(_sync, streams, replaying))
    patches.replace(module.AsyncHTTPTransport, "handle_async_request", functools.partial(_async, streams, replaying))


def _sync(streams: _Streams, replaying: Replaying, original: Any) -> Any:
    @functools.wraps(original)
    def handle_request(self: Any, request: Any) -> Any:
        exchange = _begin(request)
        if exchange is None:
            return original(self, request)
        if answering.player is not None and (answered := replaying.sync(exchange, request)) is not None:
            return answered
        sent = request.stream
        if not exchange.recorded:
            request.stream = streams.sending(exchange, sent, hasattr(request, "_content"))
        token = muted.set(True)  # whatever the transport uses below is this same exchange
        try:
            response = original(self, request)
        except BaseException as error:
            exchange.end(error)
            raise
        finally:
            muted.reset(token)
            request.stream = sent
        _head(exchange, response)
        response.stream = streams.receiving(exchange, response.stream)
        return response

    return handle_request


def _async(streams: _Streams, replaying: Replaying, original: Any) -> Any:
    @functools.wraps(original)
    async def handle_async_request(self: Any, request: Any) -> Any:
        exchange = _begin(request)
        if exchange is None:
            return await original(self, request)
        if answering.player is not None and (answered := await replaying.asynchronous(exchange, request)) is not None:
            return answered
        sent = request.stream
        if not exchange.recorded:
            request.stream = streams.sending_async(exchange, sent, hasattr(request, "_content"))
        token = muted.set(True)
        try:
            response = await original(self, request)
        except BaseException as error:
            exchange.end(error)
            raise
        finally:
            muted.reset(token)
            request.stream = sent
        _head(exchange, response)
        response.stream = streams.receiving_async(exchange, response.stream)
        return response

    return handle_async_request


def _begin(request: Any) -> Exchange | None:
    # A body that is not there yet is made while it is sent, and must not be read before.
    body = getattr(request, "_content", None)
    return begin(request.method, str(request.url), request.headers.raw, body, tells=True)


def _head(exchange: Exchange, response: Any) -> None:
    told = response.extensions
    reason, version = (_told(told.get(name)) for name in ("reason_phrase", "http_version"))
    exchange.head(response.status_code, response.headers.raw, reason=reason, version=version)


def _told(text: Any) -> str | None:
    return text.decode("latin-1") if isinstance(text, bytes) else None


class _Streams:
    """Make streams of the library's own types that tell an exchange what passes through them."""

    def __init__(self, module: ModuleType) -> None:
        self.receiving = type("Receiving", (_Receiving, module.SyncByteStream), {})
        self.receiving_async = type("ReceivingAsync", (_ReceivingAsync, module.AsyncByteStream), {})
        self.sending = type("Sending", (_Sending, module.SyncByteStream), {})
        self.sending_async = type("SendingAsync", (_SendingAsync, module.AsyncByteStream), {})


class _Passing:
    def __init__(self, exchange: Exchange, inner: Any) -> None:
        self._exchange, self._inner = exchange, inner

    def __getattr__(self, name: str) -> Any:
        if name in ("_exchange", "_inner"):
            raise AttributeError(name)  # of one that was never made whole
        return getattr(self._inner, name)  # for those who know what they hold


class _Receiving(_Passing):
    def __del__(self) -> None:
        if not self._exchange.ended:
            abandoned.leave(self._exchange.left)  # nobody read it to its end, and nobody closed it

    def __iter__(self) -> Any:
        exchange = self._exchange
        try:
            for chunk in self._inner:
                exchange.chunk(chunk)
                yield chunk
        except GeneratorExit:
            raise  # the reader went away; `close` tells
        except BaseException as error:
            exchange.end(error)
            raise
        exchange.end()

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._exchange.end(closed=True)


class _ReceivingAsync(_Passing):
    def __del__(self) -> None:
        if not self._exchange.ended:
            abandoned.leave(self._exchange.left)

    async def __aiter__(self) -> Any:
        exchange, inner = self._exchange, aiter(self._inner)
        try:
            async for chunk in inner:
                exchange.chunk(chunk)
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:
            exchange.end(error)
            raise
        finally:
            if isinstance(inner, AsyncGenerator):  # as the library does: left alone, the loop would close it beside us
                await inner.aclose()
        exchange.end()

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._exchange.end(closed=True)


class _Sent(_Passing):
    def __init__(self, exchange: Exchange, inner: Any, told: bool) -> None:
        super().__init__(exchange, inner)
        self._told = told  # what will be sent is known already


class _Sending(_Sent):
    def __iter__(self) -> Any:
        pieces = self._inner if self._told else self._made()
        yield from pieces
        self._exchange.opened()  # the transport asks for more when the last piece has left

    def _made(self) -> Any:
        pieces = iter(self._inner)
        while True:
            token = muted.set(False)  # what the agent asks for to make a piece is no part of this exchange
            try:
                piece = next(pieces)
            except StopIteration:
                return
            finally:
                muted.reset(token)
            self._exchange.sent(piece)
            yield piece

    def close(self) -> None:
        self._inner.close()


class _SendingAsync(_Sent):
    async def __aiter__(self) -> Any:
        pieces = self._inner if self._told else self._made()
        async for piece in pieces:
            yield piece
        self._exchange.opened()

    async def _made(self) -> Any:
        pieces = aiter(self._inner)
        while True:
            token = muted.set(False)
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                return
            finally:
                muted.reset(token)
            self._exchange.sent(piece)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
