"""Keep the body of a message in a form that can be read, compared and written once, and give back its exact bytes.

Most bodies are JSON that a few encoders wrote. Such a body is kept as its value together with the name of the form in
which writing it gives the same bytes; that is tried, not assumed. Every other body is kept as text or as bytes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from playhead.event.plain import restore

JSON = "json:"
TEXT, BYTES, NONE = "text", "bytes", "none"
UNOPENED = "unopened"  # it could not be looked into, so that only its digest was kept
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


def _body(data: Mapping[str, Any], value: str) -> bytes:
    form = (data.get("http") or data).get("form", NONE)
    kept = data.get("body" if "body" in data or "http" not in data else value)
    return write(restore(kept), form)  # a body may hold what reads as a mark of ours: `{"$ref": …}` of a JSON Schema
