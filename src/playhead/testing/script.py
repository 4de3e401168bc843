"""Say what a scripted provider answers: text, tool calls, or a failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ToolCall:
    """One tool that the model asks for."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Text:
    """Answer in words."""

    text: str


@dataclass(frozen=True)
class ToolCalls:
    """Ask for tools; more than one means in parallel."""

    calls: tuple[ToolCall, ...]
    text: str | None = None  # what the model says beside it


@dataclass(frozen=True)
class Failure:
    """Answer with an HTTP error."""

    status: int
    message: str = "scripted failure"


Answer = Text | ToolCalls | Failure
Loose = Answer | str | int | Sequence[ToolCall | dict[str, Any]]


def as_answer(loose: Loose) -> Answer:
    """Accept the short forms: a string is text, a number an error status, a list the tool calls."""
    match loose:
        case Text() | ToolCalls() | Failure():
            return loose
        case str():
            return Text(loose)
        case bool():
            raise TypeError("an answer is text, tool calls or an error status, not a truth value")
        case int():
            return Failure(loose)
        case _:
            return ToolCalls(tuple(call if isinstance(call, ToolCall) else ToolCall(**call) for call in loose))
