"""A command in a terminal of its own, and somebody who types."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


class Terminal:
    """A command in a terminal of its own, and somebody who types."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.pid, self._line = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(sys.executable, [sys.executable, "-m", "playhead", *arguments])
        self.seen = ""

    def until(self, text: str, seconds: float = 30) -> str:
        """Return what is shown up to a text, from where this was called last."""
        end, found = time.monotonic() + seconds, ""
        while not (at := re.search(text, found)):
            assert time.monotonic() < end, f"{text!r} never came: {found}"
            if select.select([self._line], [], [], 0.2)[0]:
                try:
                    found += os.read(self._line, 65536).decode(errors="replace").replace("\r\n", "\n")
                except OSError:
                    raise AssertionError(f"{text!r} never came, and it ended: {found}") from None
        return found[: at.end()]

    def type(self, line: str) -> str:
        """Type a line, and return what is shown until it can be typed again."""
        self.write(line)
        return self.until(r"\(playhead [\w-]+\) $")

    def write(self, line: str) -> None:
        """Type a line."""
        os.write(self._line, f"{line}\n".encode())

    def end(self, line: str) -> int:
        """Type a line that ends it, and return its exit code."""
        self.write(line)
        return self.exit_code()

    def exit_code(self) -> int:
        """Wait for its end."""
        while True:
            try:
                if not os.read(self._line, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for one in opened:
        try:
            os.kill(one.pid, 9)
            os.waitpid(one.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
