"""Say in few words what a model answered: the tools that it asked for, and the beginning of its text.

Answers are recorded as the provider or the author of the agent shaped them. The usual shapes are understood, whether
as JSON or as the recorded fields of a client's objects; of any other nothing is said, and nothing here raises.
"""

from __future__ import annotations

from typing import Any

from playhead.views import text
from playhead.views.text import Resolve

_ITEMS_MAX = 20  # of a list that are looked at
_DEPTH_MAX = 12
# Where an answer has its text and its calls: chat completions, responses, messages, candidates, and plain ones.
_INTO = ("choices", "candidates", "output", "message", "delta", "content", "parts", "text", "completion", "response",
         "tool_calls", "function_call", "functionCall")  # fmt: skip
_THOUGHTS = ("reasoning", "thinking", "redacted_thinking")


def said(response: Any, width: int, resolve: Resolve | None = None) -> str:
    """Return `calls read_file, "First I look"`, or the text alone, in at most `width` columns; empty for no answer."""
    words: list[str] = []
    calls: list[str] = []
    _collect(response, words, calls, width, resolve, 0)
    spoken = " ".join(words).strip()
    parts = [f"calls {', '.join(calls)}"] if calls else []
    if spoken:
        parts.append(text.short(spoken, width))
    return text.cut(", ".join(parts), width)


def _collect(node: Any, words: list[str], calls: list[str], width: int, resolve: Resolve | None, depth: int) -> None:
    node = text.followed(node, resolve)
    if depth > _DEPTH_MAX or sum(map(len, words)) > width:
        return
    if isinstance(node, str):
        words.append(node.strip())
        return
    if isinstance(node, list):
        for item in node[:_ITEMS_MAX]:
            _collect(item, words, calls, width, resolve, depth + 1)
        return
    if not isinstance(node, dict):
        return
    for mark, inner in (("$object", "fields"), ("$as", "value"), ("$tuple", "$tuple")):
        if mark in node:
            _collect(node.get(inner), words, calls, width, resolve, depth + 1)
            return
    if (name := _called(node)) is not None:
        calls.append(name)
    elif "$blob" in node or "$redacted" in node:
        words.append(text.short(node, width))
    elif node.get("type") not in _THOUGHTS and node.get("thought") is not True:
        for field in _INTO:
            if field in node:
                inner = node[field][:1] if field in ("choices", "candidates") and _listed(node[field]) else node[field]
                _collect(inner, words, calls, width, resolve, depth + 1)


def _called(node: dict[str, Any]) -> str | None:
    """Return the name of the tool where this part of an answer asks for one."""
    inner = node.get("function")
    asked = inner if isinstance(inner, dict) else node
    name = asked.get("name")
    asks = asked is inner or any(field in asked for field in ("arguments", "input", "args"))
    return name if asks and isinstance(name, str) else None


def _listed(value: Any) -> bool:
    return isinstance(value, list)
