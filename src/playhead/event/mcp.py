"""Type what passes between an MCP client and its server, but for the calls of tools."""

from __future__ import annotations

from typing import Any

from playhead.event.payload import Payload, Status


class McpRequested(Payload):
    """Ask an MCP server for anything but the call of a tool, or be asked by it."""

    KIND = "mcp.requested"
    PHASE = "opens"
    method: str
    params: Any = None
    server: str | None = None  # its command line or its address
    from_server: bool = False  # the server asked, and the agent answers


class McpAnswered(Payload):
    """Record what was answered."""

    KIND = "mcp.answered"
    PHASE = "closes"
    status: Status
    result: Any = None
    error: dict[str, Any] | None = None  # with the code and the data of JSON-RPC


class McpNotified(Payload):
    """Tell an MCP server something that is not answered, or be told; or receive what is no message."""

    KIND = "mcp.notified"
    method: str | None = None  # none of what came and could not be read: `error` says why
    params: Any = None
    server: str | None = None
    from_server: bool = False
    error: dict[str, Any] | None = None
