"""Bring messages of every form into that of chat completions: role, content, tool_calls, tool_call_id.

The forms are those of OpenTelemetry (parts), Anthropic (blocks), Responses (items), LangChain (constructors), Vercel
(parts with dashes), Gemini (contents). A message that is in the form already is passed on as it is.
"""

from __future__ import annotations

from typing import Any

import orjson

Message = dict[str, Any]

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "AIMessageChunk": "assistant", "bot": "assistant",
          "function": "tool", "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system",
          "ToolMessage": "tool"}  # fmt: skip
_MESSAGE_TYPES = {"human", "ai", "system", "tool", "AIMessageChunk", "function", "generic", "chat"}
_TEXTS = {"text", "input_text", "output_text"}
_CALLS = {"tool_call", "tool_use", "tool-call", "function_call", "custom_tool_call", "mcp_call"}
_RESULTS = {"tool_call_response", "tool_result", "tool-result", "function_call_output", "custom_tool_call_output"}
_THOUGHTS = {"reasoning", "thinking", "redacted_thinking", "thought", "reasoning_text"}
_WHOLE = frozenset({"role", "parts", "kwargs", "data", "message"})  # of which a whole message has one
_PLAIN = ("user", "assistant", "system")  # a tuple, since what stands there may be anything
_BARE = {"role", "parts", "name"}
_PASSED = {"refusal", "audio", "annotations"}


def chat(value: Any) -> list[Message]:
    """Return messages in the form of chat completions."""
    found: list[Message] = []
    item_of: Message | None = None  # an answer that may go on: some have each part of it as an item without a role
    for item in value if type(value) is list else [value]:
        if type(item) is dict and len(item) == 2 and type(item.get("content")) is str:  # the most usual form
            role = item.get("role")
            if type(role) is str and role in _CHAT_ROLES:
                item_of = None
                found.append(item)
                continue
        if type(item) is dict and "parts" in item:
            item_of = None
            parts = item["parts"]
            if (
                type(parts) is list and len(parts) == 1 and item.keys() <= _BARE and item.get("name") is None
            ):  # most are
                part, role = parts[0], item.get("role")
                if type(part) is dict and part.get("type") == "text" and role in _PLAIN:
                    said = part.get("content")
                    if type(said) is str:
                        found.append({"role": role, "content": said})
                        continue
            found += _messages(item)
            continue
        is_item = type(item) is dict and (_kind(item) == "message" or not _WHOLE.intersection(item))
        for message in _messages(item):
            if item_of is not None and is_item and message["role"] == "assistant":
                _join(item_of, message)
                continue
            found.append(message)
            item_of = message if is_item and message["role"] == "assistant" else None
    return found


def text_of(value: Any) -> str:
    """Return a value as the text that a message of a tool has."""
    if type(value) is str:
        return value
    try:
        return orjson.dumps(value, default=repr).decode()
    except TypeError:
        return repr(value)


