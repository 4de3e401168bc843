"""Keep the body of a message in a form that can be read, compared and written once, and give back its exact bytes.

Most bodies are JSON that a few encoders wrote. Such a body is kept as its value together with the name of the form in
which writing it gives the same bytes; that is tried, not assumed. Every other body is kept as text or as bytes.
"""

from __future__ import annotations

import http
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson

from playhead.event.plain import restore

JSON = "json:"
TEXT, BYTES, NONE = "text", "bytes", "none"
UNOPENED = "unopened"  # it could not be looked into, so that only its digest was kept
VERSION = "HTTP/1.1"  # what is spoken where nothing else is said
_NEWLINE = "+newline"  # after the name of a form: a line break ends the body

_WRITERS: dict[str, Callable[[Any], bytes]] = {
    "json:compact": orjson.dumps,
    "json:compact-python": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
    "json:compact-ascii": lambda value: json.dumps(value, separators=(",", ":")).encode(),
    "json:spaced": lambda value: json.dumps(value, ensure_ascii=False).encode(),
    "json:spaced-ascii": lambda value: json.dumps(value).encode(),
    "json:indented": lambda value: json.dumps(value, ensure_ascii=False, indent=2).encode(),
    "json:indented-ascii": lambda value: json.dumps(value, indent=2).encode(),
}
_SPELLED = ("json:compact-python", "json:compact-python" + _NEWLINE)


def read(data: bytes) -> tuple[Any, str]:
    """Return what to keep of a body, and its form."""
    if not data:
        return None, NONE
    if data[0] in b'{["' or data[:1].isdigit():
        try:
            value = orjson.loads(data)
        except ValueError:
            return as_text(data)
        form = json_form(value, data)
        if form is not None:
            return value, form
    return as_text(data)


def json_form(value: Any, data: bytes) -> str | None:
    """Return the form in which this JSON value gives these bytes; None where no form does."""
    form = "json:compact"  # as most are
    try:
        if write(value, form) == data:
            return form
    except TypeError:
        pass  # half of a surrogate pair, or a number that only Python's encoder writes
    form = _form(data)
    try:
        if write(value, form) == data:
            return form
        form = form.replace("json:compact", "json:compact-python", 1)  # which spells 1e-07 what orjson writes 1e-7
        return form if form in _SPELLED and write(value, form) == data else None
    except (TypeError, ValueError, RecursionError):  # an encoder that refuses what a parser let through
        return None


def as_text(data: bytes) -> tuple[Any, str]:
    """Return a body as text where it is UTF-8, else as bytes; and its form."""
    try:
        return data.decode(), TEXT
    except UnicodeDecodeError:
        return data, BYTES


def _form(data: bytes) -> str:
    """Guess the encoder from its habits."""
    ascii_only = "-ascii" if b"\\u" in data and data.isascii() else ""
    ending = _NEWLINE if data.endswith(b"\n") else ""
    if data[1:2] == b"\n":
        return f"json:indented{ascii_only}{ending}"
    colon, comma = data.find(b'":'), data.find(b",")
    spaced = (colon >= 0 and data[colon + 2 : colon + 3] == b" ") or (colon < 0 and data[comma + 1 : comma + 2] == b" ")
    return f"json:{'spaced' if spaced else 'compact'}{ascii_only}{ending}"


def write(value: Any, form: str) -> bytes:
    """Return the bytes of a body that was kept in a form."""
    if form == NONE:
        return b""
    if form in (TEXT, BYTES):
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    if form == UNOPENED:
        raise ValueError("this body was unopened: it could not be looked into, and only its digest was kept")
    bare = form.removesuffix(_NEWLINE)
    writer = _WRITERS.get(bare)
    if writer is None:
        raise ValueError(f"this body was kept in a form that this Playhead does not know: {form}")
    return writer(value) + (b"\n" if bare != form else b"")


def request_bytes(data: Mapping[str, Any]) -> bytes:
    """Return the body that a call sent, from the data of its opening event."""
    return _body(data, "request")


def response_bytes(data: Mapping[str, Any]) -> bytes:
    """Return the body that came back, as it came, still encoded; from the data of the closing event."""
    return _body(data, "response")


def response_chunks(data: Mapping[str, Any]) -> list[bytes]:
    """Return the same in the pieces in which it arrived; what redaction added is in the last."""
    whole = response_bytes(data)
    sizes = (data.get("chunks") or {}).get("sizes")
    if sizes is None:
        return [whole] if whole else []
    ends = [*itertools.accumulate(sizes[:-1]), len(whole)]
    return [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)] if sizes else []


class _Answer(msgspec.Struct):
    status: str = ""
    response: msgspec.Raw = msgspec.Raw(b"")
    http: dict[str, Any] = {}  # msgspec copies it
    body: Any = None
    chunks: Any = None
    error: Any = None


class _Line(msgspec.Struct):
    data: _Answer


_lines = msgspec.json.Decoder(_Line)


def whole_answer(line: bytes) -> tuple[dict[str, Any], bytes] | None:
    """Return the head and the body of an answer of a model, from its line, where nothing has to be made to have them.

    That is so where it came whole and well, in the compact JSON that stands in the line. None for any other.
    """
    try:
        told = _lines.decode(line).data
    except msgspec.DecodeError:
        return None  # whoever reads it whole says what is wrong
    if told.status != "ok" or told.http.get("form") != "json:compact" or told.error is not None:
        return None
    body = bytes(told.response)
    if not body or told.body is not None or told.chunks is not None or (b"$" in body and b'"$' in body):
        return None
    return told.http, body


def reason(status: int | None) -> str:
    """Return the words that go with a status where nothing else is said."""
    try:
        return http.HTTPStatus(status or 0).phrase
    except ValueError:
        return ""


def _body(data: Mapping[str, Any], value: str) -> bytes:
    form = (data.get("http") or data).get("form", NONE)
    kept = data.get("body" if "body" in data or "http" not in data else value)
    return write(restore(kept), form)  # a body may hold what reads as a mark of ours: `{"$ref": …}` of a JSON Schema
