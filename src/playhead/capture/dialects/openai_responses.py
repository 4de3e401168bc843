"""Read OpenAI's responses."""

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
    mapping,
    parsed,
    rows,
    text,
    usage,
)
from playhead.capture.dialects.openai_chat import model_of
from playhead.capture.dialects.openai_responses_stream import assembled
from playhead.event import kinds

# Items that ask the client to run something: the field that holds the input, and the name where the item has none.
_CALLS = {
    "function_call": ("arguments", None),
    "custom_tool_call": ("input", None),
    "local_shell_call": ("action", "local_shell"),
    "shell_call": ("action", "shell"),
    "apply_patch_call": ("operation", "apply_patch"),
    "computer_call": ("action", "computer"),
    "tool_search_call": ("arguments", "tool_search"),
}
# Items that bring the result of one, and the name where only the call has it.
_RESULTS = {
    "function_call_output": None,
    "custom_tool_call_output": None,
    "local_shell_call_output": "local_shell",
    "shell_call_output": "shell",
    "apply_patch_call_output": "apply_patch",
    "computer_call_output": "computer",
    "tool_search_output": "tool_search",
}
# Items of a request that the client made, beside results: everything else the model made.
_OURS = frozenset({"mcp_approval_response", "compaction_trigger", "additional_tools"})
_RUNNING = ("in_progress", "queued")  # of a response: no finish yet


def _operation(path: str) -> str:
    last = path[path.rfind("/") + 1 :]
    return "responses" if last == "responses" else f"responses.{last}"


def asked(body: Any, path: str) -> Asked:
    """Read a request; with `previous_response_id` the calls that results belong to are not in it."""
    results: list[ToolResult] = []
    names: dict[str, str] = {}
    items = rows(mapping(body).get("input"))
    fresh = True
    for item in reversed(items):
        kind = text(item.get("type"))
        if kind in _RESULTS:
            if fresh:
                identity = text(item.get("call_id")) or text(item.get("id"))
                output = item.get("tools") if kind == "tool_search_output" else item.get("output")
                results.append(ToolResult(identity, _RESULTS[kind], output, item.get("status") == "failed"))
        elif kind in _CALLS:
            fresh = False
            if (name := text(item.get("name"))) and (identity := text(item.get("call_id"))):
                names.setdefault(identity, name)
        elif item.get("role") == "assistant" or (kind not in (None, "message") and kind not in _OURS):
            fresh = False
        elif not fresh:
            break  # before what the model said last
    named = (item if item.name else item._replace(name=names.get(item.id or "")) for item in reversed(results))
    return Asked(model_of(body, path), tuple(named))


def usage_of(response: Any) -> kinds.Usage | None:
    """Count the tokens of a response."""
    said = mapping(mapping(response).get("usage"))
    return usage(
        count(said.get("input_tokens")),
        count(said.get("output_tokens")),
        count(mapping(said.get("input_tokens_details")).get("cached_tokens")),
        count(mapping(said.get("output_tokens_details")).get("reasoning_tokens")),
    )


def answered(documents: Sequence[Any], streamed: bool) -> Answered:
    """Read an answer; its finish is its status, or the reason why it is incomplete."""
    error: dict[str, Any] | None = None
    unfinished: frozenset[int] = frozenset()
    if streamed:
        whole, unfinished, error = assembled(documents)
    else:
        whole = documents[0] if documents else None
    fields = mapping(whole)
    status = text(fields.get("status"))
    return Answered(
        response=whole,
        model=text(fields.get("model")),
        usage=usage_of(whole),
        finish=text(mapping(fields.get("incomplete_details")).get("reason"))
        or (None if status in _RUNNING else status),
        calls=tuple(_calls_of(fields.get("output"), unfinished)),
        error=error or error_of(whole),
    )


def _calls_of(output: Any, unfinished: frozenset[int]) -> list[ToolAsked]:
    """List what the client has to run: not what a result beside it shows to have been run already."""
    if type(output) is not list:
        return []
    run = {text(item.get("call_id")) for item in rows(output) if text(item.get("type")) in _RESULTS}
    calls = []
    for position, item in enumerate(output):
        if type(item) is not dict or position in unfinished or text(item.get("type")) not in _CALLS:
            continue
        field, fixed = _CALLS[item["type"]]
        name = fixed or text(item.get("name"))
        identity = text(item.get("call_id"))
        if name is None or (identity and identity in run) or item.get("execution") == "server":
            continue
        given = item.get(field)
        if given is None and field == "action":
            given = item.get("actions")
        calls.append(ToolAsked(identity, name, given if item["type"] == "custom_tool_call" else parsed(given)))
    return calls


RESPONSES = Dialect(
    name="openai.responses",
    provider="openai",
    routes=(r"/responses(?:/compact|/input_tokens)?$",),
    operation=_operation,
    volatile=("client_metadata", "metadata", "prompt_cache_key"),
    asked=asked,
    answered=answered,
    fields=(("input",), ("prompt",), ("previous_response_id",), ("conversation",)),
)
