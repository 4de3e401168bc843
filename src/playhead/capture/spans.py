"""Open and close spans: steps, and calls that are made by hand. Without a current run they do nothing.

Each span is a `with` and an `async with`; recording never awaits, so the two differ in nothing.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextvars import Token
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from playhead.capture import abandoned, answering, enforcing, printing, repeats
from playhead.capture.answered import Outcome
from playhead.capture.arguments import arguments_of
from playhead.capture.around import around
from playhead.capture.scope import Lane, Scope, current, live
from playhead.capture.usage import tokens
from playhead.event import kinds
from playhead.event.keys import ASKED
from playhead.event.plain import describe_error

P = ParamSpec("P")
R = TypeVar("R")

# By name, so that neither asyncio nor trio is imported for it.
_CANCELLED = frozenset({"CancelledError", "Cancelled", "GeneratorExit", "KeyboardInterrupt"})
# What a framework raises to leave work that it takes up again, as after asking a person; and whose it is.
_PAUSED = {"GraphBubbleUp": "langgraph", "CallDeferred": "pydantic_ai", "ApprovalRequired": "pydantic_ai"}


def outcome(error: BaseException | None) -> kinds.Status:
    """Say how something ended, from the exception that left it."""
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return "ok"
    return "cancelled" if any(_is_cancellation(kind) for kind in type(error).__mro__) else "error"


def _is_cancellation(kind: type) -> bool:
    name = kind.__name__
    return name in _CANCELLED or (name in _PAUSED and kind.__module__.partition(".")[0] == _PAUSED[name])


class Span:
    """What lies between an opening and a closing event. One object may be entered again, also inside itself."""

    keeps_items = True  # of a generator that it is around
    watches_waiting = False  # of a coroutine that it is around
    begins_later = False  # what is called first is around it still: `current` says what is inside

    def __init__(self) -> None:
        self.span: str | None = None
        self.chunks: int | None = None
        self.yielded = 0  # items of a generator so far
        self.waited = False  # a coroutine inside let the event loop go on
        self._outside: Scope | None = None
        self._inside: Scope | None = None
        self._token: Token[Scope | None] | None = None
        self._around: list[Any] = []  # the same four, of the entries that this one is inside of

    def opening(self, scope: Scope) -> kinds.Payload:
        """Return the event that opens this span."""
        raise NotImplementedError

    def closing(self, status: kinds.Status, error: dict[str, Any] | None) -> kinds.Payload:
        """Return the event that closes it."""
        raise NotImplementedError

    def begin(self) -> None:
        """Record the opening event, where a run is current."""
        scope = self._outside = live()
        self.span = self._inside = None
        if scope is not None:
            self.span = self._emit_opening(scope)
            self._inside = scope.inside(self.span)

    def _emit_opening(self, scope: Scope) -> str | None:
        return scope.recording.emit(self.opening(scope), parent=scope.span)

    def end(self, error: BaseException | None = None) -> None:
        """Record the closing event."""
        scope, self._outside = self._outside, None
        if scope is None:
            return
        scope.recording.turns.leave(self.span)
        status = outcome(error)
        described = self.describe(error) if error is not None and status != "ok" else None
        if self.span is None:
            scope.recording.lose("unopened_span")
        else:
            scope.recording.emit(self.closing(status, described), span=self.span, parent=scope.span)

    def describe(self, error: BaseException) -> dict[str, Any]:
        """Say what is recorded of an exception that left this span."""
        return describe_error(error)

    def taped(self) -> Outcome | None:
        """Return what a replay has in place of what happens inside of this; None where that is to happen."""
        return None

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make this span the current one for a while: a generator must not leave it so while it is suspended."""
        if self._inside is None or abandoned.collecting():
            yield
            return
        token = current.set(self._inside)
        try:
            yield
        finally:
            current.reset(token)

    def __enter__(self) -> Self:
        self._around.append((self.span, self._outside, self._inside, self._token))
        self.begin()
        self._token = None if self._inside is None or self.begins_later else current.set(self._inside)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        token, self._token = self._token, None
        if token is not None:
            try:
                current.reset(token)
            except ValueError:  # entered in another context, as when a task is finalised by the collector
                current.set(self._outside)
        try:
            self.end(error)
        finally:
            if len(self._around) > 1:
                self.span, self._outside, self._inside, self._token = self._around[-1]
            self._around.pop()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class Step(Span):
    """A span that the author of the agent named; a decorator too."""

    keeps_items = False

    def __init__(
        self, name: str, attributes: Mapping[str, Any] | None = None, called: tuple[dict[str, Any], Any] | None = None
    ) -> None:
        """Prepare; `called` has where the function is that is this step, and its arguments by name."""
        super().__init__()
        self.name = name
        self.output: Any = None  # of a function
        self._given = dict(attributes or {})
        self._set: dict[str, Any] = {}
        self._entrypoint = None if called is None else called[0]
        self._input = None if called is None else called[1]

    def set_attributes(self, attributes: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Add attributes; they are recorded when the step closes."""
        self._set.update(attributes or {}, **more)

    def opening(self, scope: Scope) -> kinds.Payload:
        attempt = scope.recording.attempt(scope.span, self.name)
        return kinds.StepStarted(
            name=self.name, attempt=attempt, attributes=self._given, input=self._input, entrypoint=self._entrypoint
        )

    def closing(self, status: kinds.Status, error: dict[str, Any] | None) -> kinds.Payload:
        return kinds.StepFinished(status=status, error=error, attributes=self._set, output=self.output)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Make every call of a function a step of this name, with its arguments and what it gives back."""
        from playhead.capture.environment import place_of  # here: it imports this, by way of git

        place = place_of(function)
        yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)  # items are not kept

        def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
            return Step(self.name, self._given, (place, arguments_of(function, args, kwargs, whole=True)))

        def returned(span: Any, result: Any) -> None:
            span.output = {"yielded": span.yielded} if yields else result

        return around(function, make, returned)


