"""Read the messages of a call where they are events: of the span, or log records beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playhead.ingest.otlp import bodies, contents, messages
from playhead.ingest.otlp.conventions import genai, pydantic_ai
from playhead.ingest.otlp.messages import Message
from playhead.ingest.otlp.told import Told, event_of

_BODIES = ("gen_ai.event.content", "gen_ai.prompt", "gen_ai.completion")  # where an event of a span has it as JSON
_STRUCTURED = ("tool_calls", "message")  # which an event of a span can have only as a text


class Conversation:
    """What events say of a call: the messages that were asked, and the choices that were answered."""

    __slots__ = ("asked", "choices")

    def __init__(self, told: Told) -> None:
        self.asked: list[Message] = []
        self.choices: list[dict[str, Any]] = []
        if not told.logs and not told.span.events and pydantic_ai.EVENTS not in told.span.attributes:
            return
        for name, body in _events(told):
            if name == genai.CHOICE:
                self._choose(body)
            elif name == genai.PROMPT:
                self.asked += bodies.request(body).get("messages", [])
            elif name == genai.COMPLETION:
                self.choices += bodies.response(body).get("choices", [])
            elif name in genai.MESSAGES and type(body) is dict:
                self.asked += messages.chat([{"role": genai.MESSAGES[name], **body}])
            elif name in genai.MESSAGES and type(body) is str:
                self.asked.append({"role": genai.MESSAGES[name], "content": body})
        self.choices.sort(key=lambda one: one["index"] if type(one.get("index")) is int else 0)

    def _choose(self, body: Any) -> None:
        if type(body) is not dict:
            return
        message = body.get("message")
        if type(message) is str:
            message = contents.parsed_or(message)
        if type(message) is not dict:
            message = {"content": message} if type(message) is str else {}
        for name in ("content", "tool_calls", "role"):
            if name not in message and body.get(name) is not None:
                message = {**message, name: body[name]}
        made = messages.chat([{"role": "assistant", **message}])
        index = body.get("index", body.get("gen_ai.choice.index"))
        number = index if type(index) is int else len(self.choices)
        self.choices.append(bodies.choice(made[-1] if made else None, body.get("finish_reason"), number))


def _events(told: Told) -> Iterator[tuple[str, Any]]:
    """Yield name and body of events, those of the span first."""
    for event in told.span.events:
        attributes = event.get("attributes") or {}
        whole = next((attributes[name] for name in _BODIES if name in attributes), None)
        if whole is not None:
            yield event["name"], contents.parsed_or(whole)
        else:
            yield (
                event["name"],
                {
                    name: contents.parsed_or(value) if name in _STRUCTURED else value
                    for name, value in attributes.items()
                },
            )
    listed = told.span.value(pydantic_ai.EVENTS) if pydantic_ai.EVENTS in told.span.attributes else None
    for event in listed if type(listed) is list else ():
        if type(event) is dict and type(event.get("event.name")) is str:
            yield event["event.name"], event
    for log in told.logs:
        name = event_of(log)
        if name in genai.MESSAGES or name == genai.CHOICE:
            yield name, contents.parsed_or(log.body) if log.body is not None else dict(log.attributes)
