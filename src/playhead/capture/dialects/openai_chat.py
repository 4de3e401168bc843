"""Read OpenAI's chat completions, as OpenAI and everybody who is compatible with it speak them."""

from __future__ import annotations

import re
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
    is_json,
    mapping,
    parsed,
    rows,
    text,
    total,
    usage,
)
from playhead.capture.dialects.deltas import Grown, Rows, grow, last_words, settled
from playhead.event import kinds

_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")

# Of a stream: the first that says something counts, for Azure begins with a chunk of empty ones.
_FIRST = frozenset({"id", "created", "model"})


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


def assembled(documents: Sequence[Any], kind: str = "chat.completion") -> Any:
    """Put the chunks of a stream together to what the same answer is when it is not streamed."""
    chunks = [document for document in documents if type(document) is dict]
    whole = last_words(chunks)
    whole.pop("obfuscation", None)  # only there to make chunks equally long
    for key in _FIRST & whole.keys():
        whole[key] = next((value for chunk in chunks if (value := chunk.get(key))), whole[key])
    if "object" in whole:
        whole["object"] = kind
    if "choices" in whole:
        choices: dict[int, list[dict[str, Any]]] = {}
        for chunk in chunks:
            for position, choice in enumerate(rows(chunk.get("choices"))):
                index = choice.get("index")
                choices.setdefault(index if type(index) is int else position, []).append(choice)
        whole["choices"] = [_assembled_choice(index, choices[index]) for index in sorted(choices)]
    return whole or None


def _assembled_choice(index: int, pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the pieces of one choice together."""
    choice = {**last_words(pieces), "index": index}
    # Perplexity sends what there is so far as a message beside each delta; the deltas count.
    deltas = [delta for piece in pieces if type(delta := piece.get("delta")) is dict]
    if choice.pop("delta", None) is not None or deltas:
        message = Grown()
        for delta in deltas:
            grow(message, delta)
        if type(calls := message.get("tool_calls")) is Rows:
            for call in calls:
                if type(call) is Grown:
                    call.pop("index", None)  # only there to put the pieces together
        choice["message"] = settled(message)
    for name in ("text", "logprobs"):
        if choice.get(name) is not None:
            grown = Grown()
            for piece in pieces:
                if (value := piece.get(name)) is not None:
                    grow(grown, {name: value})
            choice[name] = settled(grown[name])
    return choice


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
