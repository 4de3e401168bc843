"""Bring the answers of a model into one form, which every shape then writes in its own way."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from playhead.testing.script import Refusal, Text, ToolCall, ToolCalls, Usage

CREATED = 1_700_000_000  # the time of every answer: no clock, so the same script gives the same bytes
_PIECE_CHARACTERS = 12  # of text or arguments in one chunk of a stream
_TOKEN_BYTES = 4


@dataclass(frozen=True)
class Asked:
    """What a shape looks at: the request, parsed."""

    path: str  # without the query
    query: dict[str, str]
    request: dict[str, Any]
    body: bytes


@dataclass(frozen=True)
class Counted:
    """The tokens of one answer; `input` includes `cached`, `output` includes `reasoning`."""

    input: int
    output: int
    cached: int
    reasoning: int


@dataclass(frozen=True)
class Turn:
    """What the model says in one turn."""

    number: int  # of the answer, counted from one; makes the ids
    text: str | None
    reasoning: str | None
    refusal: str | None
    calls: tuple[ToolCall, ...]
    finish: str
    usage: Counted

    def call_id(self, index: int, prefix: str) -> str:
        """Return the id of a tool call: the one given, or a number."""
        return self.calls[index].id or f"{prefix}_{self.number}_{index}"

    @property
    def signature(self) -> str:
        """Return what the provider would sign the reasoning with, in base64."""
        return base64.b64encode(hashlib.sha256((self.reasoning or "").encode()).digest()).decode()


def turn_of(answer: Text | ToolCalls | Refusal, body: bytes, number: int) -> Turn:
    """Return what an answer says, with its tokens counted."""
    calls = answer.calls if isinstance(answer, ToolCalls) else ()
    refusal = answer.refusal if isinstance(answer, Refusal) else None
    text = None if isinstance(answer, Refusal) else answer.text
    reasoning = None if isinstance(answer, Refusal) else answer.reasoning
    finish = None if isinstance(answer, Refusal) else answer.finish
    natural = "refusal" if refusal is not None else "tools" if calls else "stop"
    written = (text or "") + (refusal or "")
    if calls:
        written += json.dumps([[call.name, call.arguments] for call in calls])
    usage = _counted(answer.usage or Usage(), body, written, reasoning)
    return Turn(number, text, reasoning, refusal, calls, finish or natural, usage)


def pieces(text: str) -> list[str]:
    """Cut text as a stream would."""
    return [text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS)]


def arguments_of(call: ToolCall) -> str:
    """Return the arguments of a call as the text that models write."""
    return json.dumps(call.arguments, ensure_ascii=False)


def compact(value: Any) -> bytes:
    """Return JSON without spaces, in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def pretty(value: Any) -> bytes:
    """Return JSON indented by two, as api.openai.com sends it."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode()


def named_events(events: Iterable[dict[str, Any]]) -> list[bytes]:
    """Write server-sent events that carry their type as their name, too."""
    return [b"event: %s\ndata: %s\n\n" % (event["type"].encode(), compact(event)) for event in events]


def _counted(given: Usage, body: bytes, written: str, reasoning: str | None) -> Counted:
    """Count four bytes as a token: not what a model would count, but stable, and it grows with the content."""
    thought = given.reasoning
    if thought is None:
        thought = max(1, len(reasoning.encode()) // _TOKEN_BYTES) if reasoning else 0
    asked = len(body) // _TOKEN_BYTES if given.input is None else given.input
    output = max(1, len(written.encode()) // _TOKEN_BYTES) + thought if given.output is None else given.output
    return Counted(asked, output, given.cached, thought)
