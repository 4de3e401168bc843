"""Name the transports of httpx and httpx2 that are neither the library's own nor use one that is recorded."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from playhead.capture import telemetry
from playhead.capture.clients.unseen import tell
from playhead.capture.exchange import begun
from playhead.capture.patches import Patches

MODULES = ("httpx._client", "httpx2._client")


def patch(module: ModuleType, patches: Patches) -> None:
    """Look at each request when it was sent: a transport that passes it on to a recorded one is no gap."""
    patches.replace(module.Client, "_send_single_request", functools.partial(_sync, module.HTTPTransport))
    patches.replace(module.AsyncClient, "_send_single_request", functools.partial(_async, module.AsyncHTTPTransport))


def _sync(known: type, original: Any) -> Any:
    @functools.wraps(original)
    def send(self: Any, request: Any) -> Any:
        transport = self._transport_for_url(request.url) if self._mounts else self._transport
        if isinstance(transport, known):
            return original(self, request)
        seen: list[bool] = []
        token = begun.set(seen)
        try:
            return original(self, request)
        finally:
            begun.reset(token)
            _name(transport, request, seen)

    return send


def _async(known: type, original: Any) -> Any:
    @functools.wraps(original)
    async def send(self: Any, request: Any) -> Any:
        transport = self._transport_for_url(request.url) if self._mounts else self._transport
        if isinstance(transport, known):
            return await original(self, request)
        seen: list[bool] = []
        token = begun.set(seen)
        try:
            return await original(self, request)
        finally:
            begun.reset(token)
            _name(transport, request, seen)

    return send


def _name(transport: Any, request: Any, seen: list[bool]) -> None:
    if not seen and not telemetry.is_export(request.method, str(request.url), request.headers.multi_items()):
        kind = type(transport)
        address = request.url.copy_with(userinfo=b"", query=None, fragment=None)
        tell("transport", lambda: f"{kind.__module__}.{kind.__qualname__} to {address}")
