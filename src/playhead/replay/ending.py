"""End a program before its own end."""

from __future__ import annotations

import contextlib
import gc
import io


def flush_all() -> None:
    """Write out what the program has written so far, as its own end would do."""
    for one in gc.get_objects():
        if isinstance(one, io.TextIOWrapper | io.BufferedWriter | io.BufferedRandom):
            with contextlib.suppress(OSError, ValueError):
                one.flush()
