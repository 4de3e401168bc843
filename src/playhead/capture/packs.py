"""Keep what the lanes of a run read until it is sealed. `_hooks.c` has the same in C, used where it was built."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from playhead.event.reads import BYTES, INT, LETTERS, NS, VALUES, Group

_TAKE_S = 0.5
TEXT_MAX = 48 * 1024  # bytes of a pack, about, from which on it is sealed


class _Growing:
    """The reads of one source by one module."""

    __slots__ = ("by", "content", "count", "form", "last", "of", "place", "sizes")

    def __init__(self, of: str, by: str, form: int, place: int) -> None:
        self.of, self.by, self.form, self.place = of, by, form, place
        self.content: list[Any] = []
        self.sizes: list[int] = []
        self.count = self.last = 0

    def done(self) -> Group:
        content: Any = self.content
        sizes: Any = None
        if self.form == BYTES:
            content = b"".join(content)
            same = self.sizes[0] if len(set(self.sizes)) == 1 and self.sizes[0] else None
            sizes = ",".join(map(str, self.sizes)).encode() if same is None else same
        elif self.form != VALUES:
            content = ",".join(map(str, content)).encode()
        return self.of, self.by, self.form, self.count, content, sizes


class Pack:
    """What one lane read since its last event."""

    __slots__ = ("_bytes", "_groups", "_last", "_lock", "_order", "count", "lane", "span", "tap")

    def __init__(self, tap: Tap, lane: str) -> None:
        self.tap, self.lane = tap, lane
        self._lock = threading.RLock()
        self._begin()

    def _begin(self) -> None:
        self.count = self._bytes = 0
        self.span: str | None = None
        self._groups: dict[tuple[str, str, int], _Growing] = {}
        self._last: _Growing | None = None  # mostly it is the same again
        self._order: list[list[int]] = []  # group, and how often in a row

    def add(self, of: str, by: str, value: Any, bytes: int = 64, span: str | None = None) -> None:
        """Keep a value of a source that a module read."""
        self.keep(of, by, VALUES, value, bytes, span)

    def add_number(self, of: str, by: str, number: int, span: str | None = None, *, clock: bool = True) -> None:
        """Keep a whole number: the nanoseconds of a clock, or any other."""
        self.keep(of, by, NS if clock else INT, number, 8, span)

    def add_bytes(self, of: str, by: str, content: bytes, span: str | None = None) -> None:
        """Keep bytes as they are."""
        self.keep(of, by, BYTES, content, len(content) * 4 // 3 + 4, span)

    def keep(self, of: str, by: str, form: int, value: Any, size: int, span: str | None) -> None:
        """Keep a value in one of the forms of event.reads; `size` is what it takes in the timeline, about."""
        tap = self.tap
        if not tap.open:
            return
        if (tap.clocks_remaining if form == NS else tap.remaining) <= 0:  # a loop may ask a clock without end
            tap.ended(form == NS, of, by)
            return
        with self._lock:
            group = self._last
            if group is None or group.of is not of or group.by is not by or group.form != form:
                group = self._groups.get((of, by, form))
                if group is None:
                    group = self._groups[of, by, form] = _Growing(of, by, form, len(self._groups))
                self._last = group
            order = self._order
            if order and order[-1][0] == group.place:
                order[-1][1] += 1
            else:
                order.append([group.place, 1])
            if form == NS:
                value, group.last = value - group.last, value
                tap.clocks_remaining -= 1
            else:
                tap.remaining -= 1
                if form == BYTES:
                    group.sizes.append(len(value))
            group.content.append(value)
            group.count += 1
            self._bytes += size
            first = False
            if self.count == 0:
                first = not tap.holding
                self.span = span
                tap.holding[self] = None
            self.count += 1
            enough = self.count >= tap.packed_max or self._bytes >= TEXT_MAX or len(self._groups) >= len(LETTERS) - 1
        if first and tap.begun is not None:
            tap.begun()
        if enough:
            tap.seal(self)

    def take(self) -> tuple[str, list[Group], str | None]:
        """Return what was kept: the order, the groups, the span; and begin anew.

        Nothing is returned while the lane is held up in the middle of a read, by a signal handler that waits for us.
        """
        if not self._lock.acquire(timeout=_TAKE_S):
            return "", [], None
        try:
            groups, order, span = self._groups, self._order, self.span
            self._begin()
            self.tap.holding.pop(self, None)
        finally:
            self._lock.release()
        parts = [LETTERS[index] + (str(times) if times > 1 else "") for index, times in order]
        return "".join(parts) if len(groups) > 1 else "", [group.done() for group in groups.values()], span


class Tap:
    """Where the packs of a run go: `seal` gets each that is full, `full` is told when no more may be kept."""

    def __init__(
        self, seal: Callable[[Pack], object], full: Callable[[str, str], object], reads_max: int, packed_max: int
    ) -> None:
        self.open = 1
        self.remaining = self.clocks_remaining = reads_max
        self.packed_max = packed_max
        self.seal, self.full = seal, full
        self.begun: Callable[[], object] | None = None  # called when the first of its packs holds something
        self.owner: Any = None  # the run; None while it is not opened
        self.seen: dict[Any, Any] = {}  # for those who keep an answer only when it is another one than before
        self.holding: dict[Pack, None] = {}

    def ended(self, clock: bool, of: str, by: str) -> None:
        """Tell, once, that no more may be kept, of clocks or of all the others."""
        if (self.clocks_remaining if clock else self.remaining) == 0:
            if clock:
                self.clocks_remaining = -1
            else:
                self.remaining = -1
            self.full(of, by)

    def pack(self, lane: str) -> Pack:
        """Return a pack for a lane."""
        return Pack(self, lane)

    def waiting(self) -> list[Pack]:
        """Return the packs that hold something."""
        return list(self.holding)
