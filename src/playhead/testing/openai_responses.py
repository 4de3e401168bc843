"""Put scripted answers into the wire form of OpenAI responses.

Pure functions: no clock and no randomness, so the same script gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playhead.testing import openai_chat
from playhead.testing.turn import CREATED, Asked, Turn, arguments_of, named_events, pieces

_INCOMPLETE = {"length": "max_output_tokens", "filter": "content_filter"}
_COMPLETE = ("stop", "tools", "refusal")
_ECHOED: dict[str, Any] = {  # what the answer repeats of the request, and what it says where the request is silent
    "background": False, "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": {},
    "parallel_tool_calls": True, "previous_response_id": None, "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None}, "safety_identifier": None, "store": True, "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto", "tools": [],
    "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "user": None,
}  # fmt: skip

error = openai_chat.error


def whole(asked: Asked, turn: Turn) -> dict[str, Any]:
    """Return the body of a whole answer."""
    reason = None if turn.finish in _COMPLETE else _INCOMPLETE.get(turn.finish, turn.finish)
    return _frame(asked, turn) | {
        "status": "completed" if reason is None else "incomplete",
        "completed_at": CREATED if reason is None else None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": _output(asked, turn),
        "usage": _usage(turn),
    }


def stream(asked: Asked, turn: Turn) -> list[bytes]:
    """Return the events of a streamed answer."""
    return named_events(event | {"sequence_number": number} for number, event in enumerate(_events(asked, turn)))


def _events(asked: Asked, turn: Turn) -> Iterator[dict[str, Any]]:
    begun = _frame(asked, turn)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(_output(asked, turn)):
        yield from _item_events(index, item)
    final = whole(asked, turn)
    yield {"type": f"response.{final['status']}", "response": final}


def _item_events(index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    where = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        begun, inside = item | {"summary": []}, _summary_events
    elif item["type"] == "message":
        begun, inside = item | {"status": "in_progress", "content": []}, _content_events
    else:
        begun, inside = item | {"status": "in_progress", "arguments": ""}, _argument_events
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield from inside(where, item)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _summary_events(where: dict[str, Any], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for at, part in enumerate(item["summary"]):
        here = where | {"summary_index": at}
        yield {"type": "response.reasoning_summary_part.added", **here, "part": part | {"text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **here, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **here, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **here, "part": part}


def _content_events(where: dict[str, Any], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for at, part in enumerate(item["content"]):
        here = where | {"content_index": at}
        kind, field = ("output_text", "text") if part["type"] == "output_text" else ("refusal", "refusal")
        more: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        yield {"type": "response.content_part.added", **here, "part": part | {field: ""}}
        for piece in pieces(part[field]):
            yield {"type": f"response.{kind}.delta", **here, "delta": piece, **more}
        yield {"type": f"response.{kind}.done", **here, field: part[field], **more}
        yield {"type": "response.content_part.done", **here, "part": part}


def _argument_events(where: dict[str, Any], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]}


def _output(asked: Asked, turn: Turn) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if turn.reasoning is not None:
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        item: dict[str, Any] = {"id": f"rs_scripted_{turn.number}", "type": "reasoning", "summary": summary}
        if "reasoning.encrypted_content" in (asked.request.get("include") or []):
            item["encrypted_content"] = turn.signature
        out.append(item)
    if turn.text is not None or turn.refusal is not None:
        part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": [], "text": turn.text}
        if turn.refusal is not None:
            part = {"type": "refusal", "refusal": turn.refusal}
        status = "completed" if turn.finish in _COMPLETE else "incomplete"
        identity = {"id": f"msg_scripted_{turn.number}", "type": "message", "status": status}
        out.append(identity | {"content": [part], "role": "assistant"})
    for index, call in enumerate(turn.calls):
        identity = {"id": f"fc_{turn.number}_{index}", "type": "function_call", "status": "completed"}
        called = {"arguments": arguments_of(call), "call_id": turn.call_id(index, "call"), "name": call.name}
        out.append(identity | called)
    return out


def _frame(asked: Asked, turn: Turn) -> dict[str, Any]:
    request = asked.request
    return {
        "id": f"resp_scripted_{turn.number}",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": request.get("model"),
        "output": [],
        "service_tier": "default",
        **{name: request[name] if request.get(name) is not None else value for name, value in _ECHOED.items()},
        "usage": None,
    }


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
