"""Name the transports of httpx and httpx2 that are neither the library's own nor use one that is recorded."""

from __future__ import annotations

import functools
from types import ModuleType, TracebackType
from typing import Any

from playhead.capture import answering, telemetry
from playhead.capture.begin import begun
from playhead.capture.clients.unseen import tell
from playhead.capture.patches import Patches

MODULES = ("httpx._client", "httpx2._client")


def patch(module: ModuleType, patches: Patches) -> None:
    """Look at each request when it was sent: a transport that passes it on to a recorded one is no gap."""
    patches.replace(module.Client, "_send_single_request", functools.partial(_sync, module.HTTPTransport))
    patches.replace(module.AsyncClient, "_send_single_request", functools.partial(_async, module.AsyncHTTPTransport))
    patches.replace(module.Cookies, "extract_cookies", _extracting)


def _sync(known: type, original: Any) -> Any:
    @functools.wraps(original)
    def send(self: Any, request: Any) -> Any:
        transport = _transport(self, request)
        if isinstance(transport, known):
            return original(self, request)
        with _Watch(transport, request):
            return original(self, request)

    return send


def _async(known: type, original: Any) -> Any:
    @functools.wraps(original)
    async def send(self: Any, request: Any) -> Any:
        transport = _transport(self, request)
        if isinstance(transport, known):
            return await original(self, request)
        with _Watch(transport, request):
            return await original(self, request)

    return send


def _transport(client: Any, request: Any) -> Any:
    return client._transport_for_url(request.url) if client._mounts else client._transport


def _extracting(original: Any) -> Any:
    @functools.wraps(original)
    def extract_cookies(self: Any, response: Any) -> None:
        # To find none costs the library a fifth of a call that a replay answers.
        if answering.player is None or "set-cookie" in response.headers:
            original(self, response)

    return extract_cookies


class _Watch:
    """Notice whether anybody records a request, and name its transport where nobody does."""

    def __init__(self, transport: Any, request: Any) -> None:
        self._kind = type(transport)
        self._asked = request.method, request.url, request.headers.multi_items()  # now: it may be changed on its way
        self._seen: list[bool] = []

    def __enter__(self) -> None:
        self._around = begun.get()
        begun.set(self._seen)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        begun.set(self._around)  # not by its token: a coroutine may be closed in another context
        if self._seen and self._around is not None:
            self._around.append(True)
        if not self._seen and (error is None or isinstance(error, Exception)):
            tell("transport", self._where)

    def _where(self) -> str | None:
        (method, url, headers), kind = self._asked, self._kind
        if telemetry.is_export(method, str(url), headers):
            return None
        port = "" if url.port is None else f":{url.port}"
        return f"{kind.__module__}.{kind.__qualname__} to {url.scheme}://{url.host}{port}"
