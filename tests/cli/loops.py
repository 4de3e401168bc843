"""Record a loop of tools as people write it: nobody announced its turns and its tools."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import playhead
from playhead.testing import ScriptedProvider

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("list_tickets", "read_ticket")
]
SCRIPT: list[Any] = [
    [{"name": "list_tickets", "arguments": {}}],
    [{"name": "read_ticket", "arguments": {"name": name}} for name in ("a.json", "b.json")],
    "Two tickets, one of them urgent.",
]


def record_loop(store: Path, name: str = "triage") -> str:
    """Record one, and return its id."""
    messages: list[Any] = [{"role": "user", "content": "Triage the tickets."}]
    with ScriptedProvider(SCRIPT) as provider, playhead.record(name, store=store) as run:
        while True:
            answer = _ask(provider.base_url, {"model": "gpt-5", "messages": messages, "tools": TOOLS})
            messages.append(answer)
            if not answer.get("tool_calls"):
                return run.id
            for call in answer["tool_calls"]:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"as {call['function']}"})


def _ask(base_url: str, request: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{base_url}/chat/completions", json.dumps(request).encode(), headers)
    with urllib.request.urlopen(asked) as response:
        answer = json.load(response)["choices"][0]["message"]
    return {name: value for name, value in answer.items() if value is not None}
