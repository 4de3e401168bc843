"""Find where a program was cut off, and what of its last doings is half done."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from playhead._clock import parse_utc
from playhead.errors import UsageError
from playhead.event.envelope import Event
from playhead.replay.ahead import Place, places
from playhead.replay.edited import NOTHING
from playhead.replay.tape import Call, Tape
from playhead.store import presence
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views import text

_LATER_US = 1_000_000  # after its last event a program may still have written
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
    flying = [call for call in tape.calls if call.closing is None]
    if tape.finished is not None and not flying and (failed := _failed_last(tape)) is not None:
        return Aftermath(failed.seq, [_flight(failed)], [])
    cut, undone = _before_last_effects(reader, passed)
    return Aftermath(cut, [_flight(call) for call in flying], undone)


def _failed_last(tape: Tape) -> Call | None:
    """Return the last call of a program that ended with an error, where that call did too."""
    last = max(tape.calls, key=lambda call: call.closing or call.seq, default=None)
    if last is None or last.closing is None or any(call.seq > last.closing for call in tape.calls):
        return None
    data = last.data
    return last if (data.get("outcome") or data.get("status")) == "error" else None


def _before_last_effects(reader: RunReader, passed: list[Place]) -> tuple[int, list[Restored]]:
    """Return the last event before writes that may be half done: they are told of before they are done."""
    undone: list[Restored] = []
    while passed and passed[-1].kind == "effect.observed":
        event = reader.resolve(reader.event(passed[-1].seq))
        if event.data.get("what") != "file.written":
            break
        if (found := _half_written(event)) is not None:
            undone.append(found)
        passed = passed[:-1]
    return (passed[-1].seq if passed else 0), undone


def _half_written(event: Event) -> Restored | None:
    """Return what a file held before it was written, where it holds something else now, and nobody touched it since."""
    path, detail = event.data.get("target"), event.data.get("detail") or {}
    mode, before = detail.get("mode"), detail.get("size")
    if not isinstance(path, str) or mode not in ("a", "x") or not os.path.isfile(path):
        return None
    facts = os.stat(path)
    if facts.st_mtime_ns // 1000 > parse_utc(event.time) + _LATER_US:
        return None
    if mode == "x" or detail.get("created"):
        return Restored(path, None)
    return Restored(path, before) if isinstance(before, int) and facts.st_size > before else None


def restore(files: list[Restored]) -> list[str]:
    """Have files as they were before the program was about to write them; says which."""
    said = []
    for path, size in files:
        if size is None:
            os.unlink(path)
        else:
            os.truncate(path, size)
        said.append(f"{path} is as it was before its last write, which is done again")
    return said


def _flight(call: Call) -> Flight:
    data = call.question.data
    effects = data.get("effects") or []
    named = data.get("name") or data.get("method") or data.get("model") or " ".join(map(str, data.get("argv") or ()))
    target = f" {data['url']}" if call.kind == "http.sent" and data.get("url") else ""
    given = "" if data.get("input") is None else text.short(data["input"], _WIDTH)
    return Flight(
        call.seq,
        call.kind,
        f"{call.kind} {named}{target}".strip(),
        given,
        _changes(call.kind, data),
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