def call(id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Return a call of a tool as an answer has it."""
    given = arguments if type(arguments) is str else text_of({} if arguments is None else arguments)
    found: dict[str, Any] = {"id": id} if id else {}
    return {**found, "type": "function", "function": {"name": name, "arguments": given}}


def calls(value: Any) -> list[dict[str, Any]]:
    """Return the calls of a list of them, in any form."""
    made = _Made("assistant")
    for item in value if type(value) is list else []:
        _call(made, item)
    return made.calls


class _Made:
    """One message while its parts come."""

    __slots__ = ("calls", "parts", "results", "role", "thoughts")

    def __init__(self, role: str) -> None:
        self.role = role
        self.parts: list[Any] = []
        self.calls: list[dict[str, Any]] = []
        self.results: list[Message] = []
        self.thoughts: list[str] = []

    def content(self) -> Any:
        texts = [part["text"] for part in self.parts if type(part) is dict and part.get("type") == "text"]
        if len(texts) == len(self.parts) <= 1:
            return texts[0] if texts else None
        return self.parts

    def messages(self, given: Message) -> list[Message]:
        """Return what came: results of tools first, each as a message of its own."""
        found = self.results
        content = self.content()
        if content is None and not self.calls and not self.thoughts and found:
            return found
        message: Message = {"role": self.role, "content": content}
        if self.thoughts:
            message["reasoning_content"] = "\n".join(self.thoughts)
        if self.calls:
            message["tool_calls"] = self.calls
        for name in _PASSED:
            if given.get(name) is not None:
                message[name] = given[name]
        if self.role == "tool":
            id = given.get("tool_call_id") or given.get("id")
            if id is not None:
                message["tool_call_id"] = id
        if type(given.get("name")) is str:
            message["name"] = given["name"]
        return [*found, message]


def _join(to: Message, more: Message) -> None:
    """Add what a later item of the same answer says."""
    if "tool_calls" in more:
        to["tool_calls"] = [*to.get("tool_calls", []), *more["tool_calls"]]
    if more.get("content") is not None:
        before = to.get("content")
        to["content"] = more["content"] if before is None else [*_as_parts(before), *_as_parts(more["content"])]
    if "reasoning_content" in more:
        to["reasoning_content"] = "\n".join(filter(None, (to.get("reasoning_content"), more["reasoning_content"])))


def _as_parts(content: Any) -> list[Any]:
    return content if type(content) is list else [{"type": "text", "text": content}]


def _kind(item: Message) -> str:
    kind = item.get("type")
    return kind if type(kind) is str else ""


def _of_parts(role: str, parts: list[Any]) -> list[Message] | None:
    """Return a message of OpenTelemetry's form, which most are; None where it has a part that is not usual."""
    text: str | None = None
    asked: list[dict[str, Any]] = []
    results: list[Message] = []
    for part in parts:
        if type(part) is not dict:
            return None
        kind = part.get("type")
        if kind == "text":
            said = part.get("content")
            if text is not None or type(said) is not str:
                return None
            text = said
        elif kind == "tool_call":
            name, given = part.get("name"), part.get("arguments")
            if type(name) is not str or given is None:
                return None
            asked.append(call(part.get("id"), name, given))
        elif kind == "tool_call_response":
            said = part.get("response", part.get("result"))
            if type(said) is not str or "output" in part or "content" in part:
                return None
            result: Message = {"role": "tool", "content": said}
            if id := part.get("id"):
                result["tool_call_id"] = id
            if type(named := part.get("name")) is str:
                result["name"] = named
            results.append(result)
        else:
            return None
    if text is None and not asked:
        return results or None
    message: Message = {"role": role, "content": text}
    if asked:
        message["tool_calls"] = asked
    return [*results, message]


_PARTS_FIELDS = frozenset({"role", "parts", "finish_reason", "name"})


def _messages(item: Any) -> list[Message]:
    if type(item) is dict and type(parts := item.get("parts")) is list and type(role := item.get("role")) is str:
        plain = role in _CHAT_ROLES and item.get("name") is None and _PARTS_FIELDS.issuperset(item)
        if plain and (role != "tool" or len(parts) == 1) and (made := _of_parts(role, parts)) is not None:
            return made
    if type(item) is str:
        return [{"role": "user", "content": item}]
    if type(item) is list:
        if len(item) == 2 and type(item[0]) is str and type(item[1]) is str:  # LangChain's ("user", "Hello")
            return [{"role": _ROLES.get(item[0], item[0]), "content": item[1]}]
        return [message for one in item if type(one) is dict for message in _messages(one)]
    if type(item) is not dict:
        return []
    item = _unwrapped(item)
    if _is_chat(item):
        return [item]
    kind = _kind(item)
    role = item.get("role")
    if type(role) is not str:
        if kind in _CALLS or kind in _THOUGHTS:
            role = "assistant"
        elif kind in _RESULTS:
            role = "tool"
        else:
            role = kind if kind in _MESSAGE_TYPES else "user"
    message = _Made(_ROLES.get(role, role))
    if "role" not in item and (kind in _CALLS or kind in _RESULTS or kind in _THOUGHTS):
        _part(message, item)
        return message.messages({})
    _content(message, item)
    return message.messages(item)


def _content(made: _Made, item: Message) -> None:
    for name in ("reasoning_content", "reasoning"):
        if type(item.get(name)) is str:
            made.thoughts.append(item[name])
    for name in ("content", "parts", "contents"):
        content = item.get(name)
        if type(content) is str:
            if content or name == "content":
                made.parts.append({"type": "text", "text": content})
            continue
        if made.role == "tool" and type(content) is dict:
            made.parts.append({"type": "text", "text": text_of(content)})
            continue
        for part in content if type(content) is list else [content]:
            _part(made, part)
    more = item.get("additional_kwargs")
    given = item.get("tool_calls") or (more.get("tool_calls") if type(more) is dict else None)
    if type(given) is list and given:
        made.calls = []  # the parts of Anthropic's say the same again
        for one in given:
            _call(made, one)
    legacy = item.get("function_call") or (more.get("function_call") if type(more) is dict else None)
    if type(legacy) is dict and not made.calls:
        _call(made, legacy)


def _part(made: _Made, part: Any) -> None:
    if part is None:
        return
    if type(part) is str:
        made.parts.append({"type": "text", "text": part})
        return
    if type(part) is not dict:
        made.parts.append({"type": "text", "text": text_of(part)})
        return
    inner = part.get("message_content")
    if type(inner) is dict:  # OpenInference
        part = {**part, **inner}
    kind = _kind(part)
    if kind in _CALLS or "functionCall" in part or "function_call" in part or "toolUse" in part:
        _call(made, part)
    elif kind in _RESULTS or "functionResponse" in part or "function_response" in part or "toolResult" in part:
        _result(made, part)
    elif kind in _THOUGHTS or part.get("thought") is True:
        said = next((part[name] for name in ("content", "thinking", "reasoning", "text") if part.get(name)), None)
        if type(said) is str:
            made.thoughts.append(said)
        elif type(said) is list or part.get("summary"):
            pieces = said if type(said) is list else part["summary"]
            made.thoughts += [one["text"] for one in _rows(pieces) if type(one.get("text")) is str]
    elif kind in _TEXTS or (not kind and type(part.get("text")) is str):
        said = part.get("text", part.get("content"))
        if said is not None:
            made.parts.append({"type": "text", "text": said if type(said) is str else text_of(said)})
    else:
        made.parts.append(part)


def _rows(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if type(one) is dict] if type(value) is list else []


def _call(made: _Made, part: Any) -> None:
    if type(part) is not dict:
        return
    asked = next((part[name] for name in ("tool_call", "functionCall", "function_call", "toolUse")
                  if type(part.get(name)) is dict), part)  # fmt: skip
    function = asked.get("function")
    if type(function) is dict:
        if part is asked and part.get("type") == "function" and type(function.get("arguments")) is str:
            made.calls.append(part)
            return
        asked = {**asked, **function}
    name = next((asked[one] for one in ("name", "toolName", "tool_name") if type(asked.get(one)) is str), None)
    if name is None:
        return
    id = next(
        (asked[one] for one in ("call_id", "id", "toolCallId", "toolUseId", "tool_call_id") if asked.get(one)), None
    )
    given = next((asked[one] for one in ("arguments", "input", "args") if asked.get(one) is not None), None)
    made.calls.append(call(id, name, given))


def _result(made: _Made, part: dict[str, Any]) -> None:
    given = next((part[name] for name in ("functionResponse", "function_response", "toolResult")
                  if type(part.get(name)) is dict), part)  # fmt: skip
    id = next((given[one] for one in ("call_id", "tool_use_id", "toolCallId", "tool_call_id", "toolUseId", "id")
               if given.get(one)), None)  # fmt: skip
    said: Any = None
    for name in ("response", "result", "output", "content"):
        if given.get(name) is not None:
            said = given[name]
            break
    if (
        type(said) is dict
        and "value" in said
        and said.get("type") in ("text", "json", "content", "error-text", "error-json")
    ):
        said = said["value"]  # Vercel says of which kind a result is
    if type(said) is list and said and all(type(one) is dict and type(one.get("text")) is str for one in said):
        said = "\n".join(one["text"] for one in said)
    message: Message = {"role": "tool", "content": None if said is None else text_of(said)}
    if id is not None:
        message["tool_call_id"] = id
    tool = next((given[one] for one in ("name", "toolName", "tool_name") if type(given.get(one)) is str), None)
    if tool is not None:
        message["name"] = tool
    made.results.append(message)


def _unwrapped(item: Message) -> Message:
    """Return a message without what is around it: OpenInference's `message`, LangChain's constructor."""
    inner = item.get("message")
    if type(inner) is dict and "role" not in item:
        item = inner
    kwargs, data = item.get("kwargs"), item.get("data")
    if item.get("type") == "constructor" and type(kwargs) is dict:
        path = item.get("id")
        named = path[-1] if type(path) is list and path and type(path[-1]) is str else None
        said = kwargs.get("role") or _kind(kwargs) or named or "user"
        return {**kwargs, "role": _ROLES.get(said, said) if type(said) is str else "user"}
    if type(data) is dict and type(item.get("type")) is str:
        return {**data, "role": _ROLES.get(item["type"], item["type"])}
    if item.get("type") in ("human", "ai") and "role" not in item:
        return {**item, "role": _ROLES[item["type"]]}
    return item


_CHAT_FIELDS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "refusal", "reasoning_content",
                          "annotations", "audio", "function_call"})  # fmt: skip
_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_CHAT_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})


def _is_chat(item: Message) -> bool:
    role = item.get("role")
    if type(role) is not str or role not in _CHAT_ROLES or not _CHAT_FIELDS.issuperset(item):
        return False
    content = item.get("content")
    if type(content) is list:
        if len(content) == 1 or not all(type(one) is dict and _kind(one) in _CHAT_PARTS for one in content):
            return False
    elif content is not None and type(content) is not str:
        return False
    given = item.get("tool_calls")
    return given is None or (type(given) is list and all(
        type(one) is dict and type(function := one.get("function")) is dict and type(function.get("arguments")) is str
        for one in given
    ))  # fmt: skip
