"""Find in what a program wrote the part that another process wrote there, by its place."""

from __future__ import annotations

from playhead.event.envelope import kind_of, seq_of
from playhead.store.reader import RunReader
from playhead.views.points import written

_HIDDEN = b"[redacted:"  # how a place begins where a secret was: what follows is not where it was written


def between(whole: bytes, start: int, end: int) -> bytes | None:
    """Return the part of an output from one byte to another; None where it is not as it was written."""
    hidden = whole.find(_HIDDEN)
    return None if len(whole) < end or 0 <= hidden < end else whole[start:end]


class Outputs:
    """What a recorded program wrote, read when it is first asked for."""

    def __init__(self, reader: RunReader, last: int | None) -> None:
        self._reader = reader
        self._last = last  # the last event that counts; None for all
        self._whole: dict[str, bytes] | None = None

    def between(self, stream: str, start: int, end: int) -> bytes:
        """Return a part of an output; nothing where it is not known."""
        if self._whole is None:
            self._whole = self._read()
        return between(self._whole.get(stream, b""), start, end) or b""

    def _read(self) -> dict[str, bytes]:
        pieces: dict[str, list[bytes]] = {}
        for line in self._reader.lines():
            seq = seq_of(line) or 0
            if self._last is not None and seq > self._last:
                break
            if kind_of(line) == "output.written":
                data = self._reader.data(seq)
                pieces.setdefault(str(data.get("stream")), []).append(written(data))
        return {stream: b"".join(parts) for stream, parts in pieces.items()}
