"""Keep what a replay was kept from doing, by all of its processes, for its report."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from playhead.capture import callers
from playhead.errors import Refused

_INSTALLED = ("site-packages", "dist-packages")


class Block(NamedTuple):
    """One thing that was refused."""

    what: str  # the audit event that told of it, or the library
    target: str
    at: str  # file and line of the code that wanted it


class Blocked:
    """A file with one line for each thing that was refused."""

    def __init__(self, scratch: Path) -> None:
        self._path = Path(os.path.realpath(scratch)) / "blocked"

    def refuse(self, what: str, refusal: Refused) -> NoReturn:
        """Keep that something is refused, and refuse it: also where it cannot be kept."""
        try:
            self.add(what, refusal.target)
        except OSError as problem:
            raise refusal from problem
        raise refusal

    def add(self, what: str, target: str) -> None:
        """Keep that something was refused, with the line of the program that wanted it."""
        line = json.dumps([what, target, wanted_at(sys._getframe(1))]) + "\n"
        number = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(number, line.encode())  # in one piece: other processes write too
        finally:
            os.close(number)

    def all(self) -> list[Block]:
        """Return what was refused so far."""
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return []
        return [Block(*json.loads(line)) for line in text.splitlines()]


def wanted_at(frame: FrameType | None) -> str:
    """Return file and line of the agent's code that led here; of a library that it uses where it has none."""
    first = ""
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str) or callers.sort_of(name) == callers.AGENT:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            if not any(folder in frame.f_code.co_filename for folder in _INSTALLED):
                return place
            first = first or place
        frame = frame.f_back
    return first
