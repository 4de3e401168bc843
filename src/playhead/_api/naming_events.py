"""Find an event by what people call it: its number, a name, the end of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import UsageError
from playhead.store.reader import RunReader

if TYPE_CHECKING:
    from playhead.replay.events_by_name import Names


class EventFinder:
    """Find events of one run. For the first one that is meant by a name the run is read, once."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._known: Names | None = None

    def find(self, at: int | str | None, step: str | None) -> int | None:
        """Return the event that is meant; None where nothing is said."""
        if step is not None:
            return self._names.end_of_step(step)
        if at is None or isinstance(at, int):
            return at
        if not isinstance(at, str):
            raise UsageError(f"not an event: {at!r}", hint="Name it by its number, or as `playhead show` lists it.")
        if not at.strip():
            raise UsageError("an event without a name", hint="Name it by its number, or as `playhead show` lists it.")
        return int(at) if at.isdecimal() else self._names.event(at)

    @property
    def _names(self) -> Names:
        if self._known is None:
            from playhead.replay.events_by_name import Names

            self._known = Names(self._reader)
        return self._known
