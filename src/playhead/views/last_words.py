"""Say what a program wrote last before it failed: of a traceback what was raised, else its last line."""

from __future__ import annotations

TRACEBACK = "Traceback (most recent call last):"
_KEPT_MAX = 16_384  # characters, of what came in several pieces


class LastWords:
    """Take what a program writes, piece by piece."""

    def __init__(self) -> None:
        self._tail = ""

    def take(self, written: str) -> None:
        """Look at the next piece."""
        self._tail = (self._tail + written)[-_KEPT_MAX:]

    @property
    def line(self) -> str:
        """Return the line that says most of how the program ended; it may be empty."""
        return self.raised or self._tail.rstrip().rpartition("\n")[2].strip()

    @property
    def raised(self) -> str | None:
        """Return what the last traceback says was raised; None where there is none, or only its beginning."""
        return raised(self._tail)


def raised(written: str) -> str | None:
    """Return what the last traceback in a text says was raised; None where there is none, or only its beginning."""
    _, head, rest = written.rpartition(f"{TRACEBACK}\n")
    whole = rest.split("\n")[:-1] if head else []
    return next((line.rstrip() for line in whole if line and not line[0].isspace()), None)
