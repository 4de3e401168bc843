"""Know in which steps and calls of a run something happened, and in which of another run that started it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from playhead.event.envelope import Event
from playhead.event.kinds import CALLS
from playhead.views import text
from playhead.views.points import mapping
from playhead.views.spans import SpanView

IRREVERSIBLE, WRITE, READ = "irreversible", "write", "read"
_LABEL_CHARACTERS_MAX = 60


@dataclass(slots=True, eq=False)
class Around:
    """One span, and what it is in."""

    run: str
    seq: int
    span: str
    kind: str  # run, step, tool, model, mcp, http, process
    name: str
    up: Around | None
    declared: tuple[str, ...] = ()  # what a tool says that it does
    is_seen: bool = True  # false for a tool that nobody saw running
    server: str = ""  # of an MCP tool
    status: str | None = None  # None until it is closed

    def chain(self) -> Iterator[Around]:
        """Yield it and all that it is in, the innermost first; also of the run that started this one."""
        one: Around | None = self
        while one is not None:
            yield one
            one = one.up

    def tools(self) -> Iterator[Around]:
        """Yield the tools among them."""
        return (one for one in self.chain() if one.kind == "tool" and one.is_seen)

    @property
    def path(self) -> str:
        """Return the names of all that it is in, and its own: `step plan / tool search`."""
        return " / ".join(reversed([one.label for one in self.chain() if one.kind != "run"]))

    @property
    def label(self) -> str:
        """Return what it is, and its name."""
        return text.cut(f"{self.kind} {self.name}".strip(), _LABEL_CHARACTERS_MAX)


class Spans:
    """Follow the spans of one run."""

    def __init__(self, run: str) -> None:
        self._run = run
        self.started_by: Around | None = None  # the process in another run that this run is of, or what it was begun in
        self._known: dict[str, Around] = {}
        self._open: dict[str, Around] = {}
        self._opened_at: dict[int, Around] = {}
        self.program: Around | None = None  # what `playhead record` was given to run

    def opened(self, event: Event, declared: tuple[str, ...] = ()) -> Around:
        """Take in the event that opens a span."""
        data = mapping(event.data)
        view = SpanView(event)
        up = self.of(event.parent)
        if up is None and view.kind == "run":
            up = self.started_by
        span = event.span if event.span is not None else str(event.seq)
        server = data.get("server")
        one = Around(self._run, event.seq, span, view.kind, view.name, up, declared=declared)
        if data.get("adopts") is True:
            one.kind = "run"  # the agent that the run is of
        one.is_seen = data.get("inferred") is not True
        one.server = server if isinstance(server, str) else ""
        self._open[span] = self._known.setdefault(span, one)
        self._opened_at[event.seq] = one
        return one

    def closed(self, event: Event) -> None:
        """Take in the event that closes one."""
        one = self._open.pop(event.span or "", None)
        if one is not None:
            data = mapping(event.data)
            one.status = str(data.get("outcome") or data.get("status") or "ok")

    def of(self, span: str | None) -> Around | None:
        """Return the span of this id, open or not."""
        return None if span is None else self._known.get(span)

    def is_first(self) -> bool:
        """Say whether nothing but the run itself has been opened."""
        return len(self._known) <= 1

    def opened_at(self, seq: Any) -> Around | None:
        """Return the span that was opened by an event."""
        return self._opened_at.get(seq) if isinstance(seq, int) else None

    def calls_under_way(self) -> set[str]:
        """Return the ids of calls that are open, but for the program itself."""
        names = {kind.partition(".")[0] for kind in CALLS}
        return {one.span for one in self._open.values() if one.kind in names and one is not self.program}
