"""Bring the tools that a request offers into the form of chat completions."""

from __future__ import annotations

from typing import Any

from playhead.ingest.otlp import contents


def definitions(value: Any) -> list[Any] | None:
    """Return the tools that are offered, in the form of chat completions."""
    if type(value) is not list:
        return None
    found: list[Any] = []
    for item in value:
        tool = item
        if type(tool) is str:  # Vercel has each tool as a text
            tool = contents.parsed_or(tool)
        if (
            type(tool) is dict
            and "name" in tool
            and "function" not in tool
            and tool.get("type") in (None, "function", "custom")
        ):
            function = {"name": tool["name"]}
            if tool.get("description") is not None:
                function["description"] = tool["description"]
            for name in ("parameters", "input_schema", "inputSchema", "parameters_json_schema"):
                if tool.get(name) is not None:
                    function["parameters"] = contents.parsed_or(tool[name])
                    break
            tool = {"type": "function", "function": function}
        found.append(tool)
    return found or None
