"""Say what every error of ours has: a message, a hint, a code."""

from __future__ import annotations

from typing import Any

_OF_SYSTEM = ("strerror", "filename")  # which an error of the system keeps apart from what is said of it


class PlayheadError(Exception):
    """Base of every error that Playhead raises on purpose."""

    code = "error"
    default_hint = ""

    def __init__(self, message: str, *, hint: str | None = None, detail: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint
        self.detail = detail

    def __str__(self) -> str:
        """Say what is wrong and, below it, what to do next: most people meet an error in a traceback."""
        return f"{self.message}\n  {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it pass between processes, whatever arguments its class asks for: a pool would wait for it forever."""
        system = {name: getattr(self, name) for name in _OF_SYSTEM} if isinstance(self, OSError) else {}
        return _rebuilt, (type(self), self.args, {**self.__dict__, **system})

    def as_dict(self) -> dict[str, Any]:
        """Return the one JSON shape that errors have everywhere."""
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint, "detail": self.detail}}


def _rebuilt(kind: type[PlayheadError], args: tuple[Any, ...], state: dict[str, Any]) -> PlayheadError:
    error = kind.__new__(kind, *args)
    for name, value in state.items():
        setattr(error, name, value)
    return error
