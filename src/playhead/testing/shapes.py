"""Find the API that a path belongs to, and put an answer into the bytes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from playhead.testing import (
    anthropic_messages,
    google_content,
    openai_chat,
    openai_embeddings,
    openai_responses,
)
from playhead.testing.script import Answer, Embeddings, Failure, Raw
from playhead.testing.turn import Asked, Turn, compact, pretty, turn_of
from playhead.testing.wire import Wire

_JSON = "application/json"
_EVENTS = "text/event-stream; charset=utf-8"


class Shape(NamedTuple):
    """One API: where it is, and the functions that write it."""

    name: str
    path: re.Pattern[str]
    whole: Callable[[Asked, Turn], dict[str, Any]] | None  # None: vectors, not turns
    stream: Callable[[Asked, Turn], list[bytes]] | None
    error: Callable[[Asked, int, str], Any]
    id_header: str = "x-request-id"


SHAPES = (
    Shape(
        "OpenAI chat completions", re.compile(r"/chat/completions$"),
        openai_chat.whole, openai_chat.stream, openai_chat.error,
    ),
    Shape(
        "OpenAI responses", re.compile(r"/responses$"),
        openai_responses.whole, openai_responses.stream, openai_responses.error,
    ),
    Shape("OpenAI embeddings", re.compile(r"/embeddings$"), None, None, openai_embeddings.error),
    Shape(
        "Anthropic messages", re.compile(r"/v1/messages$"),
        anthropic_messages.whole, anthropic_messages.stream, anthropic_messages.error, "request-id",
    ),
    Shape(
        "Google content", re.compile(r"/models/[^/:]+:(?:generateContent|streamGenerateContent)$"),
        google_content.whole, google_content.stream, google_content.error, "x-goog-request-id",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Sending:
    """An answer as it is to be sent, before anything cuts it."""

    status: int
    headers: list[tuple[str, str]]
    chunks: list[bytes]
    chunked: bool  # by transfer encoding; else by Content-Length
    wire: Wire


def asked_of(path: str, body: bytes, request: Any = None) -> Asked:
    """Take a request apart."""
    parts = urlsplit(path)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Asked(unquote(parts.path), query, request if isinstance(request, dict) else {}, body)


def shape_of(asked: Asked) -> Shape | None:
    """Return the API that a path belongs to."""
    return next((shape for shape in SHAPES if shape.path.search(asked.path)), None)


def written(shape: Shape, asked: Asked, answer: Answer, number: int, usual: Wire) -> Sending:
    """Put an answer into the form of the API that was asked; `usual` is how answers are sent that do not say it."""
    wire = answer.wire or usual
    headers = [(shape.id_header, f"req_scripted_{number}")]
    if isinstance(answer, Raw):
        return raw(answer, wire, headers)
    if isinstance(answer, Failure):
        return failure(shape, asked, answer, wire, headers)
    if isinstance(answer, Embeddings) != (shape.whole is None):
        message = f"the script says {type(answer).__name__}, but the request asks for {shape.name}"
        return failure(shape, asked, Failure(500, message), wire, headers)
    if isinstance(answer, Embeddings):
        return _whole(200, openai_embeddings.whole(asked, answer), wire, headers)
    assert shape.whole is not None
    turn = turn_of(answer, asked.body, number)
    if shape.stream is not None and (asked.request.get("stream") or google_content.is_stream(asked)):
        array = google_content.is_stream(asked) and not google_content.is_sse(asked)
        more = [*headers, ("Cache-Control", "no-cache")]
        return _sending(200, _JSON if array else _EVENTS, shape.stream(asked, turn), True, wire, more)
    return _whole(200, shape.whole(asked, turn), wire, headers)


def failure(
    shape: Shape, asked: Asked, answer: Failure, wire: Wire, headers: list[tuple[str, str]] | None = None
) -> Sending:
    """Put a failure into the form of the API that was asked."""
    more = list(headers or [])
    if answer.retry_after is not None:
        more.append(("retry-after", f"{answer.retry_after:g}"))
    if answer.retry_after_ms is not None:
        more.append(("retry-after-ms", str(answer.retry_after_ms)))
    return _whole(answer.status, shape.error(asked, answer.status, answer.message), wire, more)


def raw(answer: Raw, wire: Wire, headers: list[tuple[str, str]] | None = None) -> Sending:
    """Send bytes given by hand."""
    pieces = [answer.body] if isinstance(answer.body, bytes) else list(answer.body)
    streamed = wire.chunked or not isinstance(answer.body, bytes)
    return _sending(answer.status, answer.content_type, pieces, streamed, wire, headers or [])


def _whole(status: int, value: Any, wire: Wire, headers: list[tuple[str, str]]) -> Sending:
    payload = pretty(value) if wire.pretty else compact(value)
    return _sending(status, _JSON, [payload], wire.chunked, wire, headers)


def _sending(
    status: int, content_type: str, pieces: list[bytes], chunked: bool, wire: Wire, more: list[tuple[str, str]]
) -> Sending:
    chunks = wire.chunks(pieces)
    headers = [("Content-Type", content_type)]
    if wire.encoding is not None:
        headers.append(("Content-Encoding", wire.encoding))
    length = str(sum(map(len, chunks)))
    headers.append(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", length))
    given = wire.header_pairs
    replaced = {name.lower() for name, _ in given}
    headers += [pair for pair in more if pair[0].lower() not in replaced]
    return Sending(status, headers + given, chunks, chunked, wire)
