"""Cut what a program writes into pieces to record: where its lines end, and never inside a character or a secret."""

from __future__ import annotations

import re
from collections.abc import Callable

from playhead import _limits

_WORD_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.~%-"
_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


class Pieces:
    """Collect the bytes of one stream and give out what is ready.

    A secret that is cut in two would pass the redaction, so pieces end where lines end. Only a line that is too long or
    whose end does not come is cut inside, between words, and a private key of many lines is kept together. A word that
    is longer than a piece is cut all the same. Joined, the pieces are exactly what was written.
    """

    def __init__(self) -> None:
        self._held = b""

    def __bool__(self) -> bool:
        """Say whether something is held back."""
        return bool(self._held)

    def take(self, data: bytes) -> list[str | bytes]:
        """Add what was read and return the pieces that are ready."""
        self._held += data
        return self._out(self._line_end)

    def overdue(self) -> list[str | bytes]:
        """Return the beginning of a line whose end does not come, up to its last blank: a word may be half a secret."""
        return self._out(self._blank_end)

    def rest(self) -> list[str | bytes]:
        """Return everything, at the end of the stream."""
        out = self._out(self._character_end)
        last, self._held = self._held, b""
        return [*out, _decoded(last)] if last else out

    def _out(self, end: Callable[[], int]) -> list[str | bytes]:
        out: list[str | bytes] = []
        while self._held and (cut := self._around_key(end())) > 0:
            out.append(_decoded(self._held[:cut]))
            self._held = self._held[cut:]
        return out

    def _line_end(self) -> int:
        """Return where the last whole line ends that fits a piece; 0 where there is none yet."""
        held, most = self._held, _limits.OUTPUT_PIECE_BYTES_MAX
        found = max(held.rfind(b"\n", 0, most), held.rfind(b"\r", 0, most)) + 1
        if found or len(held) < most:
            return found
        return self._blank_end() or self._word_end() or self._character_end()

    def _blank_end(self) -> int:
        """Return where the last blank ends that fits a piece; 0 where there is none."""
        held, most = self._held, _limits.OUTPUT_PIECE_BYTES_MAX
        return max(held.rfind(blank, 0, most) for blank in (b" ", b"\t", b"\n", b"\r")) + 1

    def _word_end(self) -> int:
        """Return where the last word begins, which may be half a token; 0 where all is one word."""
        return len(self._held[: _limits.OUTPUT_PIECE_BYTES_MAX].rstrip(_WORD_BYTES))

    def _character_end(self) -> int:
        window = self._held[: _limits.OUTPUT_PIECE_BYTES_MAX]
        return len(window) - _incomplete(window)

    def _around_key(self, cut: int) -> int:
        """Move a cut that would fall inside a private key behind its end, or before its beginning."""
        held = self._held
        if b"PRIVATE KEY" not in held:
            return cut
        for begin in _BEGIN.finditer(held):
            if begin.start() >= cut:
                break
            end = _END.search(held, begin.end())
            if end is None:
                return begin.start() if len(held) < _limits.OUTPUT_KEY_BYTES_MAX else cut
            cut = max(cut, end.end())
        return cut


def _incomplete(data: bytes) -> int:
    """Return how many bytes at the end begin a UTF-8 character that is not whole."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < length else 0
        if byte < 0x80:
            return 0
    return 0


def _decoded(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
