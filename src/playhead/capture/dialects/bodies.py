"""Turn the decoded body of an answer into JSON documents: one, or those of a stream in order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, overload

from playhead.capture.dialects import event_stream
from playhead.capture.dialects.base import loads
from playhead.capture.dialects.continued import put_together

_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
_SSE_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")
_BOM = b"\xef\xbb\xbf"
_BETWEEN = b"\n\ndata: "  # two events that are nothing but data
_BATCH = 32
_NO_JSON = object()


class Parsed(Sequence[Any]):
    """The documents of a long stream, parsed when they are looked at: together they take ten times its size.

    What is no JSON among them is left out by those who go through them, and reads as None by its number.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        found = _document(self._parts[index])
        return None if found is _NO_JSON else found

    def continued(self) -> Sequence[Any]:
        """Return documents that say the same, fewer of them where neighbours only go on with one text."""
        found = _batch(put_together(self._parts))
        return self if _NO_JSON in found else found

    def __iter__(self) -> Iterator[Any]:
        parts = self._parts
        return itertools.chain.from_iterable(
            _eager(parts[start : start + _BATCH]) for start in range(0, len(parts), _BATCH)
        )


def documents(data: bytes, content_type: str) -> tuple[Sequence[Any], bool] | None:
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


def _events(data: bytes) -> Sequence[Any]:
    """Return the documents of server-sent events; comments, names, `[DONE]` and what is no JSON are left out."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if data.startswith(b"data: ") and data.endswith(b"\n\n"):
        parts = data[6:-2].split(_BETWEEN)
        if data.count(b"\n") == 2 * len(parts):  # all of it is data, and each of one line
            return _all(parts)
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


def _lines(data: bytes) -> Sequence[Any]:
    return _all(data.split(b"\n"))


def _all(parts: list[bytes]) -> Sequence[Any]:
    """Return the documents that the parts are; of a long stream only the ends are looked at now."""
    parts = [part for part in parts if part and part != b"[DONE]"]
    if len(parts) > _BATCH:
        first, last = _batch([parts[0], parts[-1]])
        if first is not _NO_JSON:
            return Parsed(parts[:-1] if last is _NO_JSON else parts)  # the last one was cut
    return _eager(parts)


def _eager(parts: list[bytes]) -> list[Any]:
    found = _batch(parts)
    return [document for document in found if document is not _NO_JSON] if _NO_JSON in found else found


def _batch(parts: list[bytes]) -> list[Any]:
    """Parse documents: all at once, which is faster, or where one is no JSON each by itself."""
    if all(part[0] == 123 and part[-1] == 125 for part in parts):  # braces: else two halves could make a whole
        try:
            together: list[Any] = loads(b"[%b]" % b",".join(parts))
            if len(together) == len(parts):
                return together
        except ValueError:
            pass  # then one by one
    return [_document(part) for part in parts]


def _document(part: bytes) -> Any:
    try:
        return loads(part)
    except ValueError:
        return _NO_JSON  # cut in the middle, or no JSON: the bytes themselves are recorded beside this


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
