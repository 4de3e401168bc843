"""Put scripted answers into the wire form of Google's generateContent and streamGenerateContent.

Pure functions: no clock and no randomness, so the same script gives the same bytes. As the real service does it, the
signature of a thought stands on the first tool call after it, or on the last part of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from playhead.testing.turn import Asked, Turn, compact, pieces, pretty

_FINISH = {"stop": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY", "refusal": "SAFETY"}
_MODEL = re.compile(r"/models/([^/:]+):")
_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def whole(asked: Asked, turn: Turn) -> dict[str, Any]:
    """Return the body of a whole answer."""
    parts = _thought(turn.reasoning or "")
    if turn.text is not None:
        parts.append({"text": turn.text})
    parts += _calls(turn)
    if turn.reasoning is not None and not turn.calls and turn.text is not None:
        parts[-1]["thoughtSignature"] = turn.signature
    return _chunk(asked, turn, parts, last=True)


def stream(asked: Asked, turn: Turn) -> list[bytes]:
    """Return the pieces of a streamed answer: events with `alt=sse`, else an array of JSON that grows."""
    chunks = list(_chunks(asked, turn))
    if is_sse(asked):
        return [b"data: %s\r\n\r\n" % compact(chunk) for chunk in chunks]
    opened = [(b"[" if at == 0 else b",\r\n") + pretty(chunk) for at, chunk in enumerate(chunks)]
    return [*opened, b"\n]\n"]


def error(asked: Asked, status: int, message: str) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the body of an error; where an array was asked for, it is one."""
    body = {"error": {"code": status, "message": message, "status": _ERRORS.get(status, "UNKNOWN")}}
    return [body] if is_stream(asked) and not is_sse(asked) else body


def is_stream(asked: Asked) -> bool:
    """Say whether the answer was asked for in pieces."""
    return asked.path.endswith(":streamGenerateContent")


def is_sse(asked: Asked) -> bool:
    """Say whether the pieces were asked for as server-sent events."""
    return asked.query.get("alt") == "sse"


def _chunks(asked: Asked, turn: Turn) -> Iterator[dict[str, Any]]:
    for piece in pieces(turn.reasoning or ""):
        yield _chunk(asked, turn, _thought(piece))
    for piece in pieces(turn.text or ""):
        yield _chunk(asked, turn, [{"text": piece}])
    calls = _calls(turn)
    for call in calls:
        yield _chunk(asked, turn, [call])
    signed = {"thoughtSignature": turn.signature} if turn.reasoning is not None and not calls else {}
    yield _chunk(asked, turn, [] if turn.refusal is not None else [{"text": "", **signed}], last=True)


def _chunk(asked: Asked, turn: Turn, parts: list[dict[str, Any]], last: bool = False) -> dict[str, Any]:
    model = _MODEL.search(asked.path)
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}} if parts else {}
    if last:
        candidate["finishReason"] = _FINISH.get(turn.finish, turn.finish)
        if turn.refusal is not None:
            candidate["finishMessage"] = turn.refusal
    return {
        "candidates": [candidate | {"index": 0}],
        "usageMetadata": _usage(turn, last),
        "modelVersion": model[1] if model else None,
        "responseId": f"scripted-{turn.number}",
    }


def _thought(text: str) -> list[dict[str, Any]]:
    return [{"text": text, "thought": True}] if text else []


def _calls(turn: Turn) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for call in turn.calls:
        identity = {} if call.id is None else {"id": call.id}
        out.append({"functionCall": {**identity, "name": call.name, "args": call.arguments}})
    if out and turn.reasoning is not None:
        out[0]["thoughtSignature"] = turn.signature
    return out


def _usage(turn: Turn, last: bool) -> dict[str, Any]:
    """Return the counts: those of the answer are known at its end."""
    usage = turn.usage
    counts: dict[str, Any] = {"promptTokenCount": usage.input}
    if last:
        counts["candidatesTokenCount"] = usage.output - usage.reasoning
    counts["totalTokenCount"] = usage.input + (usage.output if last else 0)
    if usage.cached:
        counts["cachedContentTokenCount"] = usage.cached
    counts["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": usage.input}]
    if last and usage.reasoning:
        counts["thoughtsTokenCount"] = usage.reasoning
    return counts
