"""Replace attributes of other people's classes and modules, and put them back."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any

_ABSENT = object()
# The sets in which `os` says which of its functions can do what.
_SUPPORTING = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)


class Unbound(staticmethod):  # type: ignore[type-arg]  # which is called without a frame of Python
    """Call a function that does not become a method where a class holds it, as one of C does not."""

    def __reduce__(self) -> str:
        return str(self.__name__)  # by name, as a function is

    def __repr__(self) -> str:
        return repr(getattr(self.__wrapped__, "__wrapped__", self.__wrapped__))


class Patches:
    """Remember what was replaced, so that it can be restored by identity."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []

    @property
    def done(self) -> bool:
        """Say whether anything is replaced."""
        return bool(self._done)

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put `make(original)` in the place of an attribute that the owner has itself."""
        self._put(owner, name, owner.__dict__[name], make)

    def cover(self, owner: type, name: str, make: Callable[[Any], Any]) -> None:
        """Put `make(inherited)` into a class in front of what it inherits, where that itself cannot be replaced."""
        if name in owner.__dict__:
            self.replace(owner, name, make)
            return
        replacement = make(getattr(owner, name))
        self._done.append((owner, name, _ABSENT, replacement))
        setattr(owner, name, replacement)

    def replace_inner(self, function: Any, variable: str, make: Callable[[Any], Any]) -> None:
        """Put `make(original)` in the place of what a function closed over, as a decorator does with what it decorates.

        Whoever has imported the function by name before is covered too: it is the same function.
        """
        cell: CellType = function.__closure__[function.__code__.co_freevars.index(variable)]
        self._put(cell, "cell_contents", cell.cell_contents, make)

    def _put(self, owner: Any, name: str, original: Any, make: Callable[[Any], Any]) -> None:
        replacement = make(_bound(original) if isinstance(owner, type) else original)
        if isinstance(owner, ModuleType) and isinstance(replacement, FunctionType):
            # What was written in C says that it is from elsewhere; under this name it is found again, by pickle say.
            replacement.__module__, replacement.__name__, replacement.__qualname__ = owner.__name__, name, name
            if isinstance(original, BuiltinFunctionType):
                replacement = Unbound(replacement)
        for group in _supporting(owner, original):
            group.add(replacement)
        self._done.append((owner, name, original, replacement))
        setattr(owner, name, replacement)

    def restore(self) -> None:
        """Put back what was there.

        Where somebody patched over us meanwhile, theirs stays: what we put below it does nothing without a run.
        """
        while self._done:
            owner, name, original, replacement = self._done.pop()
            there = owner.cell_contents if isinstance(owner, CellType) else owner.__dict__.get(name)
            if there is not replacement:
                continue
            for group in _supporting(owner, original):
                group.discard(replacement)
            if original is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


def _supporting(owner: Any, function: Any) -> list[set[Any]]:
    return [group for group in _SUPPORTING if function in group] if owner is os else []


def _bound(original: Any) -> Any:
    """Return what to call with an object first.

    Others may have put there something that wants to be looked up on the object, as OpenTelemetry does with wrapt.
    """
    if isinstance(original, (FunctionType, classmethod, staticmethod)) or not hasattr(original, "__wrapped__"):
        return original  # the method of a class says of itself what it is, and whoever patches it must know

    @functools.wraps(original)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        return original.__get__(self, type(self))(*args, **options)

    return call
