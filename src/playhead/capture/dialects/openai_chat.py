"""Read OpenAI's chat completions, as OpenAI and everybody who is compatible with it speak them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from playhead.capture.dialects.base import (
    Answered,
    Asked,
    Dialect,
    ToolAsked,
    ToolResult,
    count,
    error_of,
    is_json,
    mapping,
    parsed,
    rows,
    text,
    total,
    usage,
)
from playhead.capture.dialects.bodies import Parsed
from playhead.capture.dialects.deltas import Grown, Rows, grow, heard, settled
from playhead.event import kinds

_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")

# Of a stream: the first that says something counts, for Azure begins with a chunk of empty ones.
_FIRST = ("id", "created", "model")
_BESIDE = ("text", "logprobs")  # what grows beside the delta


def model_of(body: Any, path: str) -> str | None:
    """Return the model a request names; Azure has it in the path."""
    found = _DEPLOYMENT.search(path)
    return text(mapping(body).get("model")) or (found[1] if found else None)


def usage_of(document: Any) -> kinds.Usage | None:
    """Count the tokens of an answer."""
    said = mapping(mapping(document).get("usage") or mapping(mapping(document).get("x_groq")).get("usage"))
    came, went = count(said.get("prompt_tokens")), count(said.get("completion_tokens"))
    cached = count(mapping(said.get("prompt_tokens_details")).get("cached_tokens"))
    if cached is None:  # DeepSeek, Moonshot
        cached = total(said.get("prompt_cache_hit_tokens", said.get("cached_tokens")))
    thought = count(mapping(said.get("completion_tokens_details")).get("reasoning_tokens"))
    if thought and came is not None and went is not None and said.get("total_tokens") == came + went + thought:
        went += thought  # xAI counts what was thought beside the output, not in it
    return usage(came, went, cached, thought)


def asked(body: Any, path: str) -> Asked:
    """Read a request."""
    messages = rows(mapping(body).get("messages"))
    results: list[ToolResult] = []
    names: dict[str, str] = {}
    for message in reversed(messages):
        role = message.get("role")
        if role == "assistant":
            names = {call.id: call.name for call in _calls_of(message, complete=True) if call.id}
            break
        if role in ("tool", "function"):
            results.append(
                ToolResult(text(message.get("tool_call_id")), text(message.get("name")), message.get("content"), False)
            )
    named = (item if item.name else item._replace(name=names.get(item.id or "")) for item in reversed(results))
    return Asked(model_of(body, path), tuple(named))


def answered(documents: Sequence[Any], streamed: bool) -> Answered:
    """Read an answer."""
    whole = assembled(documents) if streamed else (documents[0] if documents else None)
    choices = rows(mapping(whole).get("choices"))
    calls: list[ToolAsked] = []
    finish: str | None = None
    for number, choice in enumerate(choices):
        reason = text(choice.get("finish_reason"))
        finish = reason if number == 0 else finish
        calls += _calls_of(mapping(choice.get("message")), complete=not streamed or reason is not None)
    return Answered(
        response=whole,
        model=text(mapping(whole).get("model")),
        usage=usage_of(whole),
        finish=finish,
        calls=tuple(calls),
        error=error_of(whole) or next((error for choice in choices if (error := error_of(choice))), None),
    )


def _calls_of(message: dict[str, Any], complete: bool) -> list[ToolAsked]:
    """List the tool calls of a message; of one that was cut, only those whose arguments came in full."""
    calls = []
    for call in rows(message.get("tool_calls")):
        function = mapping(call.get("function"))
        custom = mapping(call.get("custom"))
        name = text(function.get("name")) or text(custom.get("name"))
        if name is None:
            continue
        if custom and not function:  # free text, which says nothing about whether it is complete
            if complete:
                calls.append(ToolAsked(text(call.get("id")), name, custom.get("input")))
        elif complete or is_json(function.get("arguments")):
            calls.append(ToolAsked(text(call.get("id")), name, parsed(function.get("arguments"))))
    legacy = mapping(message.get("function_call"))
    name = text(legacy.get("name"))
    if name is not None and (complete or is_json(legacy.get("arguments"))):
        calls.append(ToolAsked(None, name, parsed(legacy.get("arguments"))))
    return calls


def assembled(documents: Iterable[Any], kind: str = "chat.completion") -> Any:
    """Put the chunks of a stream together to what the same answer is when it is not streamed."""
    whole: dict[str, Any] = {}
    first: dict[str, Any] = {}
    choices: dict[int, _Choice] = {}
    for chunk in documents.continued() if isinstance(documents, Parsed) else documents:
        if type(chunk) is not dict:
            continue
        if len(first) < len(_FIRST):
            first = {key: value for key in _FIRST if (value := first.get(key) or chunk.get(key))}
        heard(whole, chunk)
        pieces = chunk.get("choices")
        for position, piece in enumerate(pieces if type(pieces) is list else ()):
            if type(piece) is dict:
                index = piece.get("index")
                if type(index) is not int:
                    index = position
                choice = choices.get(index)
                if choice is None:
                    choice = choices[index] = _Choice()
                choice.take(piece)
    whole.pop("obfuscation", None)  # only there to make chunks equally long
    whole |= first
    if "object" in whole:
        whole["object"] = kind
    if "choices" in whole:
        whole["choices"] = [choices[index].settled(index) for index in sorted(choices)]
    return whole or None


class _Choice:
    """One choice while its pieces come."""

    __slots__ = ("fields", "message", "others")

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.message = Grown()
        self.others = Grown()

    def take(self, piece: dict[str, Any]) -> None:
        fields = self.fields
        for key, value in piece.items():
            if key == "delta" and type(value) is dict:
                fields[key] = value
                grow(self.message, value)
            elif value is None:
                if key not in fields:
                    fields[key] = None
            elif key in _BESIDE:
                grow(self.others, {key: value})
            else:
                fields[key] = value

    def settled(self, index: int) -> dict[str, Any]:
        choice = {**self.fields, "index": index}
        if choice.pop("delta", None) is not None:
            # Perplexity sends what there is so far as a message beside each delta; the deltas count.
            if type(calls := self.message.get("tool_calls")) is Rows:
                for call in calls:
                    if type(call) is Grown:
                        call.pop("index", None)  # only there to put the pieces together
            choice["message"] = settled(self.message)
        return {**choice, **settled(self.others)}


CHAT = Dialect(
    name="openai.chat",
    provider="openai",
    routes=(
        r"/(?:chat|fim|agents)/completions$",
        r"/publishers/mistralai/models/[^/]+:(?:rawPredict|streamRawPredict)$",  # Mistral on Vertex speaks this
    ),
    operation="chat",
    volatile=("client_metadata", "metadata", "prompt_cache_key"),
    asked=asked,
    answered=answered,
    fields=(("messages",), ("prompt",)),
)
