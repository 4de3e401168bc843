"""Find a secret that a stream gives out word by word: a part in one event, the rest in the next.

A model that repeats a key sends it in deltas, and no row of bytes of the stream holds it whole. So the texts that
belong together are joined, redacted as one, and put back where they were.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from playhead.capture.redact import Redactor

# Under any name the next part of something may come. The numbers beside it say of what.
_DELTA = re.compile(rb'"([^"\\\x00-\x1f]{1,80})" ?: ?("(?:[^"\\\x00-\x1f]|\\.)*+")')
_NUMBER = re.compile(rb'"(?:index|output_index|content_index|summary_index|item_id)" ?: ?([0-9]+|"[^"\\]*")')


_Row = list["re.Match[bytes]"]


def without_split_secrets(redactor: Redactor, pieces: list[bytes], counts: dict[str, int]) -> list[bytes]:
    """Return the pieces of a stream of JSON events without secrets that are spread over several of them.

    As many pieces as there were; the same object if there are none. A placeholder stands where the secret began.
    """
    whole = b"".join(pieces)
    changes: list[tuple[int, int, bytes]] = []
    for row in _rows(whole):
        parts = [_said(match[2]) for match in row]
        for match, part, left in zip(row, parts, redactor.redact_pieces(parts, counts), strict=True):
            if left != part:
                said = json.dumps(left.decode("utf-8", "surrogatepass"), ensure_ascii=False)
                changes.append((match.start(2), match.end(2), said.encode("utf-8", "surrogatepass")))
    return _changed(pieces, whole, sorted(changes)) if changes else pieces


def _said(text: bytes) -> bytes:
    """Return what a JSON string says; nothing where it is none."""
    if b"\\" not in text and text.isascii():
        return text[1:-1]
    try:
        return str(json.loads(text)).encode("utf-8", "surrogatepass")
    except ValueError:
        return b""


def _rows(whole: bytes) -> list[_Row]:
    """Return the texts of the stream that belong together, those of each row in order."""
    rows: dict[tuple[bytes, ...], _Row] = {}
    for line in re.finditer(rb"[^\r\n]+", whole):
        found = list(_DELTA.finditer(whole, line.start(), line.end()))
        if found:
            numbers = _NUMBER.findall(whole, line.start(), line.end())
            for match in found:
                rows.setdefault((match[1], *numbers), []).append(match)
    # What says the same each time is the name of something, and no part of it.
    return [row for row in rows.values() if any(match[2] != row[0][2] for match in row)]


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
