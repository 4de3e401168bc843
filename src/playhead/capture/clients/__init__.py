"""Watch what speaks HTTP, what starts processes and the frameworks of agents, as long as a run is open.

Each library has one small file with the modules it waits for and a function that patches them. Nothing is imported
here that the agent has not imported itself.
"""

from __future__ import annotations

import importlib
import os
import threading
from functools import partial
from types import ModuleType

from playhead.capture import abandoned, forks, guard, variables
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches

# By the file that patches it: the modules that are waited for. The file is loaded when one of them arrives.
WATCHED: dict[str, tuple[str, ...]] = {
    "clients.httpx_transports": ("httpx._transports.default", "httpx2._transports.default"),
    "clients.httpx_clients": ("httpx._client", "httpx2._client"),
    "clients.http_client": ("http.client",),
    "clients.urllib3_pools": ("urllib3.connectionpool",),
    "clients.aiohttp_client": ("aiohttp.client",),
    "clients.websocket_clients": ("websockets.client", "websockets.legacy.client", "websocket._core", "aiohttp"),
    "clients.unseen": ("grpc._channel", "grpc.aio._channel", "curl_cffi.requests.session", "uvloop"),
    "clients.native": (
        "MySQLdb",
        "cffi.api",
        "chromadb",
        "cv2",
        "dbm.gnu",
        "dbm.ndbm",
        "duckdb",
        "faiss",
        "h5py._hl.files",
        "lancedb",
        "lxml.etree",
        "osgeo.gdal",
        "polars",
        "psycopg",
        "psycopg2",
        "pyarrow.csv",
        "pyarrow.dataset",
        "pyarrow.feather",
        "pyarrow.json",
        "pyarrow.parquet",
        "pymssql",
        "pyodbc",
        "safetensors.numpy",
        "safetensors.torch",
        "zmq.sugar.socket",
    ),
    "frameworks.google_genai": ("google.genai._extra_utils",),
    "frameworks.langchain": ("langchain_core.tools.base", "langchain_core.runnables.config"),
    "frameworks.langgraph": (
        "langgraph.pregel._runner",
        "langgraph.pregel.runner",
        "langgraph.pregel._executor",
        "langgraph.pregel.executor",
        "langgraph.pregel.main",
        "langgraph._internal._queue",
        "langgraph.utils.queue",
    ),
    "frameworks.mcp_client": (
        "mcp.client.session",
        "mcp.shared.direct_dispatcher",
        "mcp.client.stdio",
        "mcp.client.streamable_http",
        "mcp.client.sse",
    ),
    "frameworks.openai_agents": ("agents.run",),
    "frameworks.pydantic_ai": ("pydantic_ai.toolsets.combined", "pydantic_ai.toolsets.function", "pydantic_ai.agent"),
    "processes.popen": ("subprocess",),
    "processes.system": ("os",),
    "processes.loops": ("asyncio.base_subprocess", "asyncio.unix_events"),
    "processes.uvloops": ("uvloop", "uvloop.loop", "asyncio.subprocess", "asyncio.streams"),
    "processes.trios": ("trio._subprocess", "trio._unix_pipes"),
}

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
            _watch = AfterImport({name: partial(_patch, parts) for name, parts in _by_module().items()})
            _watch.install()
            abandoned.watch()
            variables.patch(_patches)


def uninstall() -> None:
    """Restore everything that was patched since the first `install`."""
    global _open, _watch
    with _lock:
        _open -= 1
        if _open == 0 and _watch is not None:
            _watch.uninstall()
            abandoned.unwatch()
            _watch = None
            _patches.restore()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _by_module() -> dict[str, list[str]]:
    parts: dict[str, list[str]] = {}
    for part, names in WATCHED.items():
        for name in names:
            parts.setdefault(name, []).append(part)
    return parts


def _patch(parts: list[str], module: ModuleType) -> None:
    with _lock:
        for part in parts if _open else ():
            try:
                importlib.import_module(f"playhead.capture.{part}").patch(module, _patches)
            except Exception as problem:  # a release of the library that has another shape than those we know
                guard.not_captured(problem, module.__name__, forks.recordings())
