"""Decide what is kept of what passed through a pipe: clean always, and long output without detours."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.capture.headers import Spliced
from playhead.capture.pieces import Pieces
from playhead.capture.redact import Redactor
from playhead.event import wire
from playhead.event.references import Held

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

_COMPRESSED = (b"\x1f\x8b", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")  # how data begins in which a secret may be


class Aside(Spliced):
    """Members that are added to the data of an event as they are: they name blobs that are kept already."""

    def join(self, encoded: bytes, held: Held) -> bytes:
        """Return the data of an event with these members at its end."""
        return b"%b,%b}" % (encoded[:-1], self.before)

    def wrote(self, seq: int, held: Held) -> None:
        """Remember nothing: they hold nothing that others could refer to."""


def aside(members: list[bytes]) -> Aside | None:
    """Return what splices members into an event; None where there are none."""
    return Aside(b",".join(members), [], b"", "", False) if members else None


def clean(recording: Recording, pieces: list[bytes], counts: dict[str, int]) -> tuple[bytes, list[bytes]]:
    """Return a stream without secrets, as a whole and in its pieces, also where a secret lies in several of them."""
    redactor = recording.redactor
    raw = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if raw[:2] in _COMPRESSED:
        whole = redactor.redact_bytes(raw, counts)
        return (raw, pieces) if whole is raw else (whole, [whole])
    if len(raw) <= _limits.INLINE_BYTES_MAX:
        apart = redactor.redact_pieces(pieces, counts)
    else:
        apart = _clean_parts(redactor, raw, pieces, counts)
    return (raw, pieces) if apart is pieces else (b"".join(apart), apart)


def _clean_parts(redactor: Redactor, raw: bytes, pieces: list[bytes], counts: dict[str, int]) -> list[bytes]:
    """Look at long output part by part, as it is cut where lines end: most parts hold nothing of interest."""
    ends = list(itertools.accumulate(map(len, pieces)))
    changed: dict[int, list[tuple[int, int, bytes]]] = {}  # by piece: from, to, what stands there instead
    for start, end in _parts(raw):
        if not redactor.suspicious_text(raw[start:end], json=False):
            continue
        first, last = bisect.bisect_right(ends, start), bisect.bisect_left(ends, end)
        bounds = [start, *ends[first:last], end]
        inside = [raw[one:two] for one, two in itertools.pairwise(bounds)]
        for at, (was, now) in enumerate(zip(inside, redactor.redact_pieces(inside, counts), strict=True)):
            if was != now:
                changed.setdefault(first + at, []).append((bounds[at], bounds[at + 1], now))
    if not changed:
        return pieces
    out = list(pieces)
    for number, edits in changed.items():
        at, parts = ends[number] - len(pieces[number]), []
        for start, end, now in edits:
            parts += [raw[at:start], now]
            at = end
        out[number] = b"".join([*parts, raw[at : ends[number]]])
    return out


def _parts(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield from where to where the parts of long output go: whole lines, and a private key in one part."""
    cutter, start = Pieces(), 0
    for at in range(0, len(raw), _limits.OUTPUT_READ_BYTES):
        ready = cutter.take(raw[at : at + _limits.OUTPUT_READ_BYTES])
        if at + _limits.OUTPUT_READ_BYTES >= len(raw):
            ready += cutter.rest()
        for part in ready:
            end = start + (len(part) if isinstance(part, bytes) or part.isascii() else len(part.encode()))
            yield start, end
            start = end


def told(pieces: list[bytes], times: list[int], start: int, end: int | None) -> dict[str, Any]:
    """Say how large the pieces are and when they passed, and when the end was read, if it was.

    One that stands for all was there when the last one was.
    """
    at = [max(0, time - start) // 1000 for time in times]
    out: dict[str, Any] = {"sizes": [len(piece) for piece in pieces], "at_us": at[-len(pieces) :]}
    return out if end is None else {**out, "end_us": max(0, end - start) // 1000}


def content(recording: Recording, name: str, raw: bytes) -> tuple[Any, bytes | None]:
    """Return what a stream said, as text or bytes; or where it is long, the member of an event that names its blob."""
    if len(raw) <= _limits.INLINE_BYTES_MAX:
        return wire.as_text(raw)[0], None
    form = wire.TEXT if raw.isascii() else wire.as_text(raw)[1]
    digest = recording.store.put_blob(raw)
    return None, b'"%b":{"$blob":"%b","len":%d,"as":"%b"}' % (name.encode(), digest.encode(), len(raw), form.encode())
