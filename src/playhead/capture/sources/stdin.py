"""The standard input: what came from it, piece by piece, whoever reads."""

from __future__ import annotations

import builtins
import io
import os
from typing import TYPE_CHECKING, Any

from playhead.capture import hooks
from playhead.capture.hooks import What
from playhead.event.reads import Group

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

_OF = "sys.stdin"


def watch() -> None:
    """Watch the ways in which a program can read from it."""
    for name in ("read", "readall", "readinto"):
        hooks.watch(io.FileIO.__dict__[name], _OF, What.STDIN, None, _read)
    hooks.watch(os.read, _OF, What.STDIN, None, _read)
    hooks.watch(builtins.input, _OF, What.CALL, None, _typed)


def _read(
    of: str, by: str, pack: Any, span: Any, file: Any, args: tuple[Any, ...], named: Any, result: Any, error: Any
) -> None:
    if error is not None or result is None:
        return  # nothing was there, and nothing was waited for
    content = result if isinstance(result, bytes) else bytes(memoryview(args[0]).cast("B")[:result])
    _keep(pack, span, content)


def _typed(
    of: str, by: str, pack: Any, span: Any, module: Any, args: tuple[Any, ...], named: Any, result: Any, error: Any
) -> None:
    """Keep a line that came from a terminal: then `input` does not read the file."""
    if os.isatty(0) and os.isatty(1) and error is None:
        _keep(pack, span, f"{result}\n".encode("utf-8", "surrogateescape"))


def joined(recording: Recording, order: str, groups: list[Group]) -> tuple[str, list[Group]]:
    """Return what was read with the pieces of the standard input as one, where a secret is spread over several."""
    for place, (of, by, form, count, values, sizes) in enumerate(groups):
        if of == _OF and count > 1:
            whole = b"".join(value if isinstance(value, bytes) else value.encode() for value in values)
            if (clean := recording.clean(whole)) != whole:
                kept = [_as_text(clean), *[""] * (count - 1)]  # as many pieces as the order tells of
                return order, [*groups[:place], (of, by, form, count, kept, sizes), *groups[place + 1 :]]
    return order, groups


def _keep(pack: Any, span: Any, content: bytes) -> None:
    pack.add(_OF, "", _as_text(content), len(content) + 3, span)


def _as_text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
