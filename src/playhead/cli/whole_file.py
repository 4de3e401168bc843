"""Write an answer into a file."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from playhead.errors import UsageError


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Give a file that takes its place when all of it is written, so that a failure leaves nothing half done."""
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise UsageError(f"cannot write to {target}", hint="Name a file in a folder that exists.")
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with aside.open("xb") as file:
            yield file
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
