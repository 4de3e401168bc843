"""Compare what the files hold at the end that a program wrote: only where it is certain that the program itself did.

The body of a tool, a process and a server do not run in a replay, and may have changed a file in the recording. So a
file counts where none of them was at work between the moment at which the program opened it and its last change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playhead import _limits
from playhead._clock import parse_utc
from playhead.capture.written import move
from playhead.event.envelope import Event
from playhead.event.kinds import OPENING_TO_CLOSING

_TICK_US = 10_000  # by which the time of a file's last change may be too early: the system's clock for that is coarse
_AT_WORK = frozenset({"tool.called", "process.started", "mcp.requested"})


@dataclass
class _Written:
    """What is known of a file that was written."""

    path: str  # by which it was opened
    since_us: int  # when the program opened it that wrote what it holds
    seq: int
    doubt: str = ""  # why it may hold what somebody else has written
    timed: bool = False  # it was given other times than those of its changes


@dataclass
class Files:
    """What one run wrote, and what was left of it."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)  # by path: size, digest, modified_us, start
    omitted: int = 0
    _known: dict[str, _Written] = field(default_factory=dict)
    _open: dict[str | None, int] = field(default_factory=dict)  # by span: when somebody else began
    _others: list[tuple[int, int]] = field(default_factory=list)  # from when to when somebody else was at work
    _start_us: int = 0  # of the run, since the epoch

    def take(self, event: Event, *, hidden: bool, ours: bool) -> None:
        """Take in an event; `hidden` where it is inside of a tool, `ours` where it is the launcher's."""
        if event.kind == "effect.observed":
            self._done(event, hidden)
        elif event.kind == "run.started" and not self._start_us:
            self._start_us = parse_utc(event.time) - event.elapsed_us
        elif event.kind == "run.finished":
            found = [one for one in event.data.get("files") or () if isinstance(one, dict)]
            self.entries = {str(one.get("path")): one for one in found}
            self.omitted = event.data.get("files_omitted") or 0
        elif event.kind in _AT_WORK and not ours and not event.data.get("inferred"):
            self._open[event.span] = event.elapsed_us
        elif event.span in self._open and event.kind in OPENING_TO_CLOSING.values():
            self._others.append((self._open.pop(event.span), event.elapsed_us))

    def _done(self, event: Event, hidden: bool) -> None:
        what, path, detail = event.data.get("what"), str(event.data.get("target")), event.data.get("detail") or {}
        known = self._known.get(path)
        if what == "file.written":
            new = bool(detail.get("created")) or detail.get("mode") in ("w", "x")
            if hidden:
                self._known[path] = _Written(path, event.elapsed_us, event.seq, "a tool has written it too")
            elif new or known is None:
                self._known[path] = _Written(path, event.elapsed_us, event.seq)
            else:
                known.seq = event.seq
        elif what == "file.renamed":
            if hidden:
                self._known[path] = _Written(path, event.elapsed_us, event.seq, "a tool has moved it")
            move(self._known, path, str(detail.get("to")))
        elif what == "file.deleted":
            self._known.pop(path, None)
        elif what == "times.changed" and known is not None:
            known.timed = True

    def opened(self, path: str) -> tuple[str, int | None]:
        """Return by which path a file was opened last to be written, and in which event."""
        known = self._known.get(path)
        return (path, None) if known is None else (known.path, known.seq)

    def doubt(self, path: str) -> str:
        """Say why it is not certain that a file holds what the program itself wrote; nothing where it is."""
        entry, known = self.entries.get(path), self._known.get(path)
        if entry is None or known is None:
            return "it is not known what it held"
        if not isinstance(entry.get("digest"), str):
            return f"{entry.get('size')} bytes are too many"
        if known.doubt:
            return known.doubt
        changed_us = int(entry.get("modified_us") or 0) - self._start_us + _TICK_US
        others = [*self._others, *((began, 2**63) for began in self._open.values())]
        if any(began <= changed_us or known.timed for began, ended in others if ended >= known.since_us):
            return "a tool, a process or a server was at work meanwhile"
        return ""


def differences(
    recorded: Files, replayed: Files, lines: dict[str, str], told: set[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return which files hold something else than then, and which were not compared, with the reason.

    `lines` says where the agent's code wrote them, `told` which are told of already.
    """
    found: list[dict[str, Any]] = []
    left_out: list[str] = []
    if not recorded.entries:
        return found, left_out  # an older recording, or nothing was written
    for path, now in replayed.entries.items():
        if path in told:
            continue
        then = recorded.entries.get(path)
        if then is None and not recorded.omitted:
            continue  # deleted then: that it was not now is told among the effects
        doubt = recorded.doubt(path) or ("" if now.get("digest") else f"{now.get('size')} bytes are too many")
        if then is None or doubt:
            left_out.append(f"{path}: {doubt}")
        elif then["digest"] != now["digest"]:
            named, at = replayed.opened(path)
            difference = _difference(path, then, now, lines.get(named, ""))
            found.append({**difference, "seq": recorded.opened(path)[1], "at": at})
    return found, left_out[: _limits.BLOCKED_KEPT_MAX]


def _difference(path: str, then: dict[str, Any], now: dict[str, Any], line: str) -> dict[str, Any]:
    same = " as well" if then["size"] == now["size"] else ""
    added = " that were added to it" if "start" in then or "start" in now else ""
    sizes = f"{then['size']} bytes{added} were recorded, {now['size']} replayed{same}"
    text = f"{path} holds something else at the end: {sizes}"
    return {"type": "write", "name": path, "text": f"{text} ({line})" if line else text}
