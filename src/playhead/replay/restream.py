"""Write an answer of a model as the stream that says it, in as few events as its protocol allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson


def streamed(dialect: str, response: Any) -> str | None:
    """Return the stream; None for a protocol that is not known here, and for what is no answer of it."""
    make = _MAKERS.get(dialect)
    return None if make is None or not isinstance(response, dict) else "".join(make(response))


def _event(data: Any, name: str | None = None) -> str:
    named = "" if name is None else f"event: {name}\n"
    return f"{named}data: {orjson.dumps(data).decode()}\n\n"


def _chat(response: dict[str, Any]) -> Iterator[str]:
    head = {name: value for name, value in response.items() if name not in ("choices", "usage", "object")}
    head["object"] = "chat.completion.chunk"
    choices = []
    for choice in response.get("choices") or []:
        delta = dict(choice.get("message") or {})
        if isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(delta["tool_calls"])]
        rest = {name: value for name, value in choice.items() if name not in ("message", "finish_reason")}
        choices.append({**rest, "delta": delta, "finish_reason": None})
    yield _event({**head, "choices": choices})
    ends = [
        {"index": choice.get("index", at), "delta": {}, "finish_reason": choice.get("finish_reason")}
        for at, choice in enumerate(response.get("choices") or [])
    ]
    yield _event({**head, "choices": ends})
    if response.get("usage") is not None:
        yield _event({**head, "choices": [], "usage": response["usage"]})
    yield "data: [DONE]\n\n"


def _messages(response: dict[str, Any]) -> Iterator[str]:
    ending = {name: response.get(name) for name in ("stop_reason", "stop_sequence")}
    begun = {**response, "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event({"type": "message_start", "message": begun}, "message_start")
    for index, block in enumerate(response.get("content") or []):
        empty, deltas = _block(block)
        started = {"type": "content_block_start", "index": index, "content_block": empty}
        yield _event(started, "content_block_start")
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
        yield _event({"type": "content_block_stop", "index": index}, "content_block_stop")
    usage = response.get("usage") or {}
    yield _event({"type": "message_delta", "delta": ending, "usage": usage}, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


def _block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it begins, and what is added to it."""
    sort = block.get("type")
    if sort == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block.get("text", "")}]
    if sort == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block.get("thinking", "")}]
        if block.get("signature"):
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if "input" in block:
        written = orjson.dumps(block["input"]).decode()
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": written}]
    return block, []


def _responses(response: dict[str, Any]) -> Iterator[str]:
    number = 0

    def told(sort: str, **fields: Any) -> str:
        nonlocal number
        number += 1
        return _event({"type": sort, "sequence_number": number - 1, **fields}, sort)

    yield told("response.created", response={**response, "status": "in_progress", "output": []})
    for at, item in enumerate(response.get("output") or []):
        yield told("response.output_item.added", output_index=at, item={**item, "status": "in_progress"})
        for place, part in enumerate(item.get("content") or []) if item.get("type") == "message" else ():
            where = {"item_id": item.get("id"), "output_index": at, "content_index": place}
            if part.get("type") == "output_text":
                yield told("response.content_part.added", **where, part={**part, "text": ""})
                yield told("response.output_text.delta", **where, delta=part.get("text", ""), logprobs=[])
                yield told("response.output_text.done", **where, text=part.get("text", ""), logprobs=[])
                yield told("response.content_part.done", **where, part=part)
        if item.get("type") == "function_call":
            where, given = {"item_id": item.get("id"), "output_index": at}, item.get("arguments", "")
            yield told("response.function_call_arguments.delta", **where, delta=given)
            yield told("response.function_call_arguments.done", **where, arguments=given, name=item.get("name"))
        yield told("response.output_item.done", output_index=at, item=item)
    yield told("response.completed", response=response)


def _generate(response: dict[str, Any]) -> Iterator[str]:
    yield _event(response)


def _ollama(response: dict[str, Any]) -> Iterator[str]:
    yield orjson.dumps({**response, "done": True}).decode() + "\n"


_MAKERS = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _messages,
    "google.generate": _generate,
    "ollama": _ollama,
}
