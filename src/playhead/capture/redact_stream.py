"""Find a secret that a stream gives out word by word: a part in one event, the rest in the next.

A model that repeats a key sends it in deltas, and no row of bytes of the stream holds it whole. So the texts that
belong together are joined, redacted as one, and put back where they were.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from playhead.capture.redact import Redactor

# Under these names providers send the next part of something. The numbers beside it say of what.
_PARTS = (
    rb"content|text|arguments|delta|partial_json|thinking|reasoning|reasoning_content|refusal|transcript|response|code"
    rb"|input|output|value|signature"
)
_DELTA = re.compile(rb'"(' + _PARTS + rb')" ?: ?("(?:[^"\\\x00-\x1f]|\\.)*+")')
_NUMBER = re.compile(rb'"(?:index|output_index|content_index|summary_index|item_id)" ?: ?([0-9]+|"[^"\\]*")')


class _Delta(NamedTuple):
    start: int  # of the JSON string, its quotes included, in the whole stream
    end: int
    text: str


def without_split_secrets(redactor: Redactor, pieces: list[bytes], counts: dict[str, int]) -> list[bytes]:
    """Return the pieces of a stream of JSON events without secrets that are spread over several of them.

    As many pieces as there were; the same object if there are none. A placeholder stands where the secret began.
    """
    whole = b"".join(pieces)
    changes: list[tuple[int, int, bytes]] = []
    for deltas in _rows(whole):
        parts = [delta.text.encode("utf-8", "surrogatepass") for delta in deltas]
        clean = redactor.redact_pieces(parts, counts)
        for delta, part, left in zip(deltas, parts, clean, strict=True):
            if left != part:
                said = json.dumps(left.decode("utf-8", "surrogatepass"), ensure_ascii=False)
                changes.append((delta.start, delta.end, said.encode("utf-8", "surrogatepass")))
    return _changed(pieces, whole, sorted(changes)) if changes else pieces


def _rows(whole: bytes) -> list[list[_Delta]]:
    """Return the texts of the stream that belong together, those of each row in order."""
    rows: dict[tuple[bytes, ...], list[_Delta]] = {}
    for line in re.finditer(rb"[^\r\n]+", whole):
        found = list(_DELTA.finditer(whole, line.start(), line.end()))
        if not found:
            continue
        numbers = [match[1] for match in _NUMBER.finditer(whole, line.start(), line.end())]
        for match in found:
            try:
                text = json.loads(match[2])
            except ValueError:
                continue
            rows.setdefault((match[1], *numbers), []).append(_Delta(match.start(2), match.end(2), text))
    return [row for row in rows.values() if len(row) > 1]


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
