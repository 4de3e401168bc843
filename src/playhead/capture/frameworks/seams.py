"""Turn a function of a framework into tool calls or steps, whatever its objects look like in the release at hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from playhead.capture import guard
from playhead.capture.answered import Outcome
from playhead.capture.around import around
from playhead.capture.patches import Patches
from playhead.capture.scope import Scope, live
from playhead.capture.spans import Span, Step, ToolCall
from playhead.event import kinds

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

T = TypeVar("T")


class Unseen(Span):
    """A span that is not recorded: what happens in it belongs to the one around it."""

    keeps_items = False

    def begin(self) -> None:
        return


class FrameworkStep(Step):
    """A step that a framework names. Another one of its name is no second attempt: a loop comes by again."""

    def opening(self, scope: Scope) -> kinds.Payload:
        return kinds.StepStarted(name=self.name, attributes=self._given)


class AgentStep(FrameworkStep):
    """A step in which an agent speaks for itself: each of its turns is told from the model traffic."""

    def begin(self) -> None:
        super().begin()
        if self._outside is not None and self.span is not None:
            turns = self._outside.recording.turns
            turns.places.add(self.span)
            turns.single.add(self.span)

    def end(self, error: BaseException | None = None) -> None:
        outside, span = self._outside, self.span
        super().end(error)
        if outside is not None:
            outside.recording.turns.places.discard(span)
            outside.recording.turns.single.discard(span)


def tools(
    patches: Patches,
    owner: Any,
    name: str,
    called: Callable[..., ToolCall | None],
    given: Callable[[Any, Any], Any],
    replayed: Callable[[Any, Outcome], None] = lambda call, outcome: None,
) -> None:
    """Record every call of a function as a call of a tool.

    `called` gets what the function gets and returns the call, or None where it is none; `given` makes the output of
    that and of what the function returns. `replayed` gets that and what a replay has, and says there how to make of it
    what the framework expects; without it the output is handed back as it is.
    """

    def tell(*args: Any, **kwargs: Any) -> ToolCall | None:
        call = called(*args, **kwargs)
        if call is not None:
            call.prepare = replayed
        return call

    def returned(span: Any, result: Any) -> None:
        if isinstance(span, ToolCall):
            span.output = look(owner, lambda: given(span, result))

    _replace(patches, owner, name, tell, returned)


def steps(
    patches: Patches,
    owner: Any,
    name: str,
    started: Callable[..., Step | None],
    returned: Callable[[Any, Any], None] = lambda step, result: None,
) -> None:
    """Make every call of a function a step; `started` gets what it gets, and returns None where it is none."""

    def finished(span: Any, result: Any) -> None:
        if isinstance(span, Step):
            look(owner, lambda: returned(span, result))

    _replace(patches, owner, name, started, finished)


def _replace(
    patches: Patches, owner: Any, name: str, tell: Callable[..., Span | None], returned: Callable[[Any, Any], None]
) -> None:
    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Span:
        scope = live()
        if scope is None or not scope.recording.captures:
            return Unseen()
        span = look(owner, lambda: tell(*args, **kwargs)) or Unseen()
        return _stopping(span, scope.recording) if scope.recording.strict else span

    def replacement(original: Any) -> Any:
        if isinstance(original, classmethod):
            return classmethod(around(original.__func__, make, returned))
        return around(original, make, returned)

    patches.replace(owner, name, replacement)


def _stopping(span: Span, recording: Recording) -> Span:
    """Let a span that cannot be recorded end the run: its framework would hand an exception on to the model."""
    begin, end, what = span.begin, span.end, "what a framework runs"

    def stopping_begin() -> None:
        try:
            begin()
        except Exception as problem:
            guard.absorb(problem, recording, what, inside=True)

    def stopping_end(error: BaseException | None = None) -> None:
        try:
            end(error)
        except Exception as problem:
            guard.absorb(problem, recording, what, inside=True)

    span.begin, span.end = stopping_begin, stopping_end  # type: ignore[method-assign]
    return span


def look(owner: Any, reading: Callable[[], T]) -> T | None:
    """Read something off the objects of a framework; where they are not as we know them, say so in the run."""
    try:
        return reading()
    except Exception as problem:
        scope = live()
        source = getattr(owner, "__qualname__", None)
        name = owner.__name__ if source is None else f"{owner.__module__}.{source}"
        guard.not_captured(problem, name, () if scope is None else (scope.recording,))
        return None


def note_failure(error: BaseException) -> None:
    """Keep the error of the tool that runs here, of which its framework is about to make an answer."""
    scope = live()
    call = None if scope is None else scope.recording.turns.tools.get(scope.span)
    if call is not None:
        call.failure = error


def effects_of(function: Any) -> list[str]:
    """Return the effects that the author of a tool declared with `playhead.tool`."""
    return list(getattr(function, "playhead_effects", ()))


def parsed(arguments: Any) -> Any:
    """Return the arguments of a call as values, where they are JSON; else as they are."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments
