"""Inflate bodies piece by piece, and count what comes out: a small body may unfold into any amount."""

from __future__ import annotations

import zlib
from typing import Protocol

from playhead import _limits
from playhead.errors import BadBody, TooLarge, UnknownMedia

_STEP_BYTES = 64 * 1024


class Inflater(Protocol):
    """Take the pieces of a body as they come."""

    def take(self, piece: bytes) -> None:
        """Take the next piece."""
        ...

    def whole(self) -> bytes:
        """Return all of it, once everything has come."""
        ...

    @property
    def held_bytes(self) -> int:
        """Return how much is in memory."""
        ...


class Plain:
    """Take a body that is not compressed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._out = bytearray()

    def take(self, piece: bytes) -> None:
        """Take the next piece."""
        if len(self._out) + len(piece) > self._most:
            raise too_large(self._most)
        self._out += piece

    def whole(self) -> bytes:
        """Return all of it."""
        return bytes(self._out)

    @property
    def held_bytes(self) -> int:
        """Return how much is in memory."""
        return len(self._out)


class Gzip(Plain):
    """Inflate gzip, every member of it; `deflate` is one zlib stream."""

    def __init__(self, most: int, *, wbits: int = 31) -> None:
        super().__init__(most)
        self._wbits = wbits
        self._stream = zlib.decompressobj(wbits)
        self._begun = False

    def take(self, piece: bytes) -> None:
        """Inflate the next piece, no further than to the limit."""
        while piece:
            if self._stream.eof:  # another member follows; zeros may fill up the end
                piece = piece.lstrip(b"\0") if self._wbits == 31 else piece
                if not piece:
                    return
                self._stream = zlib.decompressobj(self._wbits)
            self._begun = True
            try:
                self._out += self._stream.decompress(piece, _STEP_BYTES)
            except zlib.error as problem:
                raise BadBody(f"the body is not what its Content-Encoding says: {problem}") from None
            if len(self._out) > self._most:
                raise too_large(self._most)
            piece = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail

    def whole(self) -> bytes:
        """Return all of it."""
        if self._begun and not self._stream.eof:
            raise _cut_off()
        return bytes(self._out)


class Zstd(Plain):
    """Inflate zstd, every frame of it."""

    def __init__(self, most: int) -> None:
        import zstandard

        super().__init__(most)
        self._error = zstandard.ZstdError
        self._new = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        self._pieces = bytearray()

    def take(self, piece: bytes) -> None:
        """Keep the next piece; what it unfolds into is counted at the end, step by step."""
        if len(self._pieces) + len(piece) > self._most:
            raise too_large(self._most)
        self._pieces += piece

    @property
    def held_bytes(self) -> int:
        """Return how much is in memory."""
        return len(self._pieces)

    def whole(self) -> bytes:
        """Inflate all of it, no further than to the limit."""
        if not self._pieces:
            return b""
        _check_frames(self._pieces)  # the reader says nothing of an end that is missing
        try:
            with self._new.stream_reader(bytes(self._pieces), read_across_frames=True) as reader:
                while piece := reader.read(_STEP_BYTES):
                    self._out += piece
                    if len(self._out) > self._most:
                        raise too_large(self._most)
        except self._error as problem:
            raise BadBody(f"the body is not what its Content-Encoding says: {problem}") from None
        return bytes(self._out)


def _check_frames(data: bytearray) -> None:
    """Refuse what is not a row of whole frames of zstd (RFC 8878)."""
    import zstandard

    at, end = 0, len(data)
    while at < end:
        if data[at + 1 : at + 4] == b"\x2a\x4d\x18" and data[at] >> 4 == 5:  # a frame that is passed over
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
        else:
            try:
                head = bytes(data[at : at + 18])
                at += zstandard.frame_header_size(head)
                checked = zstandard.get_frame_parameters(head).has_checksum
            except (zstandard.ZstdError, ValueError) as problem:
                raise BadBody(f"the body is not what its Content-Encoding says: {problem}") from None
            last = False
            while not last and at < end:
                block = int.from_bytes(data[at : at + 3], "little")
                last = bool(block & 1)
                at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
            at += 4 if checked else 0
            if not last:
                raise _cut_off()
    if at > end:
        raise _cut_off()


def _cut_off() -> BadBody:
    return BadBody("the compressed body is cut off", hint="Send it again, whole.")


def inflater(encoding: str, most: int = _limits.BODY_INFLATED_BYTES_MAX) -> Inflater:
    """Return what inflates a body of this Content-Encoding."""
    match encoding.strip().lower():
        case "" | "identity":
            return Plain(most)
        case "gzip" | "x-gzip":
            return Gzip(most)
        case "deflate":
            return Gzip(most, wbits=15)
        case "zstd":
            return Zstd(most)
    raise UnknownMedia(
        f"a body cannot be compressed with {encoding[:40]!r} here", hint="Content-Encoding is gzip, zstd or deflate."
    )


def too_large(most: int) -> TooLarge:
    """Say that a body is too large, inflated."""
    return TooLarge(
        f"the body has more than {most:,} bytes, inflated",
        hint="Send smaller batches: OTEL_BSP_MAX_EXPORT_BATCH_SIZE sets how many spans are in one.",
    )
