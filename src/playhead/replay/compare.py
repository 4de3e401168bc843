"""Bring a run down to what its replay must have in common with it: what the agent's code did, and what came of it.

What the tape answers is the same by construction, and is not compared. Nor are durations, ids and times; nor what was
recorded inside of tools, whose bodies do not run in a replay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from playhead.event.envelope import Event
from playhead.event.kinds import CALLS, CLOSING, COMMITS, OPENING_TO_CLOSING, TREE_CHANGED
from playhead.replay.detail import Detail, detail_of
from playhead.replay.outputs import between
from playhead.replay.tape import hides
from playhead.replay.written import Files
from playhead.views.points import written
from playhead.views.text import error_place

# What a replay says of itself, and what is noticed of the machine that it runs on.
_LEFT_OUT = frozenset(
    {
        *("run.started", "run.finished", "run.reopened", "run.invalidated", "content.erased", "ambient.read"),
        *("gap.noted", "git.committed", "ci.reported", "replay.deviated", "replay.reported", "output.written"),
        "run.graded",
    }
)
OURS = frozenset({"attached", "left_tape"})  # what notes have that the recorder makes
_VOLATILE = {
    "step.started": {"entrypoint", "input", "envelope_hash"},
    "step.finished": {"redacted", "output"},
    "tool.called": {"asked_by", "call"},
    "artifact.created": {"digest"},
}


@dataclass
class Told:
    """What one run comes down to."""

    shares_stderr: bool = False  # with a server that was started for it, and is not in a replay
    lanes: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # what was done, and the seq of it
    details: dict[int, Detail] = field(default_factory=dict)  # by seq: how it was done
    outputs: dict[str, bytes] = field(default_factory=dict)
    pieces: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by output: where a piece begins, its seq
    status: str = ""
    output: Any = None
    exit_code: Any = None
    error: Any = None
    raised: str | None = None  # where the error was
    deviations: list[dict[str, Any]] = field(default_factory=list)
    shared: dict[str, list[str]] = field(default_factory=dict)  # by output: who wrote there what cannot be told
    reports: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0  # that the agent's code asked
    files: Files = field(default_factory=Files)  # that it wrote
    files_left_out: list[str] = field(default_factory=list)  # that could not be compared, and why
    launched: bool = False  # the whole program was recorded, and not only a part of it from inside

    def piece_at(self, stream: str, offset: int) -> int | None:
        """Return the event that holds a byte of an output."""
        pieces = self.pieces.get(stream, [])
        at = bisect_right(pieces, offset, key=lambda piece: piece[0]) - 1
        return pieces[at][1] if at >= 0 else None


def told(events: Iterable[Event], here: Callable[[Event], Event] = lambda event: event) -> Told:
    """Read a run, every value as it was; `here` gives its events with paths as they are here."""
    found = Told()
    inside: set[str] = set()  # spans inside of a tool
    inferred: set[str | None] = set()  # steps that were read off the traffic, which is compared itself
    in_process: set[str] = set()  # calls of MCP servers in the same process
    by_server: set[str] = set()  # what MCP servers asked, and the agent answered
    outputs: dict[str, bytearray] = {}
    sharing: dict[str | None, list[tuple[str, str]]] = {}  # by span: processes that had outputs of the program
    ranges: dict[str | None, Any] = {}  # by span: what of them they wrote, where that is known
    root: str | None = None
    program: str | None = None  # the span of the program itself, where a launcher has started it
    entry: Any = None
    ended = False
    for unchanged in events:
        event = here(unchanged)
        data = event.data
        if event.kind in ("run.finished", "run.reopened"):
            ended = event.kind == "run.finished"
        elif ended and event.kind == "artifact.created":
            continue  # imported results of tests: the program did not make it
        if event.kind == "run.started" and root is None:
            root, entry = event.span, (unchanged.data.get("entrypoint") or {}).get("argv")
        if event.kind == "step.started" and data.get("inferred"):
            inferred.add(event.span)
        hidden = event.parent in inside and not (event.parent in in_process and data.get("from_server"))
        if event.span is not None and event.kind in OPENING_TO_CLOSING:
            if hidden or hides(event):
                inside.add(event.span)
            if not hidden and data.get("server") == "in-process":
                in_process.add(event.span)
            if data.get("from_server"):
                by_server.add(event.span)
            found.shares_stderr = found.shares_stderr or (not hidden and _is_command(data.get("server")))
        if event.kind == "output.written":
            so_far = outputs.setdefault(stream := str(data.get("stream")), bytearray())
            found.pieces.setdefault(stream, []).append((len(so_far), event.seq))
            so_far += written(data)
        elif event.kind == "run.finished":
            found.status, found.output = str(data.get("status")), data.get("output")
            found.exit_code = (data.get("metadata") or {}).get("exit_code")
            found.error, found.raised = _said(data.get("error")), error_place(data.get("error"))
        elif event.kind == "replay.deviated":
            found.deviations.append(data)
        elif event.kind == "replay.reported":
            found.reports.append(data)
        first = event.kind == "process.started" and program is None and not found.lanes and event.parent == root
        if first and unchanged.data.get("argv") == entry and not data.get("streams"):
            program, found.launched = event.span, True
        ours = is_ours(event, program)
        found.files.take(event, hidden=hidden, ours=ours)
        if hidden or event.span in inferred or event.kind in _LEFT_OUT or ours:
            continue
        if event.kind == "process.started":
            sharing[event.span] = _sharing(event)
        elif event.kind == "process.exited":
            ranges[event.span] = data.get("printed")
        line = _answer(event) if event.kind == "mcp.answered" and event.span in by_server else _line(event)
        if line is not None:
            found.calls += event.kind in CALLS and not data.get("from_server")
            found.lanes.setdefault(event.lane, []).append((line, event.seq))
            if detail := detail_of(event):
                found.details[event.seq] = detail
    found.outputs = {name: bytes(pieces) for name, pieces in outputs.items()}
    for span, told_of in sharing.items():
        for stream, process in told_of:
            if not _is_known(found.outputs.get(stream, b""), ranges.get(span), stream):
                found.shared.setdefault(stream, []).append(process)
    undo_normalising(found)
    return found


def undo_normalising(found: Told) -> None:
    """Take questions for those on the tape that were the same once they were normalised."""
    same = {at: key for report in found.reports for at, key in report.get("normalised", ())}
    if same:
        for lane, lines in found.lanes.items():
            found.lanes[lane] = [
                (f"{line.partition(' ')[0]} {same[seq]}" if seq in same else line, seq) for line, seq in lines
            ]


def _sharing(event: Event) -> list[tuple[str, str]]:
    """Return which outputs of the program a process has for its own, each with the words that name the process."""
    streams, argv = event.data.get("streams") or {}, event.data.get("argv") or ["?"]
    found = []
    for name in ("stdout", "stderr"):
        to = streams.get(name, name)
        if to == name or (name == "stderr" and to == "stdout" and "stdout" not in streams):
            words = str(argv[0]).split() or ["?"]
            found.append((to, f"{words[0]} (event {event.seq})"))
    return found


def _is_known(output: bytes, printed: Any, stream: str) -> bool:
    """Say whether it is known what of an output a process wrote, and that is as it was."""
    if not isinstance(printed, dict):
        return False
    return all(between(output, *place) is not None for place in printed.get(stream, ()))


def _is_command(server: Any) -> bool:
    """Say whether an MCP server was a process of its own: what it writes to stderr is seen as the program's."""
    return server is not None and not str(server).startswith(("http://", "https://", "in-process"))


