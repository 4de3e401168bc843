"""Say what a scripted provider answers: text, tool calls, a refusal, vectors, a failure, or bytes given by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from playhead.testing.wire import Wire


@dataclass(frozen=True)
class Usage:
    """Say how many tokens were used; what is None is counted from the content.

    `input` includes what was `cached` and `output` includes the `reasoning`, whatever the API says about it: Anthropic
    reports the input without the cached part, and Google the output without the reasoning.
    """

    input: int | None = None
    output: int | None = None
    cached: int = 0
    reasoning: int | None = None


@dataclass(frozen=True)
class ToolCall:
    """One tool that the model asks for."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str | None = None  # None: numbered; Google then sends none


@dataclass(frozen=True)
class Text:
    """Answer in words."""

    text: str
    reasoning: str | None = None
    finish: str | None = None  # "length", "filter", or as the API that is asked spells it; None: the natural one
    usage: Usage | None = None
    wire: Wire | None = None


@dataclass(frozen=True)
class ToolCalls:
    """Ask for tools; more than one means in parallel."""

    calls: tuple[ToolCall, ...]
    text: str | None = None  # what the model says beside it
    reasoning: str | None = None
    finish: str | None = None
    usage: Usage | None = None
    wire: Wire | None = None


@dataclass(frozen=True)
class Refusal:
    """Refuse, in the way that the API that is asked has for it."""

    refusal: str
    usage: Usage | None = None
    wire: Wire | None = None


@dataclass(frozen=True)
class Embeddings:
    """Answer with vectors: those given, or numbers that are made from each text that was sent."""

    vectors: tuple[tuple[float, ...], ...] = ()
    dimensions: int = 8  # of vectors that are made, unless the request asks for another number
    usage: Usage | None = None
    wire: Wire | None = None


@dataclass(frozen=True)
class Failure:
    """Answer with an HTTP error, in the form of the provider that was asked."""

    status: int
    message: str = "scripted failure"
    retry_after: float | None = None  # seconds, as the header of this name
    retry_after_ms: int | None = None
    wire: Wire | None = None


@dataclass(frozen=True)
class Raw:
    """Answer with exactly these bytes; several pieces are sent as so many chunks, without a Content-Length."""

    body: bytes | tuple[bytes, ...]
    status: int = 200
    content_type: str = "application/json"
    wire: Wire | None = None


Answer = Text | ToolCalls | Refusal | Embeddings | Failure | Raw
Loose = Answer | str | int | Mapping[str, Any] | Sequence[ToolCall | dict[str, Any]]

# A mapping, for instance out of a JSON file, is the answer whose first field it has.
_BY_KEY: tuple[tuple[str, type[Any]], ...] = (
    ("calls", ToolCalls),
    ("text", Text),
    ("refusal", Refusal),
    ("vectors", Embeddings),
    ("dimensions", Embeddings),
    ("body", Raw),
    ("status", Failure),
)


def as_answer(loose: Loose) -> Answer:
    """Accept the short forms: a string is text, a number an error status, a list the tool calls, a mapping any."""
    match loose:
        case Text() | ToolCalls() | Refusal() | Embeddings() | Failure() | Raw():
            return loose
        case str():
            return Text(loose)
        case bool():
            raise TypeError("an answer is text, tool calls or an error status, not a truth value")
        case int():
            return Failure(loose)
        case Mapping():
            return _from_mapping(loose)
        case _:
            return ToolCalls(_calls(loose))


def as_wire(given: Mapping[str, Any]) -> Wire:
    """Return how an answer is sent, out of JSON, where the tuples are lists."""
    wire: Wire = _made(Wire, {name: _tupled(value) for name, value in given.items()})
    return wire


def _from_mapping(given: Mapping[str, Any]) -> Answer:
    kind = next((kind for key, kind in _BY_KEY if key in given), None)
    if kind is None:
        raise ValueError(f"an answer has one of the keys {', '.join(key for key, _ in _BY_KEY)}; found {sorted(given)}")
    values = dict(given)
    if isinstance(values.get("wire"), Mapping):
        values["wire"] = as_wire(values["wire"])
    if isinstance(values.get("usage"), Mapping):
        values["usage"] = _made(Usage, values["usage"])
    if kind is ToolCalls:
        values["calls"] = _calls(values["calls"])
    elif kind is Embeddings:
        values["vectors"] = _tupled(values.get("vectors", ()))
    elif kind is Raw:
        values["body"] = _raw_body(values["body"])
    answer: Answer = _made(kind, values)
    return answer


def _made(kind: type[Any], values: Mapping[str, Any]) -> Any:
    known = {one.name for one in fields(kind)}
    if unknown := set(values) - known:
        raise ValueError(f"{kind.__name__} has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}")
    return kind(**values)


def _calls(given: Sequence[ToolCall | Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    return tuple(call if isinstance(call, ToolCall) else _made(ToolCall, call) for call in given)


def _tupled(value: Any) -> Any:
    return tuple(_tupled(one) for one in value) if isinstance(value, list | tuple) else value


def _raw_body(value: Any) -> bytes | tuple[bytes, ...]:
    if isinstance(value, list | tuple):
        return tuple(one.encode() if isinstance(one, str) else one for one in value)
    return value.encode() if isinstance(value, str) else bytes(value)
