"""Declare what is volatile in the questions of an agent, so that a replay takes them for the same."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar, overload

from playhead.errors import UsageError
from playhead.event.kinds import CALLS
from playhead.event.normalise import Function, Rule, register, rule_of

_F = TypeVar("_F", bound=Function)


@overload
def normaliser(given: _F, /) -> _F: ...
@overload
def normaliser(*, kinds: Collection[str] = (), names: Collection[str] = ()) -> Callable[[_F], _F]: ...
@overload
def normaliser(
    given: str,
    /,
    *,
    path: str | None = None,
    pattern: str | None = None,
    instead: str | None = None,
    kinds: Collection[str] = (),
    names: Collection[str] = (),
) -> None: ...
def normaliser(
    given: Any = None,
    /,
    *,
    path: str | None = None,
    pattern: str | None = None,
    instead: str | None = None,
    kinds: Collection[str] = (),
    names: Collection[str] = (),
) -> Any:
    """Register a normaliser: what is volatile in a question, and stands for nothing that matters to the answer.

    As a decorator of a function `(kind, name, input) -> input`, bare or with `kinds` and `names`; or with a name and a
    rule: `normaliser("today", path="/messages/*/content", pattern=r"\\d{4}-\\d\\d-\\d\\d")`. It counts where two runs
    are compared; what is recorded stays as it is.
    """
    for wrong in (one for one in (kinds, names) if isinstance(one, str)):
        raise UsageError(f"kinds and names are lists of texts, not {wrong!r}")
    if unknown := sorted(set(kinds) - CALLS):
        raise UsageError(f"{unknown[0]!r} is no kind of question", hint=f"There are {', '.join(sorted(CALLS))}.")
    if isinstance(given, str):
        register(rule_of(given, path=path, pattern=pattern, instead=instead, kinds=kinds, names=names))
        return None
    if path is not None or pattern is not None or instead is not None:
        raise UsageError(
            "a normaliser with a path or a pattern needs a name",
            hint='For instance playhead.normaliser("today", pattern=r"\\d{4}-\\d\\d-\\d\\d").',
        )

    def decorate(function: _F) -> _F:
        if not callable(function):
            raise UsageError(f"{function!r} is no function", hint="A normaliser is called as (kind, name, input).")
        name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
        register(Rule(name, function=function, kinds=frozenset(kinds), names=frozenset(names)))
        return function

    return decorate if given is None else decorate(given)
