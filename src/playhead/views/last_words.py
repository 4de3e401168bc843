"""Read off the end of what a program wrote to stderr why it failed, and where in its own code."""

from __future__ import annotations

import re
from typing import Any

from playhead import _limits
from playhead.views import text

# What a program's error says of how it ended, and not why.
PROGRAM_ERRORS = ("ProgramFailed", "ProgramKilled")
_INDENT = " |+-"  # that tracebacks of a group stand behind
_HEADING = "Traceback (most recent call last):"
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>[0-9]+)(?:, in (?P<name>.+))?$')
_SLASH = re.compile(r"[/\\]")
_INSTALLED = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python[0-9.]*)[/\\]|^<")


def read(stderr: str) -> tuple[str, str | None]:
    """Return the last line of the last traceback, or of all, and file, line and function of its innermost own frame."""
    lines = stderr[-_limits.LAST_WORDS_CHARACTERS_MAX :].rstrip().split("\n")
    heading = max((at for at, line in enumerate(lines) if line.endswith(_HEADING)), default=None)
    if heading is None:
        return text.cut(lines[-1].strip(), _limits.CELL_CHARACTERS_MAX), None
    depth = _depth(lines[heading])
    frames, error = [], ""
    for line in lines[heading + 1 :]:
        if (frame := _FRAME.search(line)) is not None:
            frames.append(frame)
        elif _depth(line) <= depth and (error := line.strip(_INDENT)):
            break
    error = error or lines[-1].strip(_INDENT)
    return text.cut(error, _limits.CELL_CHARACTERS_MAX), own_place([frame.groupdict() for frame in frames])


def own_place(frames: Any) -> str | None:
    """Return file, line and function of the innermost frame that is not of a package that was installed."""
    for frame in reversed(frames if isinstance(frames, list) else []):
        if isinstance(frame, dict) and _INSTALLED.search(file := str(frame.get("file"))) is None:
            name = frame.get("name")
            place = f"{re.split(_SLASH, file)[-1]}:{frame.get('line')}"
            return f"{place} in {name}" if name not in (None, "<module>") else place
    return None


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(_INDENT))
