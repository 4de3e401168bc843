"""Watch the libraries that speak HTTP and the frameworks of agents, from the opening of the first run to the last end.

Each library has one small file with the modules it waits for and a function that patches them. Nothing is imported
here that the agent has not imported itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from playhead.capture import forks, guard
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches

_lock = threading.RLock()
_open = 0
_patches = Patches()
_watch: AfterImport | None = None


def install() -> None:
    """Begin to capture; counted, so that every call needs one `uninstall`."""
    global _open, _watch
    with _lock:
        _open += 1
        if _open == 1:
            _watch = AfterImport({name: partial(_patch, patch) for name, patch in _hooks().items()})
            _watch.install()


def uninstall() -> None:
    """Restore everything that was patched since the first `install`."""
    global _open, _watch
    with _lock:
        _open -= 1
        if _open == 0 and _watch is not None:
            _watch.uninstall()
            _watch = None
            _patches.restore()


def _patch(patch: Callable[[ModuleType, Patches], None], module: ModuleType) -> None:
    with _lock:
        if _open:
            try:
                patch(module, _patches)
            except Exception as problem:  # a release of the library that has another shape than those we know
                guard.not_captured(problem, module.__name__, forks.recordings())


def _hooks() -> dict[str, Callable[[ModuleType, Patches], None]]:
    from playhead.capture.clients import aiohttp_client, http_client, httpx_transports, unseen, urllib3_pools
    from playhead.capture.clients import websocket_clients as websockets
    from playhead.capture.frameworks import google_genai, langchain, langgraph, mcp_client, openai_agents, pydantic_ai

    clients: tuple[Any, ...] = (httpx_transports, http_client, urllib3_pools, aiohttp_client, websockets, unseen)
    frameworks: tuple[Any, ...] = (google_genai, langchain, langgraph, mcp_client, openai_agents, pydantic_ai)
    return {name: part.patch for part in clients + frameworks for name in part.MODULES}
