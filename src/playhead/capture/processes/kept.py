"""Decide what is kept of what passed through a pipe: clean always, and long output without detours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.capture.headers import Spliced
from playhead.event import wire
from playhead.event.references import Held

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


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
    found: dict[str, int] = {}
    whole = redactor.redact_bytes(raw, found)
    if whole is raw:
        return raw, pieces
    if len(pieces) > 1 and (apart := redactor.redact_pieces(pieces, counts)) is not pieces:
        return b"".join(apart), apart
    for rule, count in found.items():  # in one piece, or inside of something compressed
        counts[rule] = counts.get(rule, 0) + count
    return whole, [whole]


def told(pieces: list[bytes], times: list[int], start: int) -> dict[str, list[int]]:
    """Say how large the pieces are and when they passed; one that stands for all was there when the last one was."""
    at = [max(0, time - start) // 1000 for time in times]
    return {"sizes": [len(piece) for piece in pieces], "at_us": at[-len(pieces) :]}


def content(recording: Recording, name: str, raw: bytes) -> tuple[Any, bytes | None]:
    """Return what a stream said, as text or bytes; or where it is long, the member of an event that names its blob."""
    if len(raw) <= _limits.INLINE_BYTES_MAX:
        return wire.as_text(raw)[0], None
    form = wire.TEXT if raw.isascii() else wire.as_text(raw)[1]
    digest = recording.store.put_blob(raw)
    return None, b'"%b":{"$blob":"%b","len":%d,"as":"%b"}' % (name.encode(), digest.encode(), len(raw), form.encode())
