"""Keep the RFC 6962 root of a run's lines, leaf by leaf.

The root of run.finished lets one line be proven to belong to the run without showing the others. It proves nothing
about when the lines were written.
"""

from __future__ import annotations

from hashlib import sha256

EMPTY_ROOT = sha256(b"").hexdigest()


class Tree:
    """Grow by one leaf at a time, holding one hash per complete subtree: at most 64 of them."""

    __slots__ = ("_peaks", "size")

    def __init__(self) -> None:
        self._peaks: list[bytes] = []
        self.size = 0

    def add(self, line: bytes | memoryview) -> None:
        """Add one line, without its newline."""
        node = sha256(b"\x00" + line).digest()
        size = self.size
        self.size = size + 1
        while size & 1:  # each trailing one bit is a complete subtree that now gets its right half
            node = sha256(b"\x01" + self._peaks.pop() + node).digest()
            size >>= 1
        self._peaks.append(node)

    def root(self) -> str:
        """Return the root over all lines added so far, in hex."""
        if not self._peaks:
            return EMPTY_ROOT
        node = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            node = sha256(b"\x01" + peak + node).digest()
        return node.hex()
