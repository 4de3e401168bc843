"""Read Anthropic's messages, as Anthropic speaks them, and Vertex, Bedrock and Azure after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

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
    parsed,
    rows,
    text,
    total,
    usage,
)
from playhead.capture.dialects.bodies import Parsed
from playhead.capture.dialects.deltas import Grown, Pieces, Rows, grow, joined, settled
from playhead.event import kinds

_JSON = "\0json"  # where the pieces of a tool's input are kept while they come; no field is named so
_DONE = "\0done"


def _operation(path: str) -> str:
    if path.endswith(("/count_tokens", "/count-tokens:rawPredict")):
        return "count_tokens"
    return "messages"


def _model_in(path: str) -> str | None:
    """Return the model that the path names: Vertex `models/<model>:rawPredict`, Bedrock `/model/<model>/invoke`."""
    _, verb, after = path.rpartition("/model/")
    if verb:
        return unquote(after.partition("/")[0]) or None
    return last_segment(path) or None if path.endswith("awPredict") else None


def asked(body: Any, path: str) -> Asked:
    """Read a request."""
    results: list[ToolResult] = []
    names: dict[str, str] = {}
    for message in reversed(rows(mapping(body).get("messages"))):
        if message.get("role") == "assistant":
            blocks = rows(message.get("content"))
            names = {str(block.get("id")): name for block in blocks if (name := text(block.get("name")))}
            break
        for block in reversed(rows(message.get("content"))):
            if block.get("type") == "tool_result":
                identity = text(block.get("tool_use_id"))
                results.append(ToolResult(identity, None, block.get("content"), block.get("is_error") is True))
    named = tuple(item._replace(name=names.get(item.id or "")) for item in reversed(results))
    return Asked(text(mapping(body).get("model")) or _model_in(path), named)


def usage_of(message: Any) -> kinds.Usage | None:
    """Count the tokens of a message; Anthropic counts what a cache gave or took beside the input."""
    said = mapping(mapping(message).get("usage"))
    read = count(said.get("cache_read_input_tokens"))
    return usage(
        total(said.get("input_tokens"), said.get("cache_creation_input_tokens"), read),
        count(said.get("output_tokens")),
        read,
        count(mapping(said.get("output_tokens_details")).get("thinking_tokens")),
    )


def answered(documents: Sequence[Any], streamed: bool) -> Answered:
    """Read an answer."""
    if not streamed:
        whole = documents[0] if documents else None
        blocks = rows(mapping(whole).get("content"))
        error = error_of(whole)
    else:
        whole, blocks, error = _assembled(documents)
    calls = (
        ToolAsked(text(block.get("id")), name, block.get("input"))
        for block in blocks
        if block.get("type") == "tool_use" and (name := text(block.get("name")))
    )
    return Answered(
        response=whole,
        model=text(mapping(whole).get("model")),
        usage=usage_of(whole),
        finish=text(mapping(whole).get("stop_reason")),
        calls=tuple(calls),
        error=error,
    )


def _assembled(documents: Sequence[Any]) -> tuple[Any, list[dict[str, Any]], dict[str, Any] | None]:
    """Put the events of a stream together; returns message, the blocks that came in full, and an error."""
    message: dict[str, Any] = {}
    blocks: dict[int, Grown] = {}
    error: dict[str, Any] | None = None
    only: Any = None  # a document that is no event: a proxy's error, say
    for event in documents.continued() if isinstance(documents, Parsed) else documents:
        if type(event) is not dict:
            continue
        match event.get("type"):
            case "content_block_delta":
                block = blocks.get(_index(event))
                if block is not None:
                    _grow_block(block, mapping(event.get("delta")))
            case "content_block_start":
                blocks[_index(event)] = Grown(mapping(event.get("content_block")))
            case "content_block_stop":
                if (block := blocks.get(_index(event))) is not None:
                    block[_DONE] = True
            case "message_start":
                message = dict(mapping(event.get("message")))
            case "message_delta":
                _update(message, event)
            case "message_stop" | "ping":
                pass
            case _:
                error = error_of(event) or error
                only = event
    if not message and not blocks:
        return only, [], error
    done = [_settled(blocks[index]) for index in sorted(blocks)]
    message["content"] = [*rows(message.get("content")), *(block for block, _ in done)]
    finished = message.get("stop_reason") is not None
    return message, [block for block, whole in done if whole or finished], error


def _index(event: dict[str, Any]) -> int:
    index = event.get("index")
    return index if type(index) is int else 0


def _grow_block(block: Grown, delta: dict[str, Any]) -> None:
    match delta.get("type"):
        case "text_delta":
            _continue(block, "text", delta.get("text"))
        case "thinking_delta":
            _continue(block, "thinking", delta.get("thinking"))
        case "input_json_delta":
            _continue(block, _JSON, delta.get("partial_json"))
        case "signature_delta":
            block["signature"] = delta.get("signature")
        case "citations_delta":
            held = block.get("citations")
            block["citations"] = [*(held if type(held) is list else ()), delta.get("citation")]
        case "compaction_delta":
            block.update((key, value) for key, value in delta.items() if key != "type")
        case _:  # a kind of delta that is newer than this
            _thaw(block)
            grow(block, {key: value for key, value in delta.items() if key != "type"})


def _continue(block: Grown, key: str, piece: Any) -> None:
    if type(piece) is not str:
        return
    held = block.get(key)
    if type(held) is Pieces:
        held.append(piece)
    else:
        block[key] = Pieces((held, piece) if type(held) is str else (piece,))


def _thaw(block: Grown) -> None:
    """Make what the block began with able to grow."""
    for key, value in block.items():
        if type(value) is str and key != "type":
            block[key] = Pieces((value,))
        elif type(value) is list:
            held = Rows()
            held.extend(value)
            block[key] = held


def _settled(block: Grown) -> tuple[dict[str, Any], bool]:
    """Return a block as it is when it is not streamed, and whether it came in full."""
    pieces = block.pop(_JSON, None)
    done = block.pop(_DONE, False)
    if type(pieces) is Pieces and (said := joined(pieces)):
        block["input"] = parsed(said)
    return settled(block), done


def _update(message: dict[str, Any], event: dict[str, Any]) -> None:
    """Take over what only the end of a stream says; what it leaves out, or says as null, stays as it was."""
    for key, value in mapping(event.get("delta")).items():
        if value is not None or key not in message:
            message[key] = value
    for key, value in event.items():
        if key == "usage":
            counted = {name: number for name, number in mapping(value).items() if number is not None}
            message["usage"] = {**mapping(message.get("usage")), **counted}
        elif key not in ("type", "delta") and value is not None:
            message[key] = value


MESSAGES = Dialect(
    name="anthropic.messages",
    provider="anthropic",
    routes=(
        r"/v1/messages(?:/count_tokens)?$",
        r"/publishers/anthropic/models/[^/]+:(?:rawPredict|streamRawPredict)$",
        r"/model/[^/]*anthropic\.[^/]+/invoke(?:-with-response-stream)?$",  # Bedrock
    ),
    operation=_operation,
    volatile=("metadata",),
    asked=asked,
    answered=answered,
    fields=(("messages",),),
)
