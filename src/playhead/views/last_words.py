"""Read off the end of what a program wrote to stderr why it failed, and where in its own code."""

from __future__ import annotations

import re
from typing import Any

from playhead import _limits
from playhead.views import text

TRACEBACK = "Traceback (most recent call last):"
# What a program's error says of how it ended, and not why.
PROGRAM_ERRORS = ("ProgramFailed", "ProgramKilled")
_LINKS = (  # between the traceback of an error and that of the one that came of it
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_INDENT = " |+-"  # that tracebacks of a group stand behind
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>[0-9]+)(?:, in (?P<name>.+))?$')


class LastWords:
    """Take what a program writes, piece by piece."""

    def __init__(self) -> None:
        self._tail = ""

    def take(self, written: str) -> None:
        """Look at the next piece."""
        self._tail = (self._tail + written)[-_limits.LAST_WORDS_CHARACTERS_MAX :]

    @property
    def line(self) -> str:
        """Return the line that says most of how the program ended; it may be empty."""
        return read(self._tail)[0]

    @property
    def raised(self) -> str | None:
        """Return what the last traceback says was raised; None where there is none, or only its beginning."""
        return raised(self._tail)


def read(stderr: str) -> tuple[str, str | None]:
    """Return what was raised last, else the last line; and file, line and function of the program's own last frame."""
    lines = stderr[-_limits.LAST_WORDS_CHARACTERS_MAX :].rstrip().split("\n")
    error, frames = _last_traceback(lines)
    whole = next((line for line in reversed(lines) if not line.startswith(" ")), "")
    # Below an error of Playhead's own commands stands what to do about it.
    error = error or (whole if whole.startswith("playhead: ") else lines[-1].strip(_INDENT))
    return text.cut(error, _limits.CELL_CHARACTERS_MAX), text.error_place({"frames": frames})


def behind(stderr: str) -> str | None:
    """Return the innermost error behind the one that was raised last; None where none is told."""
    lines, found = stderr[-_limits.LAST_WORDS_CHARACTERS_MAX :].split("\n"), None
    while (heading := _last_heading(lines)) is not None:
        before = [line for line in lines[:heading] if line.strip(_INDENT)]
        if not before or before[-1].strip(_INDENT) not in _LINKS:
            break
        lines = before[:-1]
        found = _last_traceback(lines)[0] or found
    return None if found is None else text.cut(found, _limits.CELL_CHARACTERS_MAX)


def of_process(data: dict[str, Any], resolve: text.Resolve | None) -> list[str]:
    """Say the last line that a process wrote where the agent has read it: to stderr, else to stdout."""
    for stream in ("stderr", "stdout"):
        written = text.followed(data.get(stream), resolve)
        if isinstance(written, str) and (last := read(written)[0]):
            return [f"{stream}: … {last}"]
    return []


def raised(written: str) -> str | None:
    """Return what the last traceback in a text says was raised; None where there is none, or only its beginning."""
    return _last_traceback(written.split("\n")[:-1])[0]


def _last_traceback(lines: list[str]) -> tuple[str | None, list[dict[str, str]]]:
    """Return what the last traceback says was raised, and its frames."""
    heading = _last_heading(lines)
    if heading is None:
        return None, []
    depth = _depth(lines[heading])
    frames: list[dict[str, str]] = []
    for line in lines[heading + 1 :]:
        if (frame := _FRAME.search(line)) is not None:
            frames.append(frame.groupdict())
        elif _depth(line) <= depth and (error := line.strip(_INDENT)):
            return error, frames
    return None, frames


def _last_heading(lines: list[str]) -> int | None:
    return max((at for at, line in enumerate(lines) if line.endswith(TRACEBACK)), default=None)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(_INDENT))
