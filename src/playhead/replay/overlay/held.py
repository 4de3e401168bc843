"""Reach a function that others hold as a default, where nothing was compiled that reaches it wherever it is held."""

from __future__ import annotations

import os
import sys
from types import FunctionType
from typing import Any

from playhead.capture import hooks


class Held:
    """The functions of `tempfile` that delete what it made: each has `os.unlink` as a default."""

    def __init__(self) -> None:
        self._before: list[tuple[FunctionType, tuple[Any, ...]]] = []

    def replace(self, unlink: Any) -> None:
        """Let them have what is in its place now."""
        module = sys.modules.get("tempfile")
        if hooks.compiled is not None or module is None:
            return
        for kind in [value for value in vars(module).values() if isinstance(value, type)]:
            for function in vars(kind).values():
                if isinstance(function, FunctionType) and function.__defaults__ and unlink in function.__defaults__:
                    self._before.append((function, function.__defaults__))
                    function.__defaults__ = tuple(
                        os.unlink if value is unlink else value for value in function.__defaults__
                    )

    def restore(self) -> None:
        """Put back what they had."""
        while self._before:
            function, defaults = self._before.pop()
            function.__defaults__ = defaults
