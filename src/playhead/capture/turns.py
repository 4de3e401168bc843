"""Read off the model traffic what nobody announced: the turns of a conversation, and the tools run between them.

A turn is a step that begins with a question to a model and ends with the next one, or with an answer that asks for no
tool. It is opened only where an agent speaks for itself: inside a step that an author or a framework named, that name
is enough. A tool that nobody saw running is told by the result that goes back to the model, and marked as inferred.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.capture.scope import Scope
from playhead.event import kinds
from playhead.ledger.writer import Around

if TYPE_CHECKING:
    from playhead.capture.dialects.base import Answered, ToolAsked, ToolResult
    from playhead.capture.recording import Recording

Place = tuple[str | None, str]  # a span and a lane


@dataclass(slots=True)
class _Turn:
    span: str
    failed: bool = False  # so far: the next question is another attempt and belongs to this turn
    asking: int = 0  # model calls under way


@dataclass(slots=True)
class _Wanted:
    """A tool that a model asked for."""

    call: ToolAsked
    asked_by: str
    seen: bool = False  # running, or run


@dataclass(slots=True)
class Turns:
    """Follow the conversations of one recording. Used by all its threads."""

    recording: Recording
    places: set[str | None] = field(default_factory=set)  # spans in which an agent speaks for itself
    open: dict[Place, _Turn] = field(default_factory=dict)
    tools: set[str | None] = field(default_factory=set)  # open spans of tools
    by_hand: set[str | None] = field(default_factory=set)  # open spans of model calls that the author records
    exchanges: dict[int, Any] = field(default_factory=dict)  # by id, weakly: those whose answer is not recorded yet
    _counted: dict[Place, int] = field(default_factory=dict)
    _asked: dict[Place, tuple[str, Any, int]] = field(default_factory=dict)  # the last question, until it is answered
    _wanted: list[_Wanted] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)

    def inside(self, scope: Scope) -> Scope:
        """Return the scope of what happens here now: inside the turn, where one is open."""
        turn = self.open.get((scope.span, scope.lane.path))
        return scope if turn is None else scope.inside(turn.span)

    def begin(self, scope: Scope, results: tuple[ToolResult, ...]) -> tuple[Scope, Around | None]:
        """Prepare for a question to a model: end the turn before, and tell of the tools run meanwhile.

        `scope` is the one outside of any turn. Returns the scope for the question, and the event that opens a turn
        around it, where one is to be opened; `opened` says that it was. Both with the lock held.
        """
        place = (scope.span, scope.lane.path)
        turn = self.open.get(place)
        if turn is not None and (turn.failed or turn.asking):
            turn.asking += 1  # another attempt, or one of several questions at once
            return scope.inside(turn.span), None
        if results:
            self._infer(scope if turn is None else scope.inside(turn.span), results)
        if turn is not None:
            self._end(place)
        if scope.span not in self.places:
            return scope, None
        number = self._counted.get(place, 0) + 1
        return scope, ("step.started", b'{"name":"turn %d","inferred":true}' % number, scope.span)

    def opened(self, scope: Scope, span: str) -> Scope:
        """Note the span of a turn that was opened here, and return the scope inside."""
        place = (scope.span, scope.lane.path)
        self._counted[place] = self._counted.get(place, 0) + 1
        self.open[place] = _Turn(span, asking=1)
        return scope.inside(span)

    def attempt(self, scope: Scope, url: str, request: Any) -> int:
        """Say how often this question was sent from here, this time included, since it was last answered."""
        place = (scope.span, scope.lane.path)
        last = self._asked.get(place)
        number = last[2] + 1 if last is not None and last[0] == url and last[1] == request else 1
        self._asked[place] = (url, request, number)
        return number

    def answered(self, scope: Scope, asked_by: str | None, answered: Answered | None, failed: bool) -> Around | None:
        """Take in the answer to a question: which tools it asks for, and whether the turn ends with it.

        Returns the event that closes the turn, to be written right after the answer.
        """
        place = (scope.span, scope.lane.path)
        with self.lock:
            if not failed:
                self._asked.pop(place, None)
            if answered is not None and asked_by is not None and answered.calls:
                self._wanted += [_Wanted(call, asked_by) for call in answered.calls]
            turn = self.open.get(place)
            if turn is None:
                return None
            turn.asking = max(0, turn.asking - 1)
            turn.failed = failed
            if turn.asking or failed or (answered is not None and answered.calls):
                return None
            del self.open[place]
            return "step.finished", b'{"status":"ok"}', scope.span

    def leave(self, span: str | None) -> None:
        """End the turns that are open directly inside a span which is about to close."""
        if self.open:
            with self.lock:
                for place in [place for place in self.open if place[0] == span]:
                    self._end(place)

    def run_ends(self) -> None:
        """End every exchange and every turn that is still open."""
        for known in list(self.exchanges.values()):
            if (exchange := known()) is not None:
                exchange.run_ends()
        with self.lock:
            for place in list(self.open):
                self._end(place)

    def _end(self, place: Place) -> None:
        turn = self.open.pop(place, None)
        if turn is not None:
            status: kinds.Status = "error" if turn.failed else "ok"
            self.recording.emit(kinds.StepFinished(status=status), span=turn.span, parent=place[0])

    def running(self, name: str, arguments: Any, call: str | None = None) -> tuple[str | None, str | None]:
        """Say which tool call of a model leads to a tool that begins to run now: its id, and who asked."""
        with self.lock:
            found = self._match(name, arguments, call)
            if found is None:
                return call, None
            found.seen = True
            return found.call.id, found.asked_by

    def _match(self, name: str, arguments: Any, call: str | None) -> _Wanted | None:
        unseen = [wanted for wanted in self._wanted if not wanted.seen]
        if call is not None:
            return next((wanted for wanted in unseen if wanted.call.id == call), None)
        named = [wanted for wanted in unseen if wanted.call.name == name]
        return next((wanted for wanted in named if wanted.call.input == arguments), named[0] if named else None)

    def _infer(self, scope: Scope, results: Iterable[ToolResult]) -> None:
        """Record the tools whose results go back to the model and which nobody saw running."""
        for result in results:
            wanted = self._answering(result)
            if wanted is None:
                continue
            self._wanted.remove(wanted)
            if wanted.seen:
                continue
            called = kinds.ToolCalled(
                name=wanted.call.name,
                input=wanted.call.input,
                call=wanted.call.id,
                asked_by=wanted.asked_by,
                inferred=True,
            )
            span = self.recording.emit(called, parent=scope.span)
            returned = kinds.ToolReturned(
                status="error" if result.failed else "ok", output=result.output, inferred=True
            )
            if span is not None:
                self.recording.emit(returned, span=span, parent=scope.span)

    def _answering(self, result: ToolResult) -> _Wanted | None:
        for wanted in self._wanted:
            if result.id is not None and wanted.call.id is not None:
                if wanted.call.id == result.id:
                    return wanted
            elif wanted.call.name == result.name:
                return wanted
        return None
