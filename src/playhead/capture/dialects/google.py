"""Read Google's generateContent and its relatives, of the Gemini API and of Vertex."""

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
    last_segment,
    mapping,
    rows,
    text,
    total,
    usage,
)
from playhead.capture.dialects.deltas import Pieces, joined
from playhead.capture.dialects.google_partial import collapsed
from playhead.event import kinds

_PLAIN = frozenset({"text", "thought"})  # a part with anything else, a signature say, is not merged with its neighbour
_LONGER = ("citationMetadata", "logprobsResult")  # what their lists hold comes chunk by chunk


def _operation(path: str) -> str:
    return path[path.rfind(":") + 1 :]


def _either(fields: dict[str, Any], name: str, other: str) -> Any:
    """Return a field by its name, or by the other spelling that the API takes as well."""
    return fields[name] if name in fields else fields.get(other)


def asked(body: Any, path: str) -> Asked:
    """Read a request; the model is in the path."""
    contents = mapping(body).get("contents")
    results: list[ToolResult] = []
    for content in reversed(rows([contents] if type(contents) is dict else contents)):
        if content.get("role") == "model":
            break
        for part in reversed(rows(content.get("parts"))):
            response = _either(part, "functionResponse", "function_response")
            if type(response) is dict:
                output = response.get("response")
                failed = type(output) is dict and bool(output.get("error")) and "output" not in output
                results.append(ToolResult(text(response.get("id")), text(response.get("name")), output, failed))
    return Asked(last_segment(path) or None, tuple(reversed(results)))


def usage_of(response: Any) -> kinds.Usage | None:
    """Count the tokens of an answer; Google counts thoughts beside the output, and what tools fetched beside input."""
    said = mapping(mapping(response).get("usageMetadata"))
    predictions = rows(mapping(response).get("predictions"))
    if predictions:
        vectors = [mapping(mapping(one.get("embeddings")).get("statistics")) for one in predictions]
        return usage(total(*(vector.get("token_count") for vector in vectors)))
    thought = count(said.get("thoughtsTokenCount"))
    return usage(
        total(said.get("promptTokenCount"), said.get("toolUsePromptTokenCount")),
        total(said.get("candidatesTokenCount"), thought),
        count(said.get("cachedContentTokenCount")),
        thought,
    )


def answered(documents: Sequence[Any], streamed: bool) -> Answered:
    """Read an answer; a JSON array is a stream that was asked for without `alt=sse`."""
    if not streamed and len(documents) == 1 and type(documents[0]) is list:
        documents, streamed = documents[0], True
    whole = _assembled(documents) if streamed else (documents[0] if documents else None)
    candidates = rows(mapping(whole).get("candidates"))
    return Answered(
        response=whole,
        model=text(mapping(whole).get("modelVersion")),
        usage=usage_of(whole),
        finish=(text(candidates[0].get("finishReason")) if candidates else None)
        or text(mapping(mapping(whole).get("promptFeedback")).get("blockReason")),
        calls=tuple(call for candidate in candidates for call in _calls_of(candidate)),
        error=error_of(whole),
    )


def _calls_of(candidate: dict[str, Any]) -> list[ToolAsked]:
    """List the function calls of a candidate that came in full."""
    calls = []
    for part in rows(mapping(candidate.get("content")).get("parts")):
        call = mapping(part.get("functionCall"))
        if (name := text(call.get("name"))) and call.get("willContinue") is not True:
            calls.append(ToolAsked(text(call.get("id")), name, call.get("args", {})))
    return calls


def _assembled(documents: Sequence[Any]) -> Any:
    """Put the chunks of a stream together to what the same answer is when it is not streamed."""
    whole: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    for document in documents:
        if type(document) is not dict:
            continue
        for key, value in document.items():
            if key == "candidates":
                whole.setdefault(key, None)
                for position, candidate in enumerate(rows(value)):
                    index = candidate.get("index")
                    _merge(candidates.setdefault(index if type(index) is int else position, {}), candidate)
            elif key == "usageMetadata" and type(value) is dict:
                whole[key] = {**mapping(whole.get(key)), **value}
            elif value is not None:
                whole[key] = value
    if "candidates" in whole:
        whole["candidates"] = [_settled(candidates[index]) for index in sorted(candidates)]
    return whole or None


def _merge(held: dict[str, Any], candidate: dict[str, Any]) -> None:
    for key, value in candidate.items():
        if key == "content" and type(value) is dict:
            content = held.get("content")
            if type(content) is not dict:
                content = held["content"] = {}
            for name, inner in value.items():
                if name == "parts":
                    _add_parts(content.setdefault("parts", []), rows(inner))
                else:
                    content[name] = inner
        elif key in _LONGER and type(value) is dict:
            held[key] = _longer(mapping(held.get(key)), value)
        elif value is not None:
            held[key] = {**held[key], **value} if type(value) is dict and type(held.get(key)) is dict else value


def _longer(held: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    merged = dict(held)
    for name, inner in value.items():
        old = merged.get(name)
        merged[name] = [*old, *inner] if type(inner) is list and type(old) is list else inner
    return merged


def _add_parts(parts: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
    """Append parts; a plain text goes on with the plain text before it, a thought with the thought."""
    for part in more:
        said = part.get("text")
        if type(said) is str and part.keys() <= _PLAIN:
            last = parts[-1] if parts else {}
            held = last.get("text")
            if type(held) is Pieces and bool(last.get("thought")) is bool(part.get("thought")):
                held.append(said)
            else:
                parts.append({**part, "text": Pieces((said,))})
        else:
            parts.append(part)


def _settled(candidate: dict[str, Any]) -> dict[str, Any]:
    content = candidate.get("content")
    if type(content) is dict and type(content.get("parts")) is list:
        content["parts"] = collapsed(
            {**part, "text": joined(part["text"])} if type(part.get("text")) is Pieces else part
            for part in content["parts"]
        )
    return candidate


GENERATE = Dialect(
    name="google.generate",
    provider="google",
    routes=(
        r":(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$",
        r"/publishers/google/models/[^/]+:predict$",  # embeddings of older models on Vertex
    ),
    operation=_operation,
    volatile=("labels",),
    asked=asked,
    answered=answered,
)
