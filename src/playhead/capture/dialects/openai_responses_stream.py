"""Put the events of a streamed response together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead.capture.dialects.base import error_of, mapping, rows, text
from playhead.capture.dialects.deltas import Grown, Pieces, joined

_FINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_BEGUN = frozenset({"response.created", "response.in_progress", "response.queued"})

# Where a text of an item grows: the event without `.delta` and `.done`, the list inside the item and what names the
# entry, the field, and the field of the `.done` event that holds all of it.
_TEXTS: dict[str, tuple[str | None, str, str, str]] = {
    "response.output_text": ("content", "content_index", "text", "text"),
    "response.refusal": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text": ("content", "content_index", "text", "text"),
    "response.reasoning_summary_text": ("summary", "summary_index", "text", "text"),
    "response.function_call_arguments": (None, "", "arguments", "arguments"),
    "response.mcp_call_arguments": (None, "", "arguments", "arguments"),
    "response.custom_tool_call_input": (None, "", "input", "input"),
    "response.code_interpreter_call_code": (None, "", "code", "code"),
}
_PARTS = {
    "response.content_part": ("content", "content_index"),
    "response.reasoning_summary_part": ("summary", "summary_index"),
}
_TYPES = {
    "response.output_text": "output_text",
    "response.refusal": "refusal",
    "response.reasoning_text": "reasoning_text",
    "response.reasoning_summary_text": "summary_text",
}
_INDEX_MAX = 10_000  # a larger index is no index


def assembled(documents: Sequence[Any]) -> tuple[Any, frozenset[int], dict[str, Any] | None]:
    """Return the response, the positions in its output that were cut, and an error that stood beside it.

    The last event holds the whole response. Where a server leaves its output out, or the stream was cut before it, it
    is put together from what came.
    """
    base: Any = None
    over = False
    error: dict[str, Any] | None = None
    for document in reversed(documents):
        kind = text(mapping(document).get("type"))
        if kind == "error" or (kind is None and "error" in mapping(document)):
            error = error_of(document) or {key: value for key, value in document.items() if key != "type"}
        elif kind in _FINAL or kind in _BEGUN:
            base = document.get("response")
            over = kind in _FINAL
            break
    if over and mapping(base).get("output"):
        return base, frozenset(), error
    items = _items(documents)
    if type(base) is not dict:
        if not items:
            return (documents[-1] if documents else None), frozenset(), error
        base = {"object": "response"}
    if not items:
        return base, frozenset(), error
    numbers = sorted(items)
    cut = frozenset() if over else frozenset(at for at, number in enumerate(numbers) if not items[number].done)
    return {**base, "output": [items[number].settled() for number in numbers]}, cut, error


class _Item:
    """One item of the output while it comes."""

    __slots__ = ("done", "fields")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields: dict[str, Any] = Grown(fields)
        self.done = False

    def entry(self, name: str, index: Any) -> Grown | None:
        """Return an entry of a list of the item, made where there is none; a list that came is copied once."""
        if type(index) is not int or not 0 <= index < _INDEX_MAX:
            return None
        held = self.fields.get(name)
        if type(held) is not _Entries:
            held = self.fields[name] = _Entries(Grown(entry) for entry in rows(held))
        while len(held) <= index:
            held.append(Grown())
        entry: Grown = held[index]
        return entry

    def settled(self) -> dict[str, Any]:
        return {key: _settled(value) for key, value in self.fields.items()}


class _Entries(list[Any]):
    """A list of an item that grows."""


def _settled(value: Any) -> Any:
    if type(value) is Pieces:
        return joined(value)
    if type(value) is _Entries:
        return [_settled(entry) for entry in value]
    if type(value) is Grown:
        return {key: _settled(inner) for key, inner in value.items()}
    return value


def _items(documents: Sequence[Any]) -> dict[int, _Item]:
    items: dict[int, _Item] = {}
    for event in documents:
        if type(event) is not dict:
            continue
        kind, number = event.get("type"), event.get("output_index")
        if type(kind) is not str or type(number) is not int:
            continue
        if kind == "response.output_item.added" or kind == "response.output_item.done":
            if type(event.get("item")) is dict:
                item = items[number] = _Item(event["item"])
                item.done = kind.endswith(".done")
            continue
        known = items.get(number)
        if known is not None and not known.done:
            _take(known, kind, event)
    return items


def _take(item: _Item, kind: str, event: dict[str, Any]) -> None:
    """Take over one event of an item that is not done."""
    name, _, verb = kind.rpartition(".")
    if (where := _TEXTS.get(name)) is not None:
        listed, index, field, final = where
        target = item.fields if listed is None else item.entry(listed, event.get(index))
        if target is None:
            return
        if listed is not None and name in _TYPES:
            target.setdefault("type", _TYPES[name])
        if verb == "delta":
            _continue(target, field, event.get("delta"))
            if event.get("logprobs"):
                target["logprobs"] = [*(target.get("logprobs") or ()), *rows(event["logprobs"])]
        elif verb == "done" and type(event.get(final)) is str:
            target[field] = event[final]
    elif (part := _PARTS.get(name)) is not None:
        target = item.entry(part[0], event.get(part[1]))
        if target is not None and type(event.get("part")) is dict:
            target.clear()
            target.update(event["part"])
    elif kind == "response.output_text.annotation.added":
        target = item.entry("content", event.get("content_index"))
        if target is not None and event.get("annotation") is not None:
            held = target.get("annotations")
            target["annotations"] = [*(held if type(held) is list else ()), event["annotation"]]
    elif name == "response.shell_call_command":
        _take_command(item, verb, event)


def _take_command(item: _Item, verb: str, event: dict[str, Any]) -> None:
    action = item.fields.get("action")
    if type(action) is not Grown:
        action = item.fields["action"] = Grown(mapping(action))
    commands = action.get("commands")
    if type(commands) is not _Entries:
        commands = action["commands"] = _Entries(commands if type(commands) is list else ())
    index = event.get("command_index")
    if type(index) is not int or not 0 <= index < _INDEX_MAX:
        return
    while len(commands) <= index:
        commands.append(Pieces())
    said = event.get("delta" if verb == "delta" else "command")
    if type(said) is not str:
        return
    held = commands[index]
    if verb == "delta" and type(held) is Pieces:
        held.append(said)
    else:
        commands[index] = Pieces((held, said) if verb == "delta" and type(held) is str else (said,))


def _continue(target: dict[str, Any], field: str, piece: Any) -> None:
    if type(piece) is not str:
        return
    held = target.get(field)
    if type(held) is Pieces:
        held.append(piece)
    else:
        target[field] = Pieces((held, piece) if type(held) is str else (piece,))
