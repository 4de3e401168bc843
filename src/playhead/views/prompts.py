"""Read a request to a model as a conversation, in whichever of the usual shapes it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TALK = ("messages", "input", "contents", "prompt")  # where a request has its conversation
SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
SYSTEM_ROLES = ("system", "developer")


def messages_of(request: Any) -> list[dict[str, Any]]:
    """Return what a model was told, in order, each with its role; the rest of a message stays as it was."""
    if isinstance(request, str):
        return [{"role": "user", "content": request}]
    if isinstance(request, list):
        return list(_messages(request))
    if not isinstance(request, dict):
        return []
    found = [{"role": "system", "content": request[name]} for name in SYSTEM if request.get(name) is not None]
    for name in TALK:
        found += _messages(request.get(name))
    return found


def last_of(request: Any) -> str:
    """Return the text that a model was told last; nothing where there is none."""
    said = (text for message in reversed(messages_of(request)) for text in texts(message) if text.strip())
    return next(said, "")


def texts(value: Any) -> Iterator[str]:
    """Yield the texts of a prompt: one, or several parts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)
    elif isinstance(value, dict):
        yield from texts(value.get("text") or value.get("content") or value.get("parts"))


def _messages(talk: Any) -> Iterator[dict[str, Any]]:
    if isinstance(talk, str):
        yield {"role": "user", "content": talk}
    for message in talk if isinstance(talk, list) else ():
        if isinstance(message, dict):
            yield message if "role" in message else {"role": None, **message}
        elif isinstance(message, str):
            yield {"role": "user", "content": message}
