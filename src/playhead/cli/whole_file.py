"""Write an answer into a file."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from playhead.errors import UsageError

_FORM = re.compile(r"\.[a-z]{2,5}")  # an ending that says what a file is: not a date, a version, or a random one


def form_of(target: str | None, endings: Mapping[str, str], noun: str, *, said: str | None = None) -> str | None:
    """Return the form that is `said`, else that of a file by its ending; UsageError where that is of another sort."""
    ending = Path(target).suffix.lower() if target else ""
    found = said or endings.get(ending)
    if found is None and _FORM.fullmatch(ending):
        raise UsageError(
            f"{noun} is no {ending} file",
            hint=f"It can be {', '.join(endings)}; for the name as it is, say which of them it is: `--format html`.",
        )
    return found


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Give a file that takes its place when all of it is written, so that a failure leaves nothing half done.

    What is no file stays what it is, and is written into: /dev/null, a pipe. A link stays one, and leads to the file.
    """
    with _explained(target):
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            with target.open("wb") as file:
                yield file
            return
        place = Path(os.path.realpath(target))
        aside = place.with_name(f".playhead-{secrets.token_hex(8)}")
        file = aside.open("xb")
    try:
        with file:
            if mode is not None:
                os.chmod(aside, stat.S_IMODE(mode))
            yield file
        with _explained(target):
            os.replace(aside, place)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _explained(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        why = problem.strerror or type(problem).__name__
        raise UsageError(f"cannot write to {target}: {why}", hint="Name a file in a folder that exists.") from None
