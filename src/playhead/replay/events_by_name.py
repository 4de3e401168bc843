"""Find an event by what people call it: its number, or a name that `show` lists, `book#2` for the second of it."""

from __future__ import annotations

import difflib
import re
from array import array
from collections.abc import Callable, Iterator

import msgspec

from playhead import _limits
from playhead.errors import UsageError
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.replay.steps import no_such_step
from playhead.store.reader import RunReader
from playhead.views import text
from playhead.views.imported import is_imported, settled
from playhead.views.spans import SpanView

_NUMBERED = re.compile(r"(.+)#(\d+)")
_OPENING = {closing: opening for opening, closing in OPENING_TO_CLOSING.items()}
_NAMES = ("name", "model", "provider", "method", "url", "argv", "capability", "reason", "what", "stream", "job")
_SHOWN = 20
_ALIKE = 0.7  # how much a name must look like another one to be taken for it


def event_of(reader: RunReader, wanted: str) -> int:
    """Return the event that is meant; of a call its answer, of a step its beginning. UsageError where there is none.

    A name is that of a tool, a step, a model or whatever else has one in the timeline, or what sort it is: model, tool,
    mcp, http, process, step, or the kind of an event.
    """
    return Names(reader).event(wanted)


class Names:
    """Know the events of one run by their names. Each is read once, and not before it has to be."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._ends = array("q")  # of every event that was read, the one that closed what it opened: -1 while none did
        self._named: dict[str, array[int]] = {}  # the events that are called so
        self._steps: dict[str, array[int]] = {}  # those of them that are steps
        self._lanes: dict[int, str] = {}  # of every step
        self._open: dict[tuple[str, str], list[int]] = {}  # by kind and span
        self._last: dict[str, int] = {}  # of every lane, what was heard of it last before the run ended
        self._is_over = False
        self._is_settled = False  # it came from outside, and was read as a whole

    def event(self, wanted: str) -> int:
        """Return the event that is meant, as `event_of` says."""
        if wanted.isdecimal():
            return int(wanted)
        name, number = _numbered(wanted)
        if not number:
            raise UsageError(f"there is no {wanted}", hint=f"They are counted from 1: {name}#1.")
        found = self._find(wanted, 1)  # a name may have a number of its own: `fix #1842`
        if found is None and name != wanted:
            found = self._find(name, number)
        if found is not None:
            return found
        if name in self._named:
            raise UsageError(f"{self._reader.id} has {len(self._named[name])} of {name}, and no {number}")
        spans = (one for one in self._reader.events() if one.kind in OPENING_TO_CLOSING and one.kind != "run.started")
        known = dict.fromkeys(self._view(event).name for event in spans if event.kind != "process.started")
        named = ", ".join(list(known)[:_SHOWN]) or "nothing"
        meant = "".join(f"Did you mean {one}? " for one in difflib.get_close_matches(name, self._named, 1, _ALIKE))
        raise UsageError(f"{self._reader.id} has no event {wanted}", hint=f"{meant}It is a number, or a name: {named}.")

    def end_of_step(self, wanted: str) -> int:
        """Return the event that ended a step: by its name, `name#2` for the second of it, or its number.

        Of one that never ended, the last that was heard of its lane before the run ended.
        """
        self._read(lambda: False)
        name, number = _numbered(wanted)
        meant = [self._steps[name][number - 1]] if 0 < number <= len(self._steps.get(name, ())) else []
        meant += self._steps.get(wanted, ())[:1]
        if not meant and wanted.isdecimal() and int(wanted) in self._lanes:
            meant = [int(wanted)]
        if not meant:
            steps = ((seq, name, number) for name, seqs in self._steps.items() for number, seq in enumerate(seqs, 1))
            raise no_such_step(self._reader.id, wanted, [(name, number) for _, name, number in sorted(steps)])
        step = min(meant)
        return max(step, self._last.get(self._lanes[step], 0)) if self._ends[step] < 0 else self._ends[step]

    def _find(self, name: str, number: int) -> int | None:
        """Return the event of that number among those that are called so; of a call that was answered the answer."""

        def found() -> int | None:
            seqs = self._named.get(name, ())
            return seqs[number - 1] if number <= len(seqs) else None

        self._read(lambda: (seq := found()) is not None and (seq in self._lanes or self._ends[seq] >= 0))
        seq = found()
        return seq if seq is None or seq in self._lanes or self._ends[seq] < 0 else self._ends[seq]

    def _read(self, enough: Callable[[], bool]) -> None:
        """Read on, where that is not enough."""
        if enough():
            return
        for seq, event in self._unread():
            self._take(seq, event)
            if enough() and not self._is_settled:
                return

    def _unread(self) -> Iterator[tuple[int, Event]]:
        """Yield what was not read yet, each with the number of its line: in an altered run it may say something else.

        Of a run that came from outside all of it, in the order of its times.
        """
        if self._is_settled:
            return
        read, first = len(self._ends), next(self._reader.events_from(0), None)
        if read or first is None or not is_imported(first.data):
            yield from enumerate(self._reader.events_from(read), read)
            return
        self._is_settled = True
        events = settled(self._reader.events(), self._reader.readable)
        self._ends.extend(range(1 + max(event.seq for event in events)))
        yield from ((event.seq, event) for event in events)

    def _take(self, seq: int, event: Event) -> None:
        if seq == len(self._ends):
            self._ends.append(seq)
        if event.kind in OPENING_TO_CLOSING:
            self._ends[seq] = -1
        self._is_over = self._is_over or event.kind == "run.finished"
        if not self._is_over:
            self._last[event.lane] = seq
        if event.kind in CLOSING:
            for opened in self._open.pop((_OPENING[event.kind], event.span or ""), ()):
                self._ends[opened] = seq
            return
        if event.kind == "run.started":
            return
        view = self._view(event)
        for name in {view.kind, view.name, text.cut(view.name, _limits.NAME_CHARACTERS_MAX)}:
            self._named.setdefault(name, array("q")).append(seq)
        if event.kind in OPENING_TO_CLOSING and event.span is not None:
            self._open.setdefault((event.kind, event.span), []).append(seq)
            if event.kind == "step.started":
                self._steps.setdefault(view.name, array("q")).append(seq)
                self._lanes[seq] = event.lane

    def _view(self, event: Event) -> SpanView:
        """Return what says how an event is called; of what else is in it nothing is looked up: it may be gone."""
        data = event.data if isinstance(event.data, dict) else {}
        named = {field: self._reader.readable(data[field]) for field in _NAMES if field in data}
        return SpanView(msgspec.structs.replace(event, data=named))


def _numbered(wanted: str) -> tuple[str, int]:
    found = _NUMBERED.fullmatch(wanted)
    return (found[1], int(found[2])) if found else (wanted, 1)
