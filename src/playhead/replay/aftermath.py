"""Find where a program was cut off, and what of its last doings is half done."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from playhead._clock import parse_utc
from playhead.errors import UsageError
from playhead.event.envelope import Event
from playhead.event.kinds import CALLS
from playhead.replay.ahead import Place, places
from playhead.replay.edited import NOTHING
from playhead.replay.tape import Call, Tape
from playhead.store import presence
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views import text

LATER_US = 1_000_000  # after its last event a program may still have written
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_WIDTH = 200


class Flight(NamedTuple):
    """A call that was under way when the program was cut off."""

    seq: int
    kind: str
    name: str
    given: str
    changes: bool  # it may have changed something that a second one would change again
    irreversible: bool
    failed: bool = False  # it was answered, with an error, and the program ended with it

    @property
    def can_be_skipped(self) -> bool:
        """Say whether there is something to answer with in its place."""
        return self.kind in NOTHING


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


def aftermath(reader: RunReader) -> Aftermath:
    """Look at the end of a run; UsageError for one that came to its end.

    A call that failed, and with it the program, counts as one that was under way.
    """
    if isinstance(reader.store, FileStore) and presence.is_held(reader.store.folder(reader.id)):
        raise UsageError(f"{reader.id} is still running", hint="`playhead tail RUN` follows it.")
    tape = Tape(reader)
    if tape.finished is not None and tape.finished.data.get("status") == "ok":
        raise UsageError(
            f"{reader.id} came to its end: there is nothing to go on with",
            hint="`playhead fork RUN --at SEQ` goes on from an earlier event.",
        )
    passed = list(places(reader))
    until_us = parse_utc(reader.event(tape.head[0]).time)
    flying = [call for call in tape.calls if call.closing is None]
    inside = _inside(reader, {call.span for call in flying})
    if tape.finished is not None and not flying and (failed := _failed_last(tape, passed)) is not None:
        flight = _flight(failed, _inside(reader, {failed.span}))._replace(failed=True)
        return Aftermath(failed.seq, [flight], [], until_us, [])
    cut, undone, notes = _before_last_effects(reader, passed, until_us)
    return Aftermath(cut, [_flight(call, inside) for call in flying], undone, until_us, notes)


def _inside(reader: RunReader, spans: set[str | None]) -> dict[str | None, list[dict[str, Any]]]:
    """Return what was called inside of these, by the span of the outermost: kind and data of each."""
    within: dict[str | None, str | None] = {span: span for span in spans}
    found: dict[str | None, list[dict[str, Any]]] = {}
    for event in reader.resolved() if spans else ():
        if event.parent in within and event.span is not None and event.span not in within:
            within[event.span] = within[event.parent]
            if event.kind in CALLS:
                found.setdefault(within[event.span], []).append({"kind": event.kind, **event.data})
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


def _before_last_effects(
    reader: RunReader, passed: list[Place], until_us: int
) -> tuple[int, list[Restored], list[str]]:
    """Return the last event before writes that may be half done: they are told of before they are done."""
    undone: list[Restored] = []
    notes: list[str] = []
    while passed and passed[-1].kind == "effect.observed":
        event = reader.resolve(reader.event(passed[-1].seq))
        if event.data.get("what") != "file.written":
            break
        found, touched = _half_written(event, until_us)
        if found is not None:
            undone.append(found)
        if touched:
            notes.append(f"{event.data['target']} was changed since: what the program writes to it may be there twice")
        passed = passed[:-1]
    return (passed[-1].seq if passed else 0), undone, notes


def _half_written(event: Event, until_us: int) -> tuple[Restored | None, bool]:
    """Return what a file held before it was written, where it holds something else now; and whether somebody else
    has touched it since, so that it is left alone.
    """
    path, detail = event.data.get("target"), event.data.get("detail") or {}
    mode, before = detail.get("mode"), detail.get("size")
    if not isinstance(path, str) or mode not in ("a", "x") or not os.path.isfile(path):
        return None, False
    facts = os.stat(path)
    new = mode == "x" or bool(detail.get("created"))
    if not new and not (isinstance(before, int) and facts.st_size > before):
        return None, False
    if facts.st_mtime_ns // 1000 > until_us + LATER_US:
        return None, True
    return Restored(path, None if new else before), False


def _flight(call: Call, inside: dict[str | None, list[dict[str, Any]]]) -> Flight:
    data = call.question.data
    within = inside.get(call.span, [])
    effects = [*(data.get("effects") or []), *(one for inner in within for one in inner.get("effects") or ())]
    changing = _changes(call.kind, data) or any(_changes(inner["kind"], inner) for inner in within)
    named = data.get("name") or data.get("method") or data.get("model") or " ".join(map(str, data.get("argv") or ()))
    target = f" {data['url']}" if call.kind == "http.sent" and data.get("url") else ""
    given = "" if data.get("input") is None else text.short(data["input"], _WIDTH)
    return Flight(
        call.seq,
        call.kind,
        f"{call.kind} {named}{target}".strip(),
        given,
        changing,
        "irreversible" in effects,
    )


def _changes(kind: str, data: dict[str, Any]) -> bool:
    if kind == "model.invoked":
        return False
    if kind == "tool.called":
        return (data.get("effects") or []) != ["read"]  # what nobody declared may do anything
    if kind == "http.sent":
        return str(data.get("method")).upper() not in _SAFE_METHODS
    if kind == "mcp.requested":
        return data.get("method") == "tools/call"
    return True