def is_ours(event: Event, program: str | None) -> bool:
    """Say whether an event is the launcher's: that it started the program, and that a Python was attached."""
    if event.kind in ("process.started", "process.exited"):
        return program is not None and event.span == program
    if event.kind in ("step.started", "step.finished") and event.data.get("adopts"):
        return True  # a run by itself, where nobody recorded the whole program
    if event.kind == "note.added":
        extra = event.data.get("data")
        told = str(event.data.get("text")).startswith(TREE_CHANGED)
        told = told or (program is not None and event.parent == program)
        return told or (
            isinstance(extra, dict) and (not OURS.isdisjoint(extra) or {"omitted", "problem"} <= extra.keys())
        )
    return event.kind == "artifact.created" and (
        event.data.get("role") in ("diff", "context_pack")
        or (event.data.get("role") == "patch" and str(event.data.get("name")).startswith(COMMITS))
    )


def _line(event: Event) -> str | None:
    """Return what two runs of the same program have in common of an event; None for nothing."""
    if event.kind in CALLS:
        return None if event.data.get("inferred") else f"{event.kind} {event.key}"
    if event.kind in CLOSING and event.kind != "step.finished":
        return None
    if event.kind == "policy.checked" and event.data.get("by") == "policy":
        if event.data.get("asked") != "agent":
            return None  # it was asked for whatever was about to be done, which is compared itself
        asked = [str(event.data.get(name)) for name in ("capability", "resource", "decision")]
        return f"{event.kind} {' '.join(asked)}"  # the rule may say how much was used by then
    if event.kind == "effect.observed":
        if str(event.data.get("what")).startswith(("process.", "socket.")):
            return None  # which a replay answers, or refuses
        return f"{event.kind} {event.data.get('what')} {event.data.get('target')}"
    data = {name: value for name, value in event.data.items() if name not in _VOLATILE.get(event.kind, ())}
    if isinstance(data.get("error"), dict):
        data["error"] = _said(data["error"])
    return f"{event.kind} {orjson.dumps(data, option=orjson.OPT_SORT_KEYS, default=str).decode()}"


def _answer(event: Event) -> str:
    """Return what the agent answered to a server."""
    data = {"result": event.data.get("result"), "error": _said(event.data.get("error"))}
    return f"{event.kind} {orjson.dumps(data, option=orjson.OPT_SORT_KEYS, default=str).decode()}"


def _said(error: Any) -> Any:
    return {name: error.get(name) for name in ("type", "message")} if isinstance(error, dict) else error
