"""The standard input: what came from it, piece by piece, whoever reads."""

from __future__ import annotations

import builtins
import io
import os
from typing import Any

from playhead.capture import hooks
from playhead.capture.hooks import What

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


def _keep(pack: Any, span: Any, content: bytes) -> None:
    try:
        value: str | bytes = content.decode()
    except UnicodeDecodeError:
        value = content
    pack.add(_OF, "", value, len(content) + 3, span)
