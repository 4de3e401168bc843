"""Read a run as it stands now: what came from outside in the order of its times, with what was told of it last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property

from playhead.errors import BrokenLine
from playhead.event import envelope
from playhead.event.envelope import Event
from playhead.store.reader import RunReader
from playhead.views.imported import Settlement, is_imported, standing
from playhead.views.points import mapping


class Settled:
    """Read one run for views. A run that did not come from outside is read as it is, line by line."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        self._settlement: Settlement | None = None
        self._settling = threading.Lock()  # several threads may look at one run

    def events(self) -> Iterator[Event]:
        """Yield every event, unresolved; up to a line that cannot be read, which is raised then."""
        problems: list[BrokenLine] = []
        yield from standing(self._readable(problems), self.reader.readable)
        for problem in problems:
            raise problem

    def resolved(self) -> Iterator[Event]:
        """Yield every event with its references resolved."""
        return standing(self.reader.resolved(), self.reader.readable)

    def event(self, seq: int) -> Event:
        """Return one event with its references resolved."""
        return self.reader.resolve(self.as_written(seq)) if self.is_imported else self.reader.event(seq)

    def as_written(self, seq: int) -> Event:
        """Return one event with its references as they were written."""
        event = envelope.parse(self.reader.line(seq))
        if not self.is_imported:
            return event
        with self._settling:
            if self._settlement is None or seq >= self._settlement.taken:  # it has grown
                self._settlement = Settlement(list(self._readable([])), self.reader.readable)
            return self._settlement.amended(event)

    @cached_property
    def is_imported(self) -> bool:
        """Say whether the run came from outside."""
        first = next(self._readable([]), None)
        return first is not None and is_imported(mapping(first.data))

    def _readable(self, problems: list[BrokenLine]) -> Iterator[Event]:
        try:
            yield from self.reader.events()
        except BrokenLine as problem:
            problems.append(problem)
