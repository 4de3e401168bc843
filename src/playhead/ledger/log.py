"""Name what a ledger needs of the place it writes to: bytes that only grow, behind one lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from playhead import _limits


class Log(Protocol):
    """Append-only bytes. `store/file_log.py` is a file, `store/memory.py` a buffer."""

    def acquire(self) -> int:
        """Keep every other writer out, here and in other processes, or raise WriteFailed; return the size in bytes."""

    def release(self) -> None:
        """Let the others in again; where nothing is held, nothing happens."""

    def end(self) -> int:
        """Return the number of bytes."""

    def read(self, start: int, count: int) -> bytes:
        """Return up to `count` bytes from `start`."""

    def append(self, data: bytes) -> None:
        """Write all of it with one call, or raise WriteFailed and leave what was there, as far as that is possible."""

    def truncate(self, size: int) -> None:
        """Drop what stands after `size`; used only for a line that was torn."""

    def sync(self) -> None:
        """Return when all bytes are on the disk."""

    def reopen(self) -> None:
        """Take a descriptor of one's own, in a forked child."""

    def close(self) -> None:
        """Give everything back."""


def chunks(log: Log, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Read a log in pieces of bounded size."""
    stop = log.end() if end is None else end
    while start < stop:
        piece = log.read(start, min(_limits.READ_CHUNK_BYTES, stop - start))
        if not piece:
            return
        start += len(piece)
        yield piece


def lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Cut pieces into lines without their newline; bytes after the last newline come as one more line."""
    rest = b""
    for piece in pieces:
        parts = (rest + piece).split(b"\n")
        rest = parts.pop()
        yield from parts
    if rest:
        yield rest
