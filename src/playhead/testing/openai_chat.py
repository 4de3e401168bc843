"""Put scripted answers into the wire form of OpenAI chat completions.

Pure functions: no clock and no randomness, so the same script gives the same bytes. Reasoning is written as vLLM and
DeepSeek do it, in `reasoning_content`; OpenAI's own service does not show it here. Azure opens a stream with a chunk
that has no choices, and so does this on a path of Azure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from playhead.testing.turn import CREATED, Asked, Turn, arguments_of, compact, pieces

_FINISH = {"tools": "tool_calls", "filter": "content_filter", "refusal": "stop"}
_AZURE = re.compile(r"/openai/deployments/([^/]+)/")
_ERRORS = {
    401: ("invalid_request_error", "invalid_api_key"),
    429: ("requests", "rate_limit_exceeded"),
}


def whole(asked: Asked, turn: Turn) -> dict[str, Any]:
    """Return the body of a whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text, "refusal": turn.refusal}
    if turn.reasoning is not None:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = _tool_calls(turn)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(turn)}
    return _frame(asked, "chat.completion", turn) | {"choices": [choice], "usage": _usage(turn)}


def stream(asked: Asked, turn: Turn) -> list[bytes]:
    """Return the events of a streamed answer."""
    return [b"data: %s\n\n" % line for line in (*map(compact, chunks(asked, turn)), b"[DONE]")]


def chunks(asked: Asked, turn: Turn) -> Iterator[dict[str, Any]]:
    """Yield the objects of a streamed answer, the usage last if the request asked for it."""
    options = asked.request.get("stream_options") or {}
    with_usage = bool(options.get("include_usage"))
    frame = _frame(asked, "chat.completion.chunk", turn)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return frame | {"choices": [choice]} | ({"usage": None} if with_usage else {})

    if _AZURE.search(asked.path):
        filters = [{"prompt_index": 0, "content_filter_results": {}}]
        yield {
            "choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": filters
        }  # fmt: skip
    yield chunk({"role": "assistant", "content": "" if turn.text is not None else None, "refusal": None})
    for piece in pieces(turn.reasoning or ""):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(turn.text or ""):
        yield chunk({"content": piece})
    for piece in pieces(turn.refusal or ""):
        yield chunk({"refusal": piece})
    for index, call in enumerate(_tool_calls(turn)):
        opening = call | {"index": index, "function": call["function"] | {"arguments": ""}}
        yield chunk({"tool_calls": [opening]})
        for piece in pieces(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(turn))
    if with_usage:
        yield frame | {"choices": [], "usage": _usage(turn)}


def error(asked: Asked, status: int, message: str) -> dict[str, Any]:
    """Return the body of an error, which is the same for every API of OpenAI."""
    kind, code = _ERRORS.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _frame(asked: Asked, kind: str, turn: Turn) -> dict[str, Any]:
    azure = _AZURE.search(asked.path)
    return {
        "id": f"chatcmpl-scripted-{turn.number}",
        "object": kind,
        "created": CREATED,
        "model": asked.request.get("model") or (azure[1] if azure else None),
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _finish(turn: Turn) -> str:
    return _FINISH.get(turn.finish, turn.finish)


def _tool_calls(turn: Turn) -> list[dict[str, Any]]:
    return [
        {
            "id": turn.call_id(index, "call"),
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_of(call)},
        }
        for index, call in enumerate(turn.calls)
    ]


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }
