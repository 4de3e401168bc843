"""Name the conversations over websockets that a run holds: they are not recorded.

They are seen where a handshake begins, in websockets (asyncio, sync and legacy), aiohttp and websocket-client.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from playhead.capture.clients.unseen import tell, without_secrets
from playhead.capture.patches import Patches

MODULES = ("websockets.client", "websockets.legacy.client", "websocket._core", "aiohttp")


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder where each library opens a connection."""
    if module.__name__ == "websockets.client":
        if hasattr(module, "ClientProtocol"):
            patches.replace(module.ClientProtocol, "connect", _protocol_connect)
    elif module.__name__ == "websockets.legacy.client":
        if hasattr(module, "WebSocketClientProtocol"):
            patches.replace(module.WebSocketClientProtocol, "handshake", _opening)
    elif module.__name__ == "websocket._core":
        patches.replace(module.WebSocket, "connect", _opening)
    else:
        patches.replace(module.ClientSession, "_ws_connect", _opening)


def _protocol_connect(original: Any) -> Any:
    @functools.wraps(original)
    def connect(self: Any) -> Any:
        tell("websocket", lambda: _target(getattr(self, "uri", None) or self.wsuri))
        return original(self)

    return connect


def _opening(original: Any) -> Any:
    """Watch a function whose first argument is where to connect; a coroutine begins when it is awaited, right after."""

    @functools.wraps(original)
    def opening(self: Any, url: Any, *args: Any, **options: Any) -> Any:
        tell("websocket", lambda: _target(url))
        return original(self, url, *args, **options)

    return opening


def _target(url: Any) -> str:
    """Return an address to show."""
    if hasattr(url, "resource_name"):  # of the websockets library, taken apart already
        default = 443 if url.secure else 80
        host = f"[{url.host}]" if ":" in url.host else url.host
        port = "" if url.port == default else f":{url.port}"
        return f"{'wss' if url.secure else 'ws'}://{host}{port}{url.path}"
    return without_secrets(str(url))
