"""Find an event by what people call it: its number, or the name of a call or a step, `book#2` for the second of it."""

from __future__ import annotations

import re

import msgspec

from playhead.errors import UsageError
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.store.reader import RunReader
from playhead.views.spans import SpanView

_NUMBERED = re.compile(r"(.+)#(\d+)")
_OPENING = {closing: opening for opening, closing in OPENING_TO_CLOSING.items() if opening != "step.started"}
_NAMES = ("name", "model", "provider", "method", "url", "argv")
_SHOWN = 20


def event_of(reader: RunReader, wanted: str) -> int:
    """Return the event that is meant; of a call its answer, of a step its beginning. UsageError where there is none.

    A name is that of a tool, a step or a model, or what sort it is: model, tool, mcp, http, process, step.
    """
    if wanted.isdecimal():
        return int(wanted)
    numbered = _NUMBERED.fullmatch(wanted)
    name, number = (numbered[1], int(numbered[2])) if numbered else (wanted, 1)
    if not number:
        raise UsageError(f"there is no {wanted}", hint=f"They are counted from 1: {name}#1.")
    opened: list[tuple[str | None, int, str]] = []  # span, event and kind of those that are called so
    known: dict[str, None] = {}
    for event in reader.events():
        if event.kind in CLOSING:
            if len(opened) >= number and opened[number - 1][::2] == (event.span, _OPENING.get(event.kind)):
                return event.seq
        elif event.kind in OPENING_TO_CLOSING and event.kind != "run.started" and not event.data.get("inferred"):
            sort, called = event.kind.partition(".")[0], _name(reader, event)
            if sort != "process":
                known.setdefault(called)
            if called == wanted != name:  # which has a number in its own name
                name, number, opened = wanted, 1, []
            if name in (sort, called):
                opened.append((event.span, event.seq, event.kind))
    if len(opened) >= number:
        return opened[number - 1][1]  # a step, or a call that was never answered
    if opened:
        raise UsageError(f"{reader.id} has {len(opened)} of {name}, and no {number}")
    named = ", ".join(list(known)[:_SHOWN]) or "nothing"
    raise UsageError(f"{reader.id} has no event {wanted}", hint=f"It is a number, or a name: {named}.")


def _name(reader: RunReader, event: Event) -> str:
    """Return what a call or a step is called; of what it was asked nothing else is looked up."""
    data = {field: reader.readable(event.data[field]) for field in _NAMES if field in event.data}
    return SpanView(msgspec.structs.replace(event, data=data)).name
