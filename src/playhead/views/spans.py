"""Derive spans from events: the interval between an opening and a closing event that share an id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.views.points import words

_RESULTS = {
    "success": "ok",
    "cancelled": "cancelled",
    **dict.fromkeys(("failure", "timed_out", "startup_failure"), "error"),
}


@dataclass
class SpanView:
    """One span, or one point event, with what happened inside it."""

    opening: Event
    closing: Event | None = None
    children: list[SpanView] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Return `run`, `step`, `model`, `tool`, `mcp`, `http`, `process`, or the kind of a point event."""
        kind = self.opening.kind
        return kind.partition(".")[0] if kind in OPENING_TO_CLOSING else kind

    @property
    def name(self) -> str:
        """Return what a person would call it."""
        data = self.opening.data if isinstance(self.opening.data, dict) else {}
        match self.kind:
            case "model":
                return words(data.get("model") or data.get("provider") or "model")
            case "http":
                return f"{data.get('method', '')} {data.get('url', '')}".strip()
            case "process":
                return command_line(data) or "process"
            case _:
                named = (
                    data.get(field) for field in ("name", "capability", "reason", "what", "stream", "job", "method")
                )
                return words(next(filter(None, named), ""))

    @property
    def status(self) -> str:
        """Return ok, error, cancelled, or `open` while nothing closed it; of what CI reported, as it came out."""
        if self.closing is None and self.opening.kind == "ci.reported" and isinstance(self.opening.data, dict):
            return _RESULTS.get(str(self.opening.data.get("result")), "point")
        if self.closing is None:
            return "open" if self.opening.kind in OPENING_TO_CLOSING else "point"
        data = self.closing.data if isinstance(self.closing.data, dict) else {}
        return str(data.get("outcome") or data.get("status") or "ok")

    @property
    def duration_us(self) -> int | None:
        """Return how long it took; None while it is open, and of a tool that nobody saw running."""
        data = self.opening.data if isinstance(self.opening.data, dict) else {}
        if self.closing is None or (self.kind == "tool" and data.get("inferred") is True):
            return None
        return max(0, self.closing.elapsed_us - self.opening.elapsed_us)


def command_line(data: dict[str, Any]) -> str:
    """Return what was run, as one would type it; a command for the shell as it was given."""
    argv = data.get("argv")
    if not isinstance(argv, list):
        return ""
    parts = [words(part) for part in argv]
    return " ".join(parts) if data.get("shell") or len(parts) < 2 else " ".join(map(_quoted, parts))


def _quoted(word: str) -> str:
    """Return a word as it is typed in a shell."""
    if re.fullmatch(r"[\w@%+=:,./-]+", word, re.ASCII):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def tree(events: Iterable[Event]) -> list[SpanView]:
    """Nest events by their parents. What names a parent that is not there stands at the top; nothing is left out."""
    roots: list[SpanView] = []
    known: dict[str, SpanView] = {}
    for event in events:
        if event.kind in CLOSING and event.span in known and known[event.span].closing is None:
            known[event.span].closing = event
            continue
        view = SpanView(event)
        parent = known.get(event.parent) if event.parent is not None else None
        (parent.children if parent is not None else roots).append(view)
        if event.span is not None and event.kind not in CLOSING:
            known.setdefault(event.span, view)
    return roots


class OpenSpans:
    """Follow events and know which spans nothing has closed: what is going on at that point."""

    def __init__(self) -> None:
        self._open: dict[str, Event] = {}

    def take(self, event: Event) -> None:
        """Look at the next event."""
        if event.span is None:
            return
        if event.kind in OPENING_TO_CLOSING:
            self._open.setdefault(event.span, event)
        elif event.kind in CLOSING:
            self._open.pop(event.span, None)

    def listed(self) -> list[dict[str, Any]]:
        """List them, outermost first, without the run itself."""
        return [
            {"seq": event.seq, "kind": event.kind, "name": SpanView(event).name, "lane": event.lane}
            for event in self._open.values()
            if event.kind != "run.started"
        ]
