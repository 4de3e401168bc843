"""Call tools of an MCP server over stdio and over HTTP, with mcp 1 or 2. ROOT is the server that speaks HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

from mcp import StdioServerParameters
from scenario import MANY, ROOT, main, scenario

HERE = os.path.dirname(os.path.abspath(__file__))
OVER_STDIO = StdioServerParameters(
    command=sys.executable, args=[os.path.join(HERE, "mcp_server.py"), "stdio", os.environ["MCP_LOG"]]
)
try:
    from mcp import Client  # type: ignore[attr-defined, unused-ignore]

    @contextlib.asynccontextmanager
    async def connected(server: Any) -> AsyncIterator[Any]:
        async with Client(server) as client:
            yield client

except ImportError:
    from mcp import ClientSession, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    @contextlib.asynccontextmanager
    async def connected(server: Any) -> AsyncIterator[Any]:
        transport: Any = streamable_http_client(server) if isinstance(server, str) else stdio_client(server)
        async with transport as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            yield session


def told(answer: Any) -> Any:
    failed = getattr(answer, "is_error", None) or getattr(answer, "isError", None)
    return [[getattr(part, "text", None) for part in answer.content], bool(failed)]


async def use(server: Any, seen: list[Any]) -> Any:
    async with connected(server) as client:
        seen.append(sorted(tool.name for tool in (await client.list_tools()).tools))
        seen.append(told(await client.call_tool("weather", {"city": "Paris"})))
        seen.append(told(await client.call_tool("clock", {"city": "Oslo"})))
        return told(await client.call_tool("clock", {"city": "Atlantis"}))


async def use_at_once(server: Any) -> Any:
    async with connected(server) as client:
        calls = (client.call_tool("weather", {"city": f"Town {number}"}) for number in range(MANY))
        return [told(answer) for answer in await asyncio.gather(*calls)]


@scenario
async def stdio(seen: list[Any]) -> Any:
    return await use(OVER_STDIO, seen)


@scenario
async def stdio_gather(seen: list[Any]) -> Any:
    return await use_at_once(OVER_STDIO)


@scenario
async def http(seen: list[Any]) -> Any:
    return await use(f"{ROOT}/mcp", seen)


@scenario
async def http_gather(seen: list[Any]) -> Any:
    return await use_at_once(f"{ROOT}/mcp")


@scenario
async def unknown_tool(seen: list[Any]) -> Any:
    async with connected(OVER_STDIO) as client:
        return told(await client.call_tool("telescope", {}))


if __name__ == "__main__":
    main()
