"""Find an event by what people call it: its number, or a name that `show` lists, `book#2` for the second of it."""

from __future__ import annotations

import re

import msgspec

from playhead import _limits
from playhead.errors import UsageError
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.store.reader import RunReader
from playhead.views import text
from playhead.views.spans import SpanView

_NUMBERED = re.compile(r"(.+)#(\d+)")
_OPENING = {closing: opening for opening, closing in OPENING_TO_CLOSING.items() if opening != "step.started"}
_NAMES = ("name", "model", "provider", "method", "url", "argv", "capability", "reason", "what", "stream", "job")
_SHOWN = 20


def event_of(reader: RunReader, wanted: str) -> int:
    """Return the event that is meant; of a call its answer, of a step its beginning. UsageError where there is none.

    A name is that of a tool, a step, a model or whatever else has one in the timeline, or what sort it is: model, tool,
    mcp, http, process, step, or the kind of an event.
    """
    if wanted.isdecimal():
        return int(wanted)
    numbered = _NUMBERED.fullmatch(wanted)
    name, number = (numbered[1], int(numbered[2])) if numbered else (wanted, 1)
    if not number:
        raise UsageError(f"there is no {wanted}", hint=f"They are counted from 1: {name}#1.")
    found, count = _find(reader, wanted, 1)  # a name may have a number of its own: `fix #1842`
    if found is None and numbered:
        found, count = _find(reader, name, number)
    if found is not None:
        return found
    if count:
        raise UsageError(f"{reader.id} has {count} of {name}, and no {number}")
    spans = (event for event in reader.events() if event.kind in OPENING_TO_CLOSING and event.kind != "run.started")
    known = dict.fromkeys(_view(reader, event).name for event in spans if event.kind != "process.started")
    named = ", ".join(list(known)[:_SHOWN]) or "nothing"
    raise UsageError(f"{reader.id} has no event {wanted}", hint=f"It is a number, or a name: {named}.")


def _find(reader: RunReader, name: str, number: int) -> tuple[int | None, int]:
    """Return the event, and how many are called so; up to that one, where it is there."""
    meant: tuple[str | None, str] | None = None  # span and kind
    seq, count = None, 0
    for event in reader.events():
        if event.kind in CLOSING:
            if meant == (event.span, _OPENING.get(event.kind)):
                return event.seq, count
        elif seq is None and event.kind != "run.started":
            view = _view(reader, event)
            called = view.name
            if name in (view.kind, called, text.cut(called, _limits.NAME_CHARACTERS_MAX)):
                count += 1
                if count == number:
                    if event.kind not in _OPENING.values():
                        return event.seq, count  # a step, or a point
                    seq, meant = event.seq, (event.span, event.kind)
    return seq, count  # of a call that was never answered the question


def _view(reader: RunReader, event: Event) -> SpanView:
    """Return what says how an event is called; of what else is in it nothing is looked up, since it may be gone."""
    data = event.data if isinstance(event.data, dict) else {}
    named = {field: reader.readable(data[field]) for field in _NAMES if field in data}
    return SpanView(msgspec.structs.replace(event, data=named))
