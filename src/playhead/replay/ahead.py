"""Follow on the tape how far each lane of a program has come: the events that its own code causes, in their order."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

from playhead.event.envelope import Event
from playhead.event.kinds import CALLS, CLOSING, OPENING_TO_CLOSING
from playhead.replay.compare import OURS, is_ours
from playhead.replay.tape import hides
from playhead.store.reader import RunReader

# Kinds that the code of an agent causes when it is run again.
_CAUSED = (
    CALLS | CLOSING | {"step.started", "note.added", "policy.checked", "effect.observed", "artifact.created"}
) - {"run.finished"}
# What comes after these cannot have come without them: they tell where a lane is, and are never passed over.
_OPENING = CALLS | {"step.started"}


class Place(NamedTuple):
    """One event that the code of the agent caused."""

    seq: int
    kind: str
    lane: str
    span: str | None
    what: str | None = None  # of a call its key, of a step its name, of a note what it says, of an effect what it is


def places(reader: RunReader, last: int | None = None) -> Iterator[Place]:
    """Yield the events of a run that its program causes again in a replay, up to and including `last`."""
    inside: set[str | None] = set()  # spans in tools, whose bodies do not run again
    told_only: set[str | None] = set()  # spans that were read off other traffic
    program: str | None = None
    root: str | None = None
    for event in reader.events():  # what is looked at is too short to be a reference
        if last is not None and event.seq > last:
            return
        if event.kind == "run.started":
            root = root or event.span
            continue
        if (
            program is None
            and event.kind == "process.started"
            and event.parent == root
            and not event.data.get("streams")
        ):
            program = event.span
        hidden = event.parent in inside
        opens = event.kind in OPENING_TO_CLOSING and event.span is not None
        if opens and (hidden or hides(event)):
            inside.add(event.span)
        if opens and (event.data.get("inferred") or event.data.get("from_server")):
            told_only.add(event.span)
        if event.kind in _CAUSED and not hidden and event.span not in told_only and not _is_apart(event, program):
            what = _what(event.kind, event.key, event.data)
            yield Place(event.seq, event.kind, event.lane, event.span, what)


def _is_apart(event: Event, program: str | None) -> bool:
    if event.kind == "effect.observed":
        return str(event.data.get("what")).startswith(("process.", "socket."))  # which a replay answers, or refuses
    return is_ours(event, program)


def _what(kind: str, key: str | None, data: Mapping[str, Any]) -> str | None:
    if kind in CALLS:
        return key
    if kind == "effect.observed":  # a replay may be in another folder
        return f"{data.get('what')} {os.path.basename(str(data.get('target')))}"
    named = {"step.started": "name", "note.added": "text"}.get(kind)
    told = None if named is None else data.get(named)
    return told if isinstance(told, str) else None  # what is long may be a reference to what was said before


def _is_alike(place: Place, kind: str, what: str | None) -> bool:
    """Say whether something is what comes next, but for its name: a number of the system may be in that."""
    if place.kind != kind:
        return False
    return kind != "effect.observed" or str(place.what).split(" ")[0] == str(what).split(" ")[0]


class Ahead:
    """What of a tape is still to come, in each lane."""

    def __init__(self, reader: RunReader, last: int, unanswered: int | None = None) -> None:
        """Begin before the first event; `last` is the last that counts. A call may count as not answered: then neither
        does what came of its answer.
        """
        self._left: dict[str, deque[Place]] = {}
        closed: int | None = None
        for place in places(reader, last) if last >= 0 else ():
            if unanswered is not None and place.seq > unanswered and place.span == reader.event(unanswered).span:
                closed = place.seq
            if closed is None:
                self._left.setdefault(place.lane, deque()).append(place)
        self._lanes = len(self._left)
        self._elsewhere: set[str] = set()  # lanes of other processes
        self._told_only: set[str] = set()
        self._adopted = False
        self._lock = threading.Lock()

    def passed(self, lane: str, kind: str, span: str, key: str | None, data: Mapping[str, Any]) -> int | None:
        """Take in that a lane caused an event; return which event on the tape that is, None for none."""
        left = self._left.get(lane)
        if not left or kind not in _CAUSED or self._is_told_only(kind, span, data):
            return None
        with self._lock:
            ahead = list(itertools.takewhile(lambda place: place.kind not in _OPENING, left))
            what = _what(kind, key, data)
            known = list(itertools.islice(left, len(ahead), len(ahead) + 1)) if kind in _OPENING else ahead
            found = next((place for place in known if place.kind == kind and what in (None, place.what)), None)
            if found is None and known and kind not in _OPENING and _is_alike(known[0], kind, what):
                found = known[0]
            while found is not None and left.popleft() is not found:
                pass
            return None if found is None else found.seq  # of something else than was recorded: the lane is where it was

    def _is_told_only(self, kind: str, span: str, data: Mapping[str, Any]) -> bool:
        if data.get("inferred") or data.get("from_server"):
            self._told_only.add(span)
        if kind == "step.started" and data.get("agent") and not self._adopted:
            self._adopted = True  # the first agent takes over the run of its process, which is no step of it
            self._told_only.add(span)
        extra = data.get("data")
        ours = data.get("adopts") or (isinstance(extra, Mapping) and not OURS.isdisjoint(extra))
        return bool(ours) or span in self._told_only

    def has_left(self, ended: Container[str]) -> bool:
        """Say whether some lane goes on after the end of the tape: not one that ended, or that another process has."""
        over = [lane for lane, left in list(self._left.items()) if not left]
        return not self._lanes or any(lane not in ended and lane not in self._elsewhere for lane in over)

    def has_below(self, lane: str) -> bool:
        """Say whether somebody is on the tape that a lane began."""
        return any(left and one.startswith(f"{lane}.") for one, left in list(self._left.items()))

    def is_all_over(self) -> bool:
        """Say whether every lane has come to the end of the tape."""
        return not any(list(self._left.values()))

    def is_over(self, lane: str) -> bool:
        """Say whether nothing of a lane is left on the tape.

        One that caused nothing itself is as far as those that it began; one without those, as that which began it.
        """
        left = self._left.get(lane)
        if left is not None:
            return not left
        if self.has_below(lane):
            return False
        return self.is_over(lane.rpartition(".")[0]) if "." in lane else self.is_all_over()

    def forget(self, lane: str) -> None:
        """Leave a lane, and what it begins, to another process."""
        for one in list(self._left):
            if one == lane or one.startswith(f"{lane}."):
                self._left[one].clear()
                self._elsewhere.add(one)

    def keep_only(self, lane: str) -> None:
        """Leave all others to other processes."""
        for one in list(self._left):
            if one != lane and not one.startswith(f"{lane}."):
                self._left[one].clear()
                self._elsewhere.add(one)
