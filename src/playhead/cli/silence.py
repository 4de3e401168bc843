"""Keep what a program writes to ourselves, where it is not what was asked for."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def swallowed(so: bool = True) -> Iterator[None]:
    """Keep what the program writes from being passed on, if `so`: with --json, stdout holds only the answer."""
    if not so:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = [(number, os.dup(number)) for number in (1, 2)]
    for number, _ in kept:
        os.dup2(nowhere, number)
    os.close(nowhere)
    try:
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
