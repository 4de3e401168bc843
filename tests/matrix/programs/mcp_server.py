"""Serve two tools over MCP, with mcp 1 or 2: `python mcp_server.py stdio LOG` or `python mcp_server.py http LOG`.

Each call is a line of LOG, so that a test can say what was called. With `http` the first line of output is the address.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

from scenario import TOOLS

try:
    from mcp.server.mcpserver import MCPServer  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer  # type: ignore[import-not-found, unused-ignore]

server: Any = MCPServer("towns")


def note(tool: str, city: str, outcome: str) -> None:
    with open(sys.argv[2], "a", encoding="utf-8") as log:
        log.write(json.dumps([tool, {"city": city}, outcome]) + "\n")


@server.tool()
def weather(city: str) -> str:
    """Say how warm it is in a city."""
    outcome = TOOLS["weather"](city)
    note("weather", city, outcome)
    return outcome


@server.tool()
async def clock(city: str) -> str:
    """Say what time it is in a city."""
    if city == "Atlantis":
        note("clock", city, "error")
        raise ValueError("there is no time in Atlantis")
    outcome = TOOLS["clock"](city)
    note("clock", city, outcome)
    return outcome


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        import uvicorn

        listening = socket.create_server(("127.0.0.1", 0))
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(config).run(sockets=[listening])
