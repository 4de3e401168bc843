"""Put scripted answers into the wire form of Anthropic messages.

Pure functions: no clock and no randomness, so the same script gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playhead.testing.turn import Asked, Turn, arguments_of, named_events, pieces

_STOP = {
    "stop": "end_turn", "tools": "tool_use", "length": "max_tokens", "filter": "refusal", "refusal": "refusal"
}  # fmt: skip
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def whole(asked: Asked, turn: Turn) -> dict[str, Any]:
    """Return the body of a whole answer."""
    ending = _ending(turn)
    return _frame(asked, turn) | {"content": _content(turn), **ending, "usage": _usage(turn)}


def stream(asked: Asked, turn: Turn) -> list[bytes]:
    """Return the events of a streamed answer."""
    return named_events(_events(asked, turn))


def error(asked: Asked, status: int, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _events(asked: Asked, turn: Turn) -> Iterator[dict[str, Any]]:
    begun: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    begun["usage"] = _usage(turn) | {"output_tokens": 1}
    begun["usage"].pop("output_tokens_details", None)  # nothing has been thought yet
    yield {"type": "message_start", "message": _frame(asked, turn) | begun}
    blocks = _content(turn)
    if not blocks:
        yield {"type": "ping"}
    for index, block in enumerate(blocks):
        empty, deltas = _block(block, turn)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        if index == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    counts = {name: count for name, count in _usage(turn).items() if name not in ("cache_creation", "service_tier")}
    yield {"type": "message_delta", "delta": _ending(turn), "usage": counts}
    yield {"type": "message_stop"}


def _block(block: dict[str, Any], turn: Turn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it begins, and what is added to it."""
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    index = next(at for at in range(len(turn.calls)) if turn.call_id(at, "toolu") == block["id"])
    written = ["", *(pieces(arguments_of(turn.calls[index])) if turn.calls[index].arguments else [])]
    return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in written]


def _content(turn: Turn) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if turn.reasoning is not None:
        out.append({"type": "thinking", "thinking": turn.reasoning, "signature": turn.signature})
    if turn.text is not None:
        out.append({"type": "text", "text": turn.text})
    for index, call in enumerate(turn.calls):
        out.append({"type": "tool_use", "id": turn.call_id(index, "toolu"), "name": call.name, "input": call.arguments})
    return out


def _ending(turn: Turn) -> dict[str, Any]:
    ending = {"stop_reason": _STOP.get(turn.finish, turn.finish), "stop_sequence": None}
    if turn.refusal is None:
        return ending
    return ending | {"stop_details": {"type": "refusal", "category": None, "explanation": turn.refusal}}


def _frame(asked: Asked, turn: Turn) -> dict[str, Any]:
    identity = {"id": f"msg_scripted_{turn.number}", "type": "message", "role": "assistant"}
    return {"model": asked.request.get("model"), **identity}


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage
    counts: dict[str, Any] = {
        "input_tokens": usage.input - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output,
        "service_tier": "standard",
    }
    if usage.reasoning:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return counts
