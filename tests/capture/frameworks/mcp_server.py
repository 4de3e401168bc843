"""Serve tools over MCP, with mcp 1 or 2: `python mcp_server.py stdio|http|sse [ANYTHING…]`.

With `http` and `sse` the first line of output is the address. Annotations are real: older releases need them so.
"""

import os
import socket
import sys
import time
from typing import Any

try:
    from mcp.server.mcpserver import Context, MCPServer  # type: ignore[import-not-found, unused-ignore]
    from mcp_types import SamplingMessage, TextContent  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from mcp.server.fastmcp import Context  # type: ignore[import-not-found, no-redef, unused-ignore]
    from mcp.server.fastmcp import FastMCP as MCPServer  # type: ignore[import-not-found, no-redef, unused-ignore]
    from mcp.types import SamplingMessage, TextContent  # type: ignore[import-not-found, no-redef, unused-ignore]

server: Any = MCPServer("sums", instructions="Add numbers.")


@server.tool()
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def leave() -> str:
    """End the server in the middle of a call."""
    sys.stdout.flush()
    os._exit(3)


@server.tool()
def wait(seconds: float) -> str:
    """Take long."""
    time.sleep(seconds)
    return "done"


@server.tool()
def say(name: str) -> str:
    """Say what a variable of the server's environment holds, and what it was started with."""
    return f"{os.environ.get(name)} {sys.argv[1:]}"


@server.tool()
async def count(upto: int, ctx: Context) -> str:  # type: ignore[type-arg, unused-ignore]
    """Count, and say how far it is."""
    for number in range(1, upto + 1):
        await ctx.report_progress(number, upto)
    return f"counted to {upto}"


@server.tool()
async def think(ctx: Context) -> str:  # type: ignore[type-arg, unused-ignore]
    """Ask the client's model."""
    asked = SamplingMessage(role="user", content=TextContent(type="text", text="what now?"))
    answer = await ctx.session.create_message(messages=[asked], max_tokens=10)
    return f"the model says {answer.content.text}"


@server.tool()
async def mumble(ctx: Context) -> str:  # type: ignore[type-arg, unused-ignore]
    """Write something that is no message among the messages, and log something."""
    if sys.argv[1] == "stdio":
        os.write(1, b"this is no message\n")
    await ctx.info("mumbling")
    return "mumbled"


@server.resource("note://today")
def today() -> str:
    """Return a note."""
    return "buy milk"


def listen(name: str) -> None:
    """Serve over HTTP on a free port."""
    import uvicorn

    app = server.streamable_http_app() if name == "http" else server.sse_app()
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/{'mcp' if name == 'http' else 'sse'}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    server.run("stdio") if sys.argv[1] == "stdio" else listen(sys.argv[1])
