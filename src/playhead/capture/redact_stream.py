"""Find a secret that a stream gives out word by word: a part in one event, the rest in the next.

A model that repeats a key sends it in deltas, and no row of bytes of the stream holds it whole. So the texts that
belong together are joined, redacted as one, and put back where they were.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from playhead.capture.redact import Redactor
from playhead.capture.redact_named import NAMED
from playhead.capture.redact_rules import BEARER, URL_PASSWORD

# Under these names providers send the next part of something; others may do so under any name.
_PARTS = frozenset({
    b"content", b"text", b"arguments", b"delta", b"partial_json", b"thinking", b"reasoning", b"reasoning_content",
    b"refusal", b"transcript", b"response", b"code", b"input", b"output", b"value", b"signature", b"stringValue",
    b"token",
})  # fmt: skip
# Whole values of neighbours may look like these when they are put together: `mailto:` and what comes after it.
_BY_CONTEXT = {rule.name for rule in NAMED} | {BEARER.name, URL_PASSWORD.name, "named-field"}
_STRING = rb'("(?:[^"\\\x00-\x1f]|\\.)*+")'
_DELTA = re.compile(rb'"([^"\\\x00-\x1f]{1,80})" {0,8}: {0,8}' + _STRING)
_BARE = re.compile(rb"()" + _STRING + rb'|".*+', re.DOTALL)  # one without an end takes the rest with it
_NUMBER = re.compile(rb'"(?:index|output_index|content_index|summary_index|item_id)" {0,8}: {0,8}([0-9]+|"[^"\\]*")')
_LINE = re.compile(rb"(data:)?[ \t]*([^\r\n]+)")


class _Part(NamedTuple):
    """A text in a stream, with its quotes where it has them."""

    start: int
    end: int
    written: bytes
    quoted: bool

    @property
    def said(self) -> bytes:
        if not self.quoted or (b"\\" not in self.written and self.written.isascii()):
            return self.written[1:-1] if self.quoted else self.written
        text = self.written.decode("utf-8", "replace")
        try:
            return str(json.loads(text)).encode("utf-8", "surrogatepass")
        except ValueError:
            return b""


def without_split_secrets(redactor: Redactor, pieces: list[bytes], counts: dict[str, int]) -> list[bytes]:
    """Return the pieces of a stream of events without secrets that are spread over several of them.

    As many pieces as there were; the same object if there are none. A placeholder stands where the secret began.
    """
    whole = b"".join(pieces)
    changes: list[tuple[int, int, bytes]] = []
    for name, row in _rows(whole):
        parts, found = [part.said for part in row], dict[str, int]()
        clean = redactor.redact_pieces(parts, found)
        if name not in _PARTS and found.keys() <= _BY_CONTEXT:
            continue
        for rule, count in found.items():
            counts[rule] = counts.get(rule, 0) + count
        for part, before, after in zip(row, parts, clean, strict=True):
            if after != before:
                changes.append((part.start, part.end, _quoted(after) if part.quoted else after))
    return _changed(pieces, whole, sorted(changes)) if changes else pieces


def _quoted(text: bytes) -> bytes:
    try:
        said = text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        said = text.decode("utf-8", "replace")
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _rows(whole: bytes) -> Iterator[tuple[bytes, list[_Part]]]:
    """Yield the texts of the stream that belong together, those of each row in order, with the name they stand under.

    These have the same name, the same place among those of their name in an event, and the same numbers beside them;
    or other numbers each time, where a server counts its events.
    """
    rows: dict[tuple[bytes, int], dict[tuple[bytes, ...], list[_Part]]] = {}
    for line in _LINE.finditer(whole):
        numbers = tuple(_NUMBER.findall(whole, line.start(), line.end()))
        places: dict[bytes, int] = {}
        for name, part in _parts_of(whole, line):
            place = places[name] = places.get(name, -1) + 1
            rows.setdefault((name, place), {}).setdefault(numbers, []).append(part)
    for (name, _), numbered in rows.items():
        groups = list(numbered.values())
        if all(len(group) == 1 for group in groups):
            groups = [list(itertools.chain.from_iterable(groups))]
        # What says the same each time is the name of something, and no part of it.
        yield from ((name, row) for row in groups if any(part.written != row[0].written for part in row))


def _parts_of(whole: bytes, line: re.Match[bytes]) -> Iterator[tuple[bytes, _Part]]:
    start, end = line.span(2)
    first = whole[start : start + 1]
    if first in (b'"', b"[", b"{"):
        for match in (_DELTA if first == b"{" else _BARE).finditer(whole, start, end):
            if match[2] is not None:
                yield match[1], _Part(match.start(2), match.end(2), match[2], quoted=True)
    elif line[1]:
        yield b"", _Part(start, end, whole[start:end], quoted=False)  # of plain text


def _changed(pieces: Sequence[bytes], whole: bytes, changes: list[tuple[int, int, bytes]]) -> list[bytes]:
    """Put changes into a stream and cut it again where it was cut; a cut inside a change comes after it."""
    out: list[bytes] = []
    place = begun = done = 0  # in the stream: the end of the piece, what was written so far, changes made
    for piece in pieces:
        place += len(piece)
        part = b""
        while done < len(changes) and changes[done][0] < place:
            start, end, by = changes[done]
            part += whole[begun:start] + by
            begun, done = end, done + 1
        if begun < place:
            part += whole[begun:place]
            begun = place
        out.append(part)
    return out
