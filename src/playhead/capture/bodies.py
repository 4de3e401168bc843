"""Decide what is kept of the bodies of an exchange: exact where that is possible, clean always."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import orjson

from playhead import _limits
from playhead.capture import dialects, redact_http, redact_stream
from playhead.capture.redact import Redactor
from playhead.capture.redact_inside import Unopened, opened
from playhead.capture.spans import outcome
from playhead.event import kinds, wire
from playhead.event.plain import describe_error

Pair = tuple[str, str]
_ENCODING = "content-encoding"


class Answer:
    """What came back, and what is kept of it."""

    __slots__ = (
        "aside", "chunks", "documents", "end", "form", "headers", "pairs", "pieces", "reason", "size", "streamed",
        "times", "unended", "value", "version",
    )  # fmt: skip

    def __init__(self) -> None:
        self.pairs: list[Any] = []  # its headers, as the client has them
        self.headers: list[Pair] = []
        self.reason: str | None = None  # the words of its first line, and the protocol, where the client tells them
        self.version: str | None = None
        self.chunks: list[bytes] = []
        self.times: list[int] = []  # of each chunk, in nanoseconds of the monotonic clock
        self.unended: list[int] = []  # which pieces do not end the chunk of HTTP/1 that they are of
        self.end = 0  # when it was over, by the same clock, where the client is watched on the wire
        self.size = 0  # of all that came, kept or not
        self.value: Any = None
        self.form = wire.NONE
        self.pieces: dict[str, Any] | None = None  # sizes and times, where they matter
        self.documents: Sequence[Any] | None = None  # what the answer says, as JSON: one, or those of a stream
        self.streamed = False
        # A long stream as it came, and the generation of the secrets that are known not to stand in it.
        self.aside: tuple[bytes, int] | None = None

    @property
    def media(self) -> str:
        """Return the type of the body."""
        return header(self.headers, "content-type")

    @property
    def first(self) -> Any:
        """Return the first document, or None."""
        return self.documents[0] if self.documents else None


def kept_request(redactor: Redactor, body: bytes, headers: list[Pair], counts: dict[str, int]) -> tuple[Any, str]:
    """Return what to keep of the body of a request, and its form."""
    encoding = _encoding(headers)
    if encoding and encoding != "identity":
        return _kept_encoded(redactor, body, encoding, counts)
    media = header(headers, "content-type")
    if media.startswith("multipart/"):
        return wire.as_text(redact_http.multipart(redactor, body, media, counts))
    value, form = wire.read(body)
    return _kept_text(redactor, body, value, headers, counts) if form == wire.TEXT else (value, form)


def multipart_identity(value: Any, headers: list[Pair]) -> dict[str, str] | None:
    """Return what a form of several parts is known by: all of it but the line between them, which clients draw by lot.

    None for any other body.
    """
    media = next((text for name, text in headers if name.lower() == "content-type"), "")
    found = redact_http.BOUNDARY.search(media) if media.lower().startswith("multipart/") else None
    if found is None or not isinstance(value, (str, bytes)):
        return None
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return {"multipart": hashlib.sha256(data.replace((found[1] or found[2]).encode(), b"boundary")).hexdigest()}


def kept_answer(
    redactor: Redactor, answer: Answer, speaks: bool, start: int, counts: dict[str, int], *, whole: bool = True
) -> None:
    """Fill in what is kept of an answer; `speaks` says that a dialect will want its documents.

    The only piece of a `whole` answer came with its end, and its time is not kept.
    """
    raw = answer.chunks[0] if len(answer.chunks) == 1 else b"".join(answer.chunks)
    if not raw:
        return
    encoding = _encoding(answer.headers)
    encoded = encoding not in ("", "identity")
    if speaks:
        found = dialects.documents(_opened(raw, encoding) if encoded else raw, answer.media)
        if found is not None:
            answer.documents, answer.streamed = found
    pieces = answer.chunks
    if encoded:
        answer.value, answer.form = _kept_encoded(redactor, raw, encoding, counts)
        if answer.value is not raw and answer.form != wire.UNOPENED:
            pieces = [wire.write(answer.value, answer.form)]  # a secret was inside: what is kept is no longer encoded
    else:
        if answer.streamed and len(raw) > _limits.INLINE_BYTES_MAX:
            generation = redactor.generation
            if not redactor.suspicious_text(raw, json=False):
                answer.aside = raw, generation
        if answer.aside is None and (len(pieces) > 1 or answer.streamed) and redactor.suspicious_text(raw):
            pieces = redact_http.pieces(redactor, pieces, counts)
            raw = b"".join(pieces)
        if not speaks and _is_event_stream(answer.headers):
            pieces = redact_stream.without_split_secrets(redactor, pieces, counts)
            raw = b"".join(pieces)
        _keep(redactor, answer, raw, counts)
    apart = answer.end > answer.times[-1]  # the end came after the last piece, in a packet of its own
    if len(answer.chunks) > 1 or answer.streamed or answer.unended or apart or not whole:
        times = [(at - start) // 1000 for at in answer.times]
        answer.pieces = _told(pieces, times)
        if answer.end:
            answer.pieces["end_us"] = (answer.end - start) // 1000
        if answer.unended and len(pieces) == len(answer.chunks):
            answer.pieces["unended"] = answer.unended


def hide_split_secrets(redactor: Redactor, answer: Answer, counts: dict[str, int]) -> bool:
    """Take out of a kept stream what is secret only when its events are put together; say whether there was any."""
    raw, encoding = wire.write(answer.value, answer.form), _encoding(answer.headers)
    encoded = answer.form == wire.BYTES and encoding not in ("", "identity")
    pieces = [_opened(raw, encoding) if encoded else raw]
    if answer.pieces is not None and not encoded and sum(answer.pieces["sizes"]) == len(raw):
        ends = list(itertools.accumulate(answer.pieces["sizes"]))
        pieces = [raw[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    clean = redact_stream.without_split_secrets(redactor, pieces, counts)
    if clean is not pieces:
        answer.aside = None
        answer.value, answer.form = wire.as_text(b"".join(clean))
        if answer.pieces is not None:
            if len(clean) != len(answer.pieces["sizes"]):
                answer.pieces.pop("unended", None)
            answer.pieces |= _told(clean, answer.pieces["at_us"])
    return clean is not pieces


def _told(pieces: list[bytes], times: list[int]) -> dict[str, Any]:
    """Say how large the pieces are and when they came; one that stands for all was there when the last one was."""
    return {"sizes": [len(piece) for piece in pieces], "at_us": times[-len(pieces) :]}


def _is_event_stream(headers: list[Pair]) -> bool:
    return header(headers, "content-type").startswith(("text/event-stream", "application/x-ndjson"))


def _keep(redactor: Redactor, answer: Answer, raw: bytes, counts: dict[str, int]) -> None:
    if answer.streamed:
        answer.value, answer.form = wire.as_text(raw)
        return
    if answer.documents:
        form = wire.json_form(answer.documents[0], raw)
        if form is not None:
            answer.value, answer.form = answer.documents[0], form
            return
        answer.value, answer.form = wire.as_text(raw)
    else:
        answer.value, answer.form = wire.read(raw)
    if answer.form == wire.TEXT:
        answer.value, answer.form = _kept_text(redactor, raw, answer.value, answer.headers, counts)


def _opened(raw: bytes, encoding: str) -> bytes:
    try:
        return opened(raw, encoding)
    except Unopened:
        return b""  # cut in the middle, or in an encoding that nothing here can read


def _kept_encoded(redactor: Redactor, body: bytes, encoding: str, counts: dict[str, int]) -> tuple[Any, str]:
    try:
        clean = redact_http.encoded(redactor, body, encoding, counts)
    except Unopened as problem:
        # What cannot be looked into may hold a secret: its digest says what it was, and no more.
        digest = hashlib.sha256(body).hexdigest()
        return {"why": problem.reason, "encoding": problem.encoding, "sha256": digest}, wire.UNOPENED
    return (body, wire.BYTES) if clean is None else wire.as_text(clean)


def _kept_text(
    redactor: Redactor, body: bytes, value: str, headers: list[Pair], counts: dict[str, int]
) -> tuple[Any, str]:
    media = header(headers, "content-type")
    if media.startswith("application/x-www-form-urlencoded"):
        return redact_http.form(redactor, value, counts), wire.TEXT
    if redactor.suspicious(body) and (document := parsed(value, wire.TEXT)) is not None:
        return document, "json:compact"  # in which a secret field is found by its name
    return value, wire.TEXT


def parsed(value: Any, form: str) -> Any:
    """Return a body as JSON; None where it is none."""
    if form.startswith(wire.JSON):
        return value
    try:
        return orjson.loads(value) if form in (wire.TEXT, wire.BYTES) else None
    except ValueError:
        return None


def _encoding(headers: list[Pair]) -> str:
    """Return what a body was encoded with; a header that comes twice says it in turn."""
    return ",".join(value.strip().lower() for name, value in headers if len(name) == 16 and name.lower() == _ENCODING)


def header(headers: list[Pair], name: str) -> str:
    """Return the value of a header in lower case; empty where it is missing."""
    size = len(name)
    for key, value in headers:
        if len(key) == size and key.lower() == name:
            return value.strip().lower()
    return ""


def complaint(document: Any) -> str:
    """Return what a provider says in an error."""
    inner = document.get("error", document) if isinstance(document, dict) else document
    message = inner.get("message") if isinstance(inner, dict) else inner
    return message if isinstance(message, str) else ""


def first_line(redactor: Redactor, answer: Answer, status: int | None, counts: dict[str, int]) -> list[bytes]:
    """Return the members that tell of the first line of an answer what its status does not."""
    told = []
    if answer.reason is not None and answer.reason != wire.reason(status):
        told.append(b'"reason":%b' % orjson.dumps(redactor.redact_text(answer.reason, counts)))
    if answer.version is not None and answer.version != wire.VERSION:
        told.append(b'"version":%b' % orjson.dumps(redactor.redact_text(answer.version, counts)))
    return told


def outcome_of(
    answer: Answer,
    status: int | None,
    error: BaseException | None,
    closed: dict[str, Any] | None,
    answered: dialects.Answered | None,
) -> tuple[kinds.Status, dict[str, Any] | None]:
    """Say how a question to a model ended, and what went wrong; `closed` says why it was left before its end."""
    if error is not None:
        return outcome(error), describe_error(error)
    if status is not None and status >= 400:
        return "error", {"type": "HTTPStatus", "message": f"{status} {complaint(answer.first)}".rstrip()}
    if answered is not None and answered.error is not None:
        return "error", {"type": "ProviderError", "message": complaint({"error": answered.error})}
    if closed and not (answered is not None and answered.finish):
        return "cancelled", closed  # many clients hang up right after the last event, which is no loss
    return "ok", None
