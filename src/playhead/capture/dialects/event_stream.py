"""Take Amazon's binary event stream apart, in which Bedrock streams."""

from __future__ import annotations

import struct
from base64 import b64decode
from typing import Any

from playhead.capture.dialects.base import loads, mapping

MEDIA = "application/vnd.amazon.eventstream"

_HEAD = struct.Struct(">III")  # length of all, length of the headers, checksum of these two
_CHECKSUM_SIZE = 4
_TEXT = 7  # the type of a header whose value is a text; Bedrock sends no other


def frames(data: bytes) -> list[Any]:
    """Return the documents of a stream; a frame that was cut, and what follows one that is damaged, is left out."""
    found: list[Any] = []
    at = 0
    while at + _HEAD.size <= len(data):
        size, headers_size, _ = _HEAD.unpack_from(data, at)
        start = at + _HEAD.size
        end = at + size - _CHECKSUM_SIZE
        if start + headers_size > end or at + size > len(data):
            break
        document = _document(data[start : start + headers_size], data[start + headers_size : end])
        if document is not None:
            found.append(document)
        at += size
    return found


def _document(headers: bytes, payload: bytes) -> Any:
    """Return what a frame carries: a chunk holds JSON as base64, an exception becomes an error as a stream has it."""
    try:
        value = loads(payload)
        inner = mapping(value).get("bytes")
        if type(inner) is str:
            return loads(b64decode(inner))
    except ValueError:  # also what b64decode raises
        return None
    named = _texts(headers)
    kind = named.get(":exception-type") or named.get(":error-code")
    if kind is None:
        return value
    return {"type": "error", "error": {"type": kind, **mapping(value)}}


def _texts(headers: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(headers):
        name_end = at + 1 + headers[at]
        if name_end + 3 > len(headers) or headers[name_end] != _TEXT:
            break
        value_end = name_end + 3 + int.from_bytes(headers[name_end + 1 : name_end + 3], "big")
        value = headers[name_end + 3 : value_end]
        found[headers[at + 1 : name_end].decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        at = value_end
    return found
