"""Read a message to or from a model as people read it: what is said, which tools it calls, what they gave back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from playhead.views import text
from playhead.views.answers import parsed

# What a message has beside what it says. A field that is not known makes it one that is shown as it is.
_ABOUT = {"role", "type", "id", "status", "name", "index", "phase"}
_EMPTY: tuple[Any, ...] = (None, [], {}, "")
_TEXTS = ("text", "input_text", "output_text")
_CALLS = ("function", "function_call", "tool_use", "custom_tool_call")
_RESULTS = ("function_call_output", "tool_result", "custom_tool_call_output")


class Said(NamedTuple):
    """One thing that a message says."""

    what: str  # text, call, result
    told: str
    id: str | None = None  # of the call
    name: str | None = None  # of the tool


def spoken(message: dict[str, Any], width: int) -> list[Said] | None:
    """Return what a message says, calls in at most `width` characters; None where some of it is of another form."""
    try:
        return list(_message(message, width))
    except _Unknown:
        return None


def tool_names(tools: Any) -> list[str] | None:
    """Return what the tools are called that a request offers; None where one of them has no name."""
    names: list[str] = []
    for tool in tools if isinstance(tools, list) else [None]:
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(inner, dict):
            return None
        declared = inner.get("functionDeclarations", inner.get("function_declarations"))
        name = inner.get("name") or inner.get("type")
        found = tool_names(declared) if declared is not None else [name] if isinstance(name, str) else None
        if found is None:
            return None
        names += found
    return names


class _Unknown(Exception):
    """This is not how messages look."""


def _message(message: dict[str, Any], width: int) -> Iterator[Said]:
    kind = message.get("type")
    if kind in _CALLS or kind in _RESULTS:
        yield from _part(message, width)
        return
    fields = {name: value for name, value in message.items() if name not in _ABOUT and value not in _EMPTY}
    id = fields.pop("tool_call_id", None)
    said: list[Said] = []
    for name in ("content", "parts", "refusal"):
        said += _content(fields.pop(name, None), width)
    if message.get("role") == "tool" or id is not None:
        yield Said("result", "\n".join(one.told for one in said), _text_or_none(id), _text_or_none(message.get("name")))
    else:
        yield from said
    calls = fields.pop("tool_calls", [])
    legacy = fields.pop("function_call", None)
    for call in [*(calls if isinstance(calls, list) else [calls]), *([legacy] if legacy else [])]:
        yield _call(call, width)
    if fields:
        raise _Unknown


def _content(content: Any, width: int) -> Iterator[Said]:
    if isinstance(content, str):
        yield Said("text", content)
    elif isinstance(content, (list, dict)):
        for part in content if isinstance(content, list) else [content]:
            yield from _part(part, width)
    elif content is not None:
        raise _Unknown


def _part(part: Any, width: int) -> Iterator[Said]:
    if isinstance(part, str):
        yield Said("text", part)
        return
    if not isinstance(part, dict):
        raise _Unknown
    kind = part.get("type")
    if kind in _CALLS:
        yield _call(part, width)
    elif kind in _RESULTS:
        id = part.get("call_id", part.get("tool_use_id"))
        yield Said("result", _result(part.get("output", part.get("content")), width), _text_or_none(id))
    elif isinstance(part.get("text"), str) and (kind in _TEXTS or set(part) == {"text"}):
        yield Said("text", part["text"])
    elif isinstance(called := part.get("functionCall", part.get("function_call")), dict):
        yield _call(called, width)
    elif isinstance(given := part.get("functionResponse", part.get("function_response")), dict):
        yield Said("result", _result(given.get("response"), width), name=_text_or_none(given.get("name")))
    else:
        raise _Unknown


def _call(call: Any, width: int) -> Said:
    asked = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(asked, dict) or not isinstance(asked.get("name"), str):
        raise _Unknown
    given = next((asked[field] for field in ("arguments", "input", "args") if field in asked), None)
    id = call.get("call_id", call.get("id"))
    return Said("call", f"{asked['name']}({text.arguments(parsed(given), width)})", _text_or_none(id), asked["name"])


def _result(output: Any, width: int) -> str:
    if isinstance(output, str):
        return output
    try:
        said = list(_content(output, width))
    except _Unknown:
        return text.short(output, width)
    return "\n".join(one.told for one in said)


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
