"""Turn the decoded body of an answer into JSON documents: one, or those of a stream in order."""

from __future__ import annotations

import json
from typing import Any

from playhead.capture.dialects import event_stream
from playhead.capture.dialects.base import loads

_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
_SSE_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")
_BOM = b"\xef\xbb\xbf"


def documents(data: bytes, content_type: str) -> tuple[list[Any], bool] | None:
    """Return the JSON documents of a body and whether they were streamed; None where it holds no JSON.

    The body decides where it is not what its type says. Of a stream that was cut, the document it was cut in is left
    out. A JSON array is one document, also where Google streams it: its dialect knows. One that was cut is a stream.
    """
    media = content_type.partition(";")[0].strip().lower()
    if media == event_stream.MEDIA:
        return event_stream.frames(data), True
    if data.startswith(_BOM):
        data = data[3:]
    if media == "text/event-stream":
        found = _events(data)
        if found or not data.strip():
            return found, True
    elif media in _LINES:
        return _lines(data), True
    try:
        return [loads(data)], False
    except ValueError:
        pass
    start = data.lstrip()
    if start.startswith(_SSE_STARTS):
        return (found, True) if (found := _events(start)) else None
    if start.startswith(b"["):
        return (found, True) if (found := _elements(start)) else None
    if start.startswith(b"{") and b"\n" in start:
        return (found, True) if (found := _lines(start)) else None
    return None


def _events(data: bytes) -> list[Any]:
    """Return the documents of server-sent events; comments, names, `[DONE]` and what is no JSON are left out."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found: list[bytes] = []
    held: list[bytes] = []
    for line in data.split(b"\n"):
        if line[:5] == b"data:":
            held.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and held:
            found.append(held[0] if len(held) == 1 else b"\n".join(held))
            held = []
    if held:  # not ended by an empty line: cut, unless it is whole
        found.append(b"\n".join(held))
    return _all(found)


def _lines(data: bytes) -> list[Any]:
    return _all(data.split(b"\n"))


def _all(parts: list[bytes]) -> list[Any]:
    """Parse documents: all at once, which is faster, or where one is no JSON each by itself."""
    parts = [part for part in parts if part and part != b"[DONE]"]
    if all(part[0] == 123 and part[-1] == 125 for part in parts):  # braces: else two halves could make a whole
        try:
            together = loads(b"[%b]" % b",".join(parts))
            if len(together) == len(parts):
                return list(together)
        except ValueError:
            pass  # then one by one
    found: list[Any] = []
    for part in parts:
        try:
            found.append(loads(part))
        except ValueError:
            continue  # cut in the middle, or no JSON: the bytes themselves are recorded beside this
    return found


def _elements(data: bytes) -> list[Any]:
    """Return the elements of an array that was cut, without the one it was cut in."""
    text = data.decode("utf-8", "replace")
    decode = json.JSONDecoder().raw_decode
    found: list[Any] = []
    at = 1
    while at < len(text):
        if text[at] in ", \t\r\n":
            at += 1
            continue
        try:
            value, at = decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(value)
    return found
