"""Connect to the test server as agents do, with mcp 1 or 2. Everything is imported by name, before any run."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client

try:
    from mcp.client.streamable_http import streamable_http_client
except ImportError:
    from mcp.client.streamable_http import (
        streamablehttp_client as streamable_http_client,  # type: ignore[no-redef, unused-ignore]
    )
try:
    from mcp_types import CreateMessageResult, TextContent  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from mcp.types import CreateMessageResult, TextContent  # type: ignore[import-not-found, no-redef, unused-ignore]

VERSION = tuple(int(part) for part in version("mcp").split(".")[:2])
GENERATION = VERSION[0]
SERVER = Path(__file__).with_name("mcp_server.py")
TRANSPORTS = ("stdio", "http", "sse")


@contextlib.contextmanager
def serving(transport: str) -> Iterator[str]:
    """Run a server over HTTP and yield its address; nothing for stdio, where the client starts it."""
    if transport == "stdio":
        yield ""
        return
    server = subprocess.Popen([sys.executable, str(SERVER), transport], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    with server, server.stdout:
        yield server.stdout.readline().strip()
        server.kill()


@contextlib.asynccontextmanager
async def connected(
    transport: str, address: str, *args: str, env: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[Any]:
    """Open a session and say hello."""
    if transport == "stdio":
        command = StdioServerParameters(command=sys.executable, args=[str(SERVER), "stdio", *args], env=env)
        streams: Any = stdio_client(command)
    else:
        streams = (sse_client if transport == "sse" else streamable_http_client)(address)
    async with streams as (read, write, *_), ClientSession(read, write, **options) as session:
        await session.initialize()
        yield session


def sampled(text: str) -> Any:
    """Return the answer of the agent's model to a question of the server."""
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text=text), model="m")


def words(result: Any) -> list[str]:
    """Return the texts of a tool's result."""
    return [part.text for part in result.content]
