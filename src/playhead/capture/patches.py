"""Replace attributes of other people's classes and modules, and put them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Patches:
    """Remember what was replaced, so that it can be restored by identity."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put `make(original)` in the place of an attribute that the owner has itself."""
        original = owner.__dict__[name]
        replacement = make(original)
        self._done.append((owner, name, original, replacement))
        setattr(owner, name, replacement)

    def restore(self) -> None:
        """Put back what was there.

        Where somebody patched over us meanwhile, theirs stays: what we put below it does nothing without a run.
        """
        while self._done:
            owner, name, original, replacement = self._done.pop()
            if owner.__dict__.get(name) is replacement:
                setattr(owner, name, original)
