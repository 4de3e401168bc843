"""Read Ollama's own API, which streams one JSON object per line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead.capture.dialects.base import (
    Answered,
    Asked,
    Dialect,
    ToolAsked,
    ToolResult,
    count,
    error_of,
    mapping,
    rows,
    text,
    usage,
)


def operation(path: str) -> str:
    """Return `chat`, `generate` or `embed`."""
    return path[path.rfind("/") + 1 :]


def asked(body: Any, path: str) -> Asked:
    """Read a request: the model, and the results of tools after the last message of the model."""
    results: list[ToolResult] = []
    for message in reversed(rows(mapping(body).get("messages"))):
        if message.get("role") == "assistant":
            break
        if message.get("role") == "tool":
            name = text(message.get("tool_name"))
            results.append(ToolResult(text(message.get("tool_call_id")), name, message.get("content"), False))
    return Asked(text(mapping(body).get("model")), tuple(reversed(results)))


def answered(documents: Sequence[Any], streamed: bool) -> Answered:
    """Read an answer: texts are spread over all lines, the last line has the counts."""
    whole = assembled(documents) if streamed else (documents[0] if documents else None)
    fields = mapping(whole)
    calls = []
    for call in rows(mapping(fields.get("message")).get("tool_calls")):
        function = mapping(call.get("function"))
        if name := text(function.get("name")):
            calls.append(ToolAsked(text(call.get("id")), name, function.get("arguments")))
    return Answered(
        response=whole,
        model=text(fields.get("model")),
        usage=usage(count(fields.get("prompt_eval_count")), count(fields.get("eval_count"))),
        finish=text(fields.get("done_reason")),
        calls=tuple(calls),
        error=error_of(whole),
    )


def assembled(documents: Sequence[Any]) -> Any:
    """Put the lines of a stream together: texts and tool calls are collected, of the rest the last word counts."""
    lines = [document for document in documents if type(document) is dict]
    whole = {key: value for line in lines for key, value in line.items()}
    whole |= _collected(lines)
    messages = rows([line.get("message") for line in lines])
    if messages:
        whole["message"] = {key: value for one in messages for key, value in one.items()} | _collected(messages)
    return whole or None


def _collected(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what grows: the texts of a stream, and its tool calls, each of which comes whole."""
    out: dict[str, Any] = {}
    for name in ("content", "thinking", "response"):
        if said := [piece[name] for piece in pieces if type(piece.get(name)) is str]:
            out[name] = "".join(said)
    if calls := [call for piece in pieces for call in rows(piece.get("tool_calls"))]:
        out["tool_calls"] = calls
    return out


OLLAMA = Dialect(
    name="ollama",
    provider="ollama",
    routes=(r"/api/(?:chat|generate|embed)$",),
    operation=operation,
    volatile=(),
    asked=asked,
    answered=answered,
    fields=(("model", "messages"), ("model", "prompt"), ("model", "input")),
)