class ModelCall(Span):
    """A model call that is made by hand. Call `respond` with the answer before the `with` ends."""

    def __init__(self, provider: str | None, model: str | None, request: Any, attempt: int = 1) -> None:
        super().__init__()
        self._asked = (provider, model, request, attempt)
        self._answer: dict[str, Any] = {}

    def respond(
        self,
        response: Any,
        *,
        usage: Any = None,
        finish: str | None = None,
        model: str | None = None,
        chunks: Any = None,
    ) -> None:
        """Say what the model answered, what it cost in tokens, and why it stopped.

        `usage` counts `input`, `output`, `cached` and `reasoning`; the names that providers use are understood too.
        """
        self._answer = {"response": response, "finish": finish, "model": model, "chunks": chunks}
        if usage is not None:
            self._answer["usage"] = tokens(usage)

    def begin(self) -> None:
        enforcing.model(live(), self._asked[0], self._asked[1])
        super().begin()
        if self._outside is not None:
            self._outside.recording.turns.by_hand.add(self.span)

    def end(self, error: BaseException | None = None) -> None:
        if self._outside is not None:
            self._outside.recording.turns.by_hand.discard(self.span)
            provider, model = self._asked[:2]
            enforcing.answered(self._outside.recording, provider, (model,), self._answer.get("usage"))
        super().end(error)

    def opening(self, scope: Scope) -> kinds.Payload:
        provider, model, request, attempt = self._asked
        return kinds.ModelInvoked(provider=provider, model=model, request=request, attempt=attempt)

    def closing(self, status: kinds.Status, error: dict[str, Any] | None) -> kinds.Payload:
        return kinds.ModelResponded(status=status, error=error, **self._answer)


