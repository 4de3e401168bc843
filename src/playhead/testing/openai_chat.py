"""Put scripted answers into the wire form of OpenAI chat completions.

Pure functions: no clock and no randomness, so the same script gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from playhead.testing.script import Text, ToolCalls

PATH = "/v1/chat/completions"
_CREATED = 1_700_000_000
_PIECE_CHARACTERS = 12  # of text or arguments in one chunk of a stream


def completion(request: dict[str, Any], body: bytes, answer: Text | ToolCalls, number: int) -> dict[str, Any]:
    """Return the body of a whole answer; `number` counts answers from one and makes the ids."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if isinstance(answer, ToolCalls):
        message["tool_calls"] = _tool_calls(answer, number)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
    return _frame(request, "chat.completion", number) | {"choices": [choice], "usage": _usage(body, answer)}


def chunks(request: dict[str, Any], body: bytes, answer: Text | ToolCalls, number: int) -> Iterator[dict[str, Any]]:
    """Yield the objects of a streamed answer, the usage last if the request asked for it."""
    options = request.get("stream_options") or {}
    with_usage = bool(options.get("include_usage"))
    frame = _frame(request, "chat.completion.chunk", number)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return frame | {"choices": [choice]} | ({"usage": None} if with_usage else {})

    yield chunk({"role": "assistant", "content": "" if answer.text is not None else None, "refusal": None})
    for piece in _pieces(answer.text or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(_tool_calls(answer, number) if isinstance(answer, ToolCalls) else []):
        arguments = call["function"]["arguments"]
        opening = call | {"index": index, "function": call["function"] | {"arguments": ""}}
        yield chunk({"tool_calls": [opening]})
        for piece in _pieces(arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(answer))
    if with_usage:
        yield frame | {"choices": [], "usage": _usage(body, answer)}


def error(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _frame(request: dict[str, Any], kind: str, number: int) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-scripted-{number}",
        "object": kind,
        "created": _CREATED,
        "model": request.get("model"),
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _finish(answer: Text | ToolCalls) -> str:
    return "tool_calls" if isinstance(answer, ToolCalls) else "stop"


def _tool_calls(answer: ToolCalls, number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for index, call in enumerate(answer.calls)
    ]


def _usage(body: bytes, answer: Text | ToolCalls) -> dict[str, Any]:
    """Count four bytes as a token: not what a model would count, but stable, and it grows with the content."""
    written = answer.text or ""
    if isinstance(answer, ToolCalls):
        written += json.dumps([[call.name, call.arguments] for call in answer.calls])
    asked, answered = len(body) // 4, max(1, len(written.encode()) // 4)
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS)]
