"""Find where a program was cut off, and what of its last doings is half done."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, NamedTuple

from playhead import _limits
from playhead._clock import parse_utc
from playhead.errors import UsageError
from playhead.event.envelope import Event
from playhead.event.kinds import CALLS
from playhead.replay.ahead import Place, places
from playhead.replay.course import known_by
from playhead.replay.edited import NOTHING
from playhead.replay.lookup import Lookup
from playhead.replay.tape import Call, Tape
from playhead.store import presence
from playhead.store.reader import RunReader
from playhead.views import text

_EFFECT = "effect.observed"
_WITH_BODY = ("tool.called", "process.started", "mcp.requested")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_WIDTH = 200


class Flight(NamedTuple):
    """A call that was under way when the program was cut off."""

    seq: int
    kind: str
    name: str
    given: str
    changes: bool  # it may have changed something that a second one would change again
    never: tuple[str, ...] = ()  # what of it cannot be undone, as `known_by` names it
    failed: bool = False  # it was answered, with an error, and the program ended with it

    @property
    def irreversible(self) -> bool:
        """Say whether it is not to be tried again."""
        return bool(self.never)

    @property
    def is_file(self) -> bool:
        """Say whether it is no call, but a file that was opened."""
        return self.kind == _EFFECT

    @property
    def rules(self) -> tuple[str, ...]:
        """Return what may become of it."""
        if self.is_file:
            return ("retry",)
        skip = ("skip",) if self.kind in NOTHING else ()  # else there is nothing to answer with in its place
        return (*(() if self.irreversible else ("retry",)), *skip, "fail")


class Restored(NamedTuple):
    """A file that the program was about to write: what it held before, so that it can be written again."""

    path: str
    size: int | None  # None where it was not there


class Aftermath(NamedTuple):
    """Where a program was cut off."""

    cut: int  # the last event that is told by the tape
    flying: list[Flight]
    restored: list[Restored]
    until_us: int  # when it ended, as far as that is known
    notes: list[str]
    unanswered: int | None = None  # the call that failed, and the run with it


def aftermath(reader: RunReader) -> Aftermath:
    """Look at the end of a run; UsageError for one that came to its end.

    A call that failed, and with it the program, counts as one that was under way.
    """
    if presence.is_written(reader.store, reader.id):
        raise UsageError(f"{reader.id} is still running", hint="`playhead tail RUN` follows it.")
    tape = Tape(reader)
    if tape.finished is not None and tape.finished.data.get("status") == "ok":
        raise UsageError(
            f"{reader.id} came to its end: there is nothing to go on with",
            hint="`playhead fork RUN --at SEQ` goes on from an earlier event.",
        )
    passed = list(places(reader))
    until_us = parse_utc(reader.event(tape.head[0]).time)
    calls = [call for call in tape.calls if call.closing is None]
    failed = _failed_last(tape, passed) if tape.finished is not None and not calls else None
    inside = _inside(reader, {call.span for call in [*calls, *([] if failed is None else [failed])]})
    flying = [_flight(call, inside) for call in calls]
    if failed is not None:
        flying.append(_flight(failed, inside)._replace(failed=True))
    writes = _LastWrites(reader, passed, until_us, Lookup(tape).ended, tape.calls)
    return Aftermath(
        passed[-1].seq if passed else 0,
        [*flying, *writes.doubtful],
        [Restored(path, size) for path, size in writes.restored.items()],
        until_us,
        writes.notes,
        None if failed is None else failed.seq,
    )


def _inside(reader: RunReader, spans: set[str | None]) -> dict[str | None, list[Event]]:
    """Return what was called, and done, inside of these, by the span of the outermost."""
    within: dict[str | None, str | None] = {span: span for span in spans}
    found: dict[str | None, list[Event]] = {}
    for event in reader.resolved() if spans else ():
        if event.parent in within and event.span not in spans:
            outermost = within[event.parent]
            if event.span is not None:
                within[event.span] = outermost
            if event.kind in CALLS or event.kind == _EFFECT:
                found.setdefault(outermost, []).append(event)
    return found


def _failed_last(tape: Tape, passed: list[Place]) -> Call | None:
    """Return the last call of a program that ended with an error, where that call did too, and nothing came after."""
    last = max(tape.calls, key=lambda call: call.closing or call.seq, default=None)
    if last is None or last.closing is None:
        return None
    if any(place.seq > last.closing and place.kind != "step.finished" for place in passed):
        return None
    data = last.data
    return last if (data.get("outcome") or data.get("status")) == "error" else None


class _LastWrites:
    """Files that lanes were about to write as the last that is known of them: perhaps they did, in whole or in part.

    They will do it again, so what can be undone is to be undone before.
    """

    def __init__(
        self, reader: RunReader, passed: list[Place], until_us: int, ended: Collection[str], calls: list[Call]
    ) -> None:
        self.restored: dict[str, int | None] = {}
        self.doubtful: list[Flight] = []
        self.notes: list[str] = []
        self._until_us = until_us
        last = {place.lane: place for place in passed}
        ours = {place.seq for lane, place in last.items() if place.kind == _EFFECT and lane not in ended}
        events = [event for event in reader.resolved() if event.kind == _EFFECT] if ours else []
        for event in events:
            if event.seq in ours and event.data.get("what") == "file.written":
                target = event.data.get("target")
                others = any(
                    one.seq > event.seq and one.seq not in ours and one.data.get("target") == target for one in events
                )
                # One that ran meanwhile may have written to it by way of the program's own.
                ran = any(call.closing is None or call.closing > event.seq for call in calls if call.kind in _WITH_BODY)
                self._look_at(event, target, others or ran)

    def _look_at(self, event: Event, path: Any, others: bool) -> None:
        detail = event.data.get("detail") or {}
        mode, before = detail.get("mode"), detail.get("size")
        if not isinstance(path, str) or not os.path.isfile(path):
            return
        if mode in ("sqlite", "r+") and "length" not in detail:
            named = f"{'the database ' if mode == 'sqlite' else ''}{path}, opened for writing"
            self.doubtful.append(Flight(event.seq, event.kind, named, "", changes=True))
            return
        facts = os.stat(path)
        new = mode == "x" or (mode == "a" and bool(detail.get("created")))
        if not new and not (mode == "a" and isinstance(before, int) and facts.st_size > before):
            return  # what is written from its beginning is so again
        if facts.st_size and (others or facts.st_mtime_ns // 1000 > self._until_us + _limits.WRITTEN_AFTER_END_US):
            self.notes.append(f"{path} was changed since: what the program writes to it may be there twice")
            return
        known = self.restored.get(path, before)
        self.restored[path] = None if new or known is None or before is None else min(known, before)


def _flight(call: Call, inside: dict[str | None, list[Event]]) -> Flight:
    data = call.question.data
    within = inside.get(call.span, [])
    never = [known_by(call.kind, call.key, data)] if "irreversible" in (data.get("effects") or ()) else []
    for inner in within:
        if inner.kind in CALLS and "irreversible" in (inner.data.get("effects") or ()):
            never.append(known_by(inner.kind, inner.key, inner.data))
    named = data.get("name") or data.get("method") or data.get("model") or " ".join(map(str, data.get("argv") or ()))
    target = f" {data['url']}" if call.kind == "http.sent" and data.get("url") else ""
    given = "" if data.get("input") is None else text.short(data["input"], _WIDTH)
    return Flight(
        call.seq,
        call.kind,
        f"{call.kind} {named}{target}".strip(),
        given,
        _changes(call.kind, data) or any(_changes(inner.kind, inner.data) for inner in within),
        tuple(dict.fromkeys(never)),
    )


def _changes(kind: str, data: dict[str, Any]) -> bool:
    if kind == "model.invoked":
        return False
    if kind == _EFFECT:
        return not str(data.get("what")).startswith(("process.", "socket.", "environment."))  # calls tell of those
    if kind == "tool.called":
        return (data.get("effects") or []) != ["read"]  # what nobody declared may do anything
    if kind == "http.sent":
        return str(data.get("method")).upper() not in _SAFE_METHODS
    if kind == "mcp.requested":
        return data.get("method") == "tools/call"
    return True
