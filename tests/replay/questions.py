"""Make questions as real SDKs ask them, recorded and asked."""

from __future__ import annotations

from typing import Any

from playhead.event.envelope import Event
from playhead.replay.question import Question, question

URLS = {
    "chat": "https://api.openai.com/v1/chat/completions",
    "responses": "https://api.openai.com/v1/responses",
    "messages": "https://api.anthropic.com/v1/messages",
    "generate_content": "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent",
}


def model(operation: str, request: dict[str, Any], *, seq: int = 12, lane: str = "0") -> Question:
    """Return the question of a request as it is recorded."""
    name = request.get("model", "gemini-3-pro")
    http = {"method": "POST", "url": URLS[operation], "headers": []}
    data = {"provider": "x", "model": name, "operation": operation, "request": request, "http": http}
    return question(seq, "model.invoked", lane, data)


def chat(*messages: dict[str, Any], seq: int = 12, lane: str = "0", **more: Any) -> Question:
    """Return a chat completion of OpenAI."""
    return model("chat", {"model": "gpt-5", "messages": list(messages), **more}, seq=seq, lane=lane)


def says(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def prompt(text: str, **more: Any) -> Question:
    """Return a question that differs from others of this function only in its prompt."""
    return chat(says("You are careful.", "system"), says(text), **more)


def tool(name: str, seq: int = 3, lane: str = "0", **arguments: Any) -> Question:
    return question(seq, "tool.called", lane, {"name": name, "input": arguments})


def event(seq: int, kind: str, data: dict[str, Any], **more: Any) -> Event:
    """Return an event as it is read."""
    return Event(v=1, run="run_x", seq=seq, time="", elapsed_us=0, kind=kind, data=data, prev="", hash="", **more)
