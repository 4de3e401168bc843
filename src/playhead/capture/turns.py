"""Read off the model traffic what nobody announced: the turns of a conversation, and the tools run between them.

A turn is a step that begins with a question to a model and ends with the next one, or with an answer that asks for no
tool. It is opened only where an agent speaks for itself: inside a step that an author or a framework named, that name
is enough. A tool that nobody saw running is told by the result that goes back to the model, and marked as inferred.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead import _limits
from playhead.capture import abandoned
from playhead.capture.scope import Scope
from playhead.event import kinds
from playhead.ledger.writer import Around

if TYPE_CHECKING:
    from playhead.capture.dialects.base import Answered, ToolAsked, ToolResult
    from playhead.capture.recording import Recording
    from playhead.capture.spans import ToolCall

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
    lane: str
    seen: bool = False  # running, or run


class _Early(NamedTuple):
    """A tool that ran while the answer that asks for it was still coming in."""

    asked_by: str
    name: str
    input: Any
    call: str | None


@dataclass(slots=True)
class Turns:
    """Follow the conversations of one recording. Used by all its threads."""

    recording: Recording
    places: set[str | None] = field(default_factory=set)  # spans in which an agent speaks for itself
    single: set[str | None] = field(default_factory=set)  # those with one conversation, in whichever tasks it goes on
    open: dict[Place, _Turn] = field(default_factory=dict)
    tools: dict[str | None, ToolCall] = field(default_factory=dict)  # by their spans, those that are open
    by_hand: set[str | None] = field(default_factory=set)  # open spans of model calls that the author records
    exports: int = 0  # of telemetry, which are left out
    _counted: dict[Place, int] = field(default_factory=dict)
    _asked: dict[Place, tuple[str, Any, int]] = field(default_factory=dict)  # the last question, until it is answered
    _wanted: list[_Wanted] = field(default_factory=list)
    _asking: dict[str, str | None] = field(default_factory=dict)  # model calls under way, and what they are inside of
    _early: list[_Early] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)

    def inside(self, scope: Scope) -> Scope:
        """Return the scope of what happens here now: inside the turn, where one is open."""
        turn = self.open.get(self._place(scope))
        return scope if turn is None else scope.inside(turn.span)

    def _place(self, scope: Scope) -> Place:
        return scope.span, "" if scope.span in self.single else scope.lane.path

    def begin(self, scope: Scope, results: tuple[ToolResult, ...], again: bool = False) -> tuple[Scope, Around | None]:
        """Prepare for a question to a model: end the turn before, and tell of the tools run meanwhile.

        `scope` is the one outside of any turn; `again` says that the question failed before and is sent once more.
        Returns the scope for the question, and the event that opens a turn around it, where one is to be opened;
        `opened` says that it was. Both with the lock held.
        """
        place = self._place(scope)
        turn = self.open.get(place)
        if results:
            self._infer(scope if turn is None else scope.inside(turn.span), results)
        if turn is not None and (turn.asking or (turn.failed and again)):
            turn.asking += 1  # another attempt, or one of several questions at once
            return scope.inside(turn.span), None
        if turn is not None:
            self._end(place)
        if scope.span not in self.places:
            return scope, None
        number = self._counted.get(place, 0) + 1
        return scope, ("step.started", b'{"name":"turn %d","inferred":true}' % number, scope.span)

    def opened(self, scope: Scope, span: str) -> Scope:
        """Note the span of a turn that was opened here, and return the scope inside."""
        place = self._place(scope)
        self._counted[place] = self._counted.pop(place, 0) + 1
        _bound(self._counted)
        self.open[place] = _Turn(span, asking=1)
        if len(self.open) > _limits.CONVERSATIONS_MAX:
            self._end(next(iter(self.open)))
        return scope.inside(span)

    def attempt(self, scope: Scope, url: str, request: Any) -> int:
        """Say how often this question was sent from here, this time included, since it was last answered."""
        place = self._place(scope)
        with self.lock:
            last = self._asked.pop(place, None)
            number = last[2] + 1 if last is not None and last[0] == url and last[1] == request else 1
            self._asked[place] = (url, request, number)
            _bound(self._asked)
        return number

    def asking(self, span: str, parent: str | None) -> None:
        """Take note of a model call that has begun; with the lock held."""
        self._asking[span] = parent

    def answered(
        self, scope: Scope, asked_by: str | None, answered: Answered | None, status: kinds.Status
    ) -> Around | None:
        """Take in the answer to a question: which tools it asks for, and whether the turn ends with it.

        Returns the event that closes the turn, to be written right after the answer.
        """
        place = self._place(scope)
        failed = status == "error"
        with self.lock:
            if not failed:
                self._asked.pop(place, None)
            if asked_by is not None:
                self._asking.pop(asked_by, None)
                for call in () if answered is None else answered.calls:
                    self._wanted.append(_Wanted(call, asked_by, scope.lane.path, self._was_early(call, asked_by)))
                del self._wanted[: -_limits.CONVERSATIONS_MAX]
                if self._early:
                    self._early = [early for early in self._early if early.asked_by != asked_by]
            turn = self.open.get(place)
            if turn is None:
                return None
            turn.asking = max(0, turn.asking - 1)
            turn.failed = failed
            if turn.asking or failed or (answered is not None and answered.calls):
                return None
            del self.open[place]
            return "step.finished", b'{"status":"%b"}' % status.encode(), scope.span

    def leave(self, span: str | None) -> None:
        """End the turns that are open directly inside a span which is about to close, and forget it."""
        if self.open or span in self.places:
            with self.lock:
                for place in [place for place in self.open if place[0] == span]:
                    self._end(place)
                self.places.discard(span)
                for place in [place for place in self._counted if place[0] == span]:
                    del self._counted[place]

    def run_ends(self, status: kinds.Status | None = None) -> None:
        """End every exchange and every turn that is still open: what made the run fail happened in those.

        Where nobody says how it ended, it failed if an exception came to the top of the program.
        """
        failed = hasattr(sys, "last_value") if status is None else status == "error"
        abandoned.settle()
        for known in list(self.recording.exchanges.values()):
            if (exchange := known()) is not None:
                exchange.run_ends()
        with self.lock:
            for place, turn in list(self.open.items()):
                turn.failed = turn.failed or failed
                self._end(place)
        if exports := self.exports:
            self.exports = 0
            text = f"{exports} {'export' if exports == 1 else 'exports'} of telemetry left out"
            self.recording.emit(kinds.NoteAdded(text=text), parent=self.recording.root_span)

    def after_fork(self) -> None:
        """Leave to the parent what it began: its answers, its turns. Another thread may have held the lock."""
        self.lock = threading.RLock()
        for begun in (self.recording.exchanges, self.open, self._asking):
            begun.clear()

    def _end(self, place: Place) -> None:
        turn = self.open.pop(place, None)
        if turn is not None:
            status: kinds.Status = "error" if turn.failed else "ok"
            self.recording.emit(kinds.StepFinished(status=status), span=turn.span, parent=place[0])

    def running(
        self, name: str, arguments: Any, call: str | None = None, scope: Scope | None = None
    ) -> tuple[str | None, str | None]:
        """Say which tool call of a model leads to a tool that begins to run now, here: its id, and who asked."""
        with self.lock:
            found = self._match(name, arguments, call, None if scope is None else scope.lane.path)
            if found is not None:
                found.seen = True
                return found.call.id or call, found.asked_by
            inside = None if scope is None else scope.span
            asking = [span for span, parent in self._asking.items() if parent == inside]
            if inside is None or len(asking) != 1:
                return call, None
            self._early.append(_Early(asking[0], name, arguments, call))
            return call, asking[0]

    def _was_early(self, call: ToolAsked, asked_by: str) -> bool:
        for early in self._early:
            named = early.call is None or call.id is None
            same = (early.name, early.input) == (call.name, call.input) if named else early.call == call.id
            if early.asked_by == asked_by and same:
                self._early.remove(early)
                return True
        return False

    def _match(self, name: str, arguments: Any, call: str | None, lane: str | None) -> _Wanted | None:
        unseen = [wanted for wanted in self._wanted if not wanted.seen]
        if call is not None:
            found = _nearest([wanted for wanted in unseen if wanted.call.id == call], lane)
            if found is not None:
                return found
            unseen = [wanted for wanted in unseen if wanted.call.id is None]  # the framework's own id for it
        named = [wanted for wanted in unseen if wanted.call.name == name]
        return _nearest([wanted for wanted in named if wanted.call.input == arguments] or named, lane)

    def _infer(self, scope: Scope, results: Iterable[ToolResult]) -> None:
        """Record the tools whose results go back to the model and which nobody saw running."""
        for result in results:
            wanted = self._answering(result, scope.lane.path)
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

    def _answering(self, result: ToolResult, lane: str) -> _Wanted | None:
        found = []
        for wanted in self._wanted:
            if result.id is not None and wanted.call.id is not None:
                if wanted.call.id == result.id:
                    found.append(wanted)
            elif wanted.call.name == result.name:
                found.append(wanted)
        return _nearest(found, lane)


def _nearest(found: list[_Wanted], lane: str | None) -> _Wanted | None:
    """Return the first that was asked for in this lane, else in the nearest above it: ids and names come again."""
    if len(found) < 2 or lane is None:
        return found[0] if found else None
    return max(found, key=lambda wanted: len(wanted.lane) if f"{lane}.".startswith(f"{wanted.lane}.") else -1)


def _bound(held: dict[Any, Any]) -> None:
    """Forget the oldest, where a run has more than can be kept in mind."""
    if len(held) > _limits.CONVERSATIONS_MAX:
        del held[next(iter(held))]
