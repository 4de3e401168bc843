"""Know of the bodies of tools: which of them run in a replay, and what those that do not may have written."""

from __future__ import annotations

from playhead.capture import scope
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.replay.tape import Call


class Bodies:
    """The tools that run, by their spans, and what was opened inside of them.

    By spans and not by lanes: what takes items out of a generator goes on in the same lane while that rests.
    """

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._inside: set[str] = set()  # spans that were opened in one of them

    def run(self, span: str) -> None:
        """Take in that the tool of a span runs."""
        self._running.add(span)

    def passed(self, kind: str, span: str) -> None:
        """Take in an event."""
        if kind in CLOSING:
            self._running.discard(span)
            self._inside.discard(span)
        elif self._running and kind in OPENING_TO_CLOSING and self.are_here():
            self._inside.add(span)

    def are_here(self) -> bool:
        """Say whether one of them runs here."""
        if not self._running:
            return False
        here = scope.current.get()
        return here is not None and here.span is not None and (here.span in self._running or here.span in self._inside)


class Unrun:
    """What was answered from the tape in place of bodies, and the files that were open meanwhile."""

    def __init__(self) -> None:
        self._answered = self._changing = 0
        self._opened: dict[str, tuple[int, int]] = {}  # by file: how many had been answered

    def answered(self, call: Call) -> None:
        """Take in that a tool, a process or a server was answered for."""
        if call.kind in ("tool.called", "process.started", "mcp.requested"):
            self._answered += 1
            self._changing += call.kind != "tool.called" or call.question.data.get("effects") != ["read"]

    def knows(self, path: str) -> bool:
        """Say whether the program opened a file before."""
        return path in self._opened

    def opened(self, path: str) -> None:
        """Take in that the program opens a file for writing."""
        self._opened[path] = self._answered, self._changing

    def may_have_written(self, path: str, *, adds: bool) -> bool:
        """Say whether one of them may have written to an open file. One that only reads may do so to a log."""
        answered, changing = self._opened.get(path, (-1, -1))
        return answered != self._answered if adds else changing != self._changing
