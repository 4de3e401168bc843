"""Make the exceptions again that a client met when it was recorded: the same class, the same words, the same causes."""

from __future__ import annotations

import builtins
import re
import ssl
import sys
from typing import Any

NOT_REACHED = "NotReached"  # a live model of a replay: each library has its own error for that
_NUMBERED = re.compile(r"\[Errno (-?[0-9]+)\] (.*)", re.DOTALL)
_SSL_NUMBERS: dict[type, int] = {
    ssl.SSLWantReadError: 2,
    ssl.SSLWantWriteError: 3,
    ssl.SSLSyscallError: 5,
    ssl.SSLZeroReturnError: 6,
    ssl.SSLEOFError: 8,
}
_SSL_REASON = re.compile(r"\[(?:[A-Z0-9]+: )?([A-Z0-9_]+)\]")


def failure(error: dict[str, Any]) -> BaseException:
    """Make the exception that an error tells of; one whose class is not here is a ConnectionError that names it."""
    name, message = str(error.get("type")), str(error.get("message"))
    kind = kind_of(name)
    made = ConnectionError(f"{name}: {message}") if kind is None else saying(_made(kind, message), message)
    return caused(made, error)


def caused(made: BaseException, error: dict[str, Any]) -> BaseException:
    """Give an exception the cause that was recorded."""
    cause = error.get("cause")
    if isinstance(cause, dict):
        made.__cause__ = failure(cause)
    return made


def kind_of(name: str) -> type[BaseException] | None:
    """Find the class of an exception by its full name, in the modules that are loaded; nothing is imported for it."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, -1, -1):
        found: Any = sys.modules.get(".".join(parts[:cut])) if cut else builtins
        if found is not None:
            for part in parts[cut:]:
                found = getattr(found, part, None)
            if isinstance(found, type) and issubclass(found, BaseException):
                return found
    return None


def names_in(error: dict[str, Any]) -> set[str]:
    """Return the names of the functions that the exception went through."""
    frames = error.get("frames")
    return {str(frame.get("name")) for frame in frames} if isinstance(frames, list) else set()


def original(error: dict[str, Any]) -> OSError | None:
    """Return the first error of the system among the causes; None where there is none."""
    cause: Any = error
    while isinstance(cause, dict):
        kind = kind_of(str(cause.get("type")))
        if kind is not None and issubclass(kind, OSError) and kind.__module__ in ("builtins", "socket", "ssl"):
            made = failure(cause)
            assert isinstance(made, OSError)
            return made
        cause = cause.get("cause")
    return None


def _made(kind: type[BaseException], message: str) -> BaseException:
    if issubclass(kind, ssl.SSLError):
        problem = kind(_SSL_NUMBERS.get(kind, 1), message)
        found = _SSL_REASON.match(message)
        if found:
            problem.reason = found[1]
        return problem
    numbered = _NUMBERED.fullmatch(message) if issubclass(kind, OSError) else None
    try:
        if numbered:
            return kind(int(numbered[1]), numbered[2])
        return kind(message) if message else kind()
    except (TypeError, ValueError, AttributeError, LookupError):  # it takes something else, which nobody knows any more
        made = kind.__new__(kind)
        made.args = (message,)
        return made


def saying(made: BaseException, message: str) -> BaseException:
    """Return an exception that says what was recorded: this one, or one of a class that differs in nothing else."""
    try:
        if str(made) == message:
            return made
    except (TypeError, ValueError, AttributeError, LookupError):  # it was not made whole
        made.args = (message,)
    kind = type(made)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__str__": lambda self: message}
    try:
        same: Any = type(kind.__name__, (kind,), names)
    except TypeError:  # a class that nobody may extend, such as the cancellation of trio
        return RuntimeError(f"{kind.__module__}.{kind.__qualname__}: {message}")
    again: BaseException = same.__new__(same)
    again.args = made.args
    again.__dict__.update(made.__dict__)
    return again