class ToolCall(Span):
    """One call of a tool.

    A `framework` that runs the tools of an agent tells of each call itself. Where the author decorated that tool too,
    both would tell of one call, so the one inside is passed through.
    """

    watches_waiting = True

    def __init__(
        self, name: str, arguments: Any, effects: list[str], call: str | None = None, *, framework: bool = False
    ) -> None:
        super().__init__()
        self._name, self._arguments, self._effects, self._call = name, arguments, effects, call
        self._framework = self._waits = framework
        self.output: Any = None
        self.failure: BaseException | None = None  # the tool's own, where the framework makes something else of it
        self.prepare: Callable[[Any, Outcome], None] = lambda call, outcome: None  # of a framework
        self._raised: BaseException | None = None
        self._handled = False
        self._lane: Lane | None = None
        self._counted = (0, 0)  # children of its lane, and timers, when it began
        self._replayed: Outcome | None = None
        self._around_tool: str | None = None
        self._began_us = 0
        self._printed: printing.Printed | None = None
        self._printing: Token[printing.Printed | None] | None = None

    def opening(self, scope: Scope) -> kinds.Payload:
        call, asked_by = self._call, None
        turns = scope.recording.turns
        if scope.span not in turns.tools:  # a tool inside a tool was asked for by that one
            call, asked_by = turns.running(self._name, self._arguments, call, scope)
        return kinds.ToolCalled(
            name=self._name, input=self._arguments, effects=self._effects, call=call, asked_by=asked_by
        )

    def _emit_opening(self, scope: Scope) -> str | None:
        def began(at_us: int) -> None:
            self._began_us = at_us  # what it prints is counted from here: a replay puts that in order with the rest

        enforcing.tool(scope, self._name)
        payload = self.opening(scope)
        fields, keyed = kinds.as_fields(payload), ASKED[payload.KIND]
        return scope.recording.emit_fields(
            payload.KIND, fields, parent=scope.span, opens=True, keyed=keyed, on_written=began
        )

    def end(self, error: BaseException | None = None) -> None:
        if self._outside is not None:
            self._outside.recording.turns.tools.pop(self.span, None)
            repeats.inside(self._outside.lane, self._around_tool)
        if self._replayed is not None:
            self._replayed.leave()
        self._raised, self._handled = error, error is None and self.failure is not None
        super().end(error if self.failure is None else self.failure)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make this span the current one for a while, and keep what is printed meanwhile."""
        with super().current():
            quiet = self._printed is None or abandoned.collecting()
            token = None if quiet else printing.here.set(self._printed)
            try:
                yield
            finally:
                if token is not None:
                    printing.here.reset(token)

    def __enter__(self) -> Self:
        super().__enter__()
        if self._printed is not None and not self.begins_later:
            self._printing = printing.here.set(self._printed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._printing is not None:
            token, self._printing = self._printing, None
            try:
                printing.here.reset(token)
            except ValueError:  # entered in another context
                printing.here.set(None)
        super().__exit__(kind, error, trace)

    def describe(self, error: BaseException) -> dict[str, Any]:
        return describe_error(error, whole=True)

    def taped(self) -> Outcome | None:
        player, scope = answering.player, self._outside
        answer = None if player is None or scope is None else player.answer(self.span)
        if player is not None and scope is not None and answer is not None:
            self._replayed = Outcome(player, answer, scope.lane)
            self.prepare(self, self._replayed)
        return self._replayed

    def begin(self) -> None:
        scope = live()
        if scope is not None and self._is_told(scope):
            self.span = self._inside = self._outside = None
        else:
            self._replayed = None
            if scope is not None:
                self._lane, self._counted = scope.lane, (scope.lane.spawned, scope.lane.timers)
            super().begin()
            if scope is not None and self.span is not None:
                scope.recording.turns.tools[self.span] = self
                self._around_tool = repeats.inside(scope.lane, self.span)
                runs = answering.player is None or answering.player.is_in_world(scope.lane.path)
                self._printed = printing.begun(self._began_us) if runs else None
                if self._printed is not None:
                    self._printed.yielded = lambda: self.yielded
        if scope is not None and any(effect != "read" for effect in self._effects):
            scope.recording.sync()  # that it was attempted must be on the disk before the world changes

    def _is_told(self, scope: Scope) -> bool:
        """Say whether the framework that calls this tool has told of this call already."""
        around = scope.recording.turns.tools.get(scope.span)
        if around is None or not around._framework:
            return False
        if self._framework and self._call is not None:
            return self._call == around._call  # one layer of a framework in another, which may rename it
        told = self._name == around._name and around._waits
        around._waits = False  # the function has begun: what it calls from now on is another call
        return told

    def closing(self, status: kinds.Status, error: dict[str, Any] | None) -> kinds.Payload:
        if self._replayed is not None and self._replayed.given:
            return self._replayed.closing()
        if error is None and self._raised is not None:
            error = self.describe(self._raised)  # `sys.exit()` is no failure, and yet it came out of the tool
        here = (0, 0) if self._lane is None else (self._lane.spawned, self._lane.timers)
        spawned, timers = (now if now > before else None for now, before in zip(here, self._counted, strict=True))
        return kinds.ToolReturned(
            status=status,
            output=self.output,
            error=error,
            chunks=self.chunks,
            handled=self._handled,
            waited=self.waited,
            spawned=spawned,
            timers=timers,
            printed=None if self._printed is None else self._printed.pieces or None,
        )
