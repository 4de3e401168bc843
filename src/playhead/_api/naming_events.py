"""Find an event by what people call it: its number, a name, the end of a step."""

from __future__ import annotations

from playhead.errors import UsageError
from playhead.store.reader import RunReader


def event_at(reader: RunReader, at: int | str | None, step: str | None) -> int | None:
    """Return the event that is meant; None where nothing is said."""
    if step is not None:
        return _end_of(reader, step)
    if at is None or isinstance(at, int):
        return at
    if not isinstance(at, str):
        raise UsageError(f"not an event: {at!r}", hint="Name it by its number, or as `playhead show` lists it.")
    if not at.strip():
        raise UsageError("an event without a name", hint="Name it by its number, or as `playhead show` lists it.")
    if at.isdecimal():
        return int(at)
    from playhead.replay.events_by_name import event_of

    return event_of(reader, at)


def _end_of(reader: RunReader, step: str) -> int:
    from playhead.replay.steps import find_step

    meant = find_step(reader, step, reader.readable)
    if meant.closing is not None:
        return meant.closing
    # It never ended: the last that was heard of the lane that it is in, before the run ended.
    last = meant.seq
    for at, event in enumerate(reader.events()):
        if event.kind == "run.finished":
            break
        last = at if event.lane == meant.lane else last
    return last
