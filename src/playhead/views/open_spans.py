"""Find what was open at any place of a run, in memory that grows with the number of spans and not with what is open.

Each span has the place where it was closed. Over these stands a pyramid of maxima: a part of the run in which
everything was closed before is passed over by one look.
"""

from __future__ import annotations

_WIDE = 16  # items under each item of the next level
_OPEN = 2**63  # where a span ends that is not closed: after every place


class OpenSpans:
    """Take where spans are opened and closed, in order of places; `at` says which were open."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}  # spans now: which one, by the order of opening
        self._opened: list[int] = []  # of each span the place
        self._closed: list[list[int]] = [[]]  # of each span the place, and above it the largest of every few

    def turn(self, span: str, place: int, *, opens: bool) -> None:
        """Open or close a span; what is opened twice, or closed without having been opened, says nothing."""
        if opens == (span in self._open):
            return
        if opens:
            self._open[span] = len(self._opened)
            self._opened.append(place)
            self._put(len(self._opened) - 1, _OPEN)
        else:
            self._put(self._open.pop(span), place)

    def at(self, place: int) -> list[int]:
        """Return the places where that was opened which was open after `place`, in order."""
        found: list[int] = []
        waiting = [(len(self._closed) - 1, 0)]
        while waiting:
            level, number = waiting.pop()
            items = self._closed[level]
            if number >= len(items) or items[number] <= place or self._opened[number * _WIDE**level] > place:
                continue
            if level:
                first = number * _WIDE
                waiting += [(level - 1, below) for below in range(first + _WIDE - 1, first - 1, -1)]
            else:
                found.append(self._opened[number])
        return found

    def _put(self, number: int, closed: int) -> None:
        """Say where a span ends, and what that changes above."""
        for level, items in enumerate(self._closed):
            if number == len(items):
                items.append(closed)
            elif items[number] == closed:
                return
            else:
                items[number] = closed
            number //= _WIDE
            closed = max(items[number * _WIDE : (number + 1) * _WIDE])
            if level == len(self._closed) - 1 and len(items) > 1:
                self._closed.append([])  # which this loop goes on to
