"""Keep at which line of the program something happened or was printed in a replay, to name it where it differs.

A line of output is known by its text: what was put together of the pieces of several threads, or written past `sys`,
is simply not found, and nobody is told a wrong place.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from playhead import _limits
from playhead.replay.where import agents_line

_NAME = "places-"  # of the file of each process, in the scratch folder
_PIECES_MAX = 1000  # of one line
_EACH_MAX = 3  # places at which the same line is printed


class Places:
    """The lines of the program that led to events, by their seq, and that printed, by stream and text."""

    def __init__(self) -> None:
        self._events: dict[int, str] = {}
        self._answered: dict[int, str] = {}  # by the seq of the recorded question
        self._printed: dict[str, list[str]] = {}
        self._begun: dict[str, tuple[list[str], str]] = {}  # by stream: the pieces of a line without an end, and where

    def keep(self, seq: int) -> None:
        """Keep which line led here, where an event was recorded."""
        if len(self._events) < _limits.PLACES_KEPT_MAX and (line := agents_line(sys._getframe(1))):
            self._events[seq] = line

    def keep_answered(self, seq: int) -> None:
        """Keep which line asked a recorded question again, whose own event is written later."""
        if len(self._answered) < _limits.PLACES_KEPT_MAX and (line := agents_line(sys._getframe(1))):
            self._answered[seq] = line

    def watch(self) -> None:
        """Keep from now on what prints to the outputs of this process."""
        for name in ("stdout", "stderr"):
            stream: Any = getattr(sys, f"__{name}__")
            if stream is not None:
                stream.write = self._writing(stream.write, name)

    def _writing(self, original: Any, stream: str) -> Any:
        @functools.wraps(original)
        def write(text: str) -> Any:
            done = original(text)
            frame = _caller()
            if frame is not None and isinstance(text, str):
                self._print(stream, text, agents_line(frame))
            return done

        return write

    def _print(self, stream: str, text: str, line: str) -> None:
        *whole, rest = text.split("\n")
        pieces, _ = self._begun.pop(stream, ([], ""))
        for one in whole:
            self._add(stream, "".join((*pieces, one)), line)
            pieces = []
        if (rest or pieces) and len(pieces) < _PIECES_MAX:
            self._begun[stream] = [*pieces, rest] if rest else pieces, line

    def _add(self, stream: str, text: str, line: str) -> None:
        places = self._printed.get(digest := _digest(stream, text))
        if places is None and len(self._printed) < _limits.PLACES_KEPT_MAX:
            places = self._printed[digest] = []
        if line and places is not None and line not in places and len(places) < _EACH_MAX:
            places.append(line)

    def event(self, seq: int | None, recorded: int | None = None) -> str:
        """Return the line that led to an event of the replay, which is a recorded one again; empty for not known."""
        found = "" if seq is None else self._events.get(seq, "")
        return found or ("" if recorded is None else self._answered.get(recorded, ""))

    def printed(self, stream: str, text: str) -> str:
        """Return where a line of output was printed, or may have been; empty for not known."""
        return " or ".join(self._printed.get(_digest(stream, text), ()))

    def write(self, scratch: Path) -> None:
        """Leave it in the scratch folder, for whoever compares."""
        for stream, (pieces, line) in list(self._begun.items()):
            self._add(stream, "".join(pieces), line)
        with open(os.path.join(os.path.realpath(scratch), f"{_NAME}{os.getpid()}"), "w") as file:
            json.dump([self._events, self._answered, self._printed], file)

    @classmethod
    def read(cls, scratch: Path) -> Places:
        """Read what all processes of a replay have left."""
        found = cls()
        for path in scratch.glob(f"{_NAME}*"):
            try:
                events, answered, printed = json.loads(path.read_text())
            except ValueError:
                continue  # of a process that was ended while it wrote
            found._events.update({int(seq): line for seq, line in events.items()})
            found._answered.update({int(seq): line for seq, line in answered.items()})
            for digest, places in printed.items():
                found._printed[digest] = list(dict.fromkeys([*found._printed.get(digest, ()), *places]))
        return found


def _caller() -> FrameType | None:
    """Return who called our caller; None where the interpreter itself did, without a line of Python."""
    try:
        return sys._getframe(2)
    except ValueError:
        return None


def _digest(stream: str, text: str) -> str:
    return hashlib.blake2b(f"{stream} {text}".encode("utf-8", "replace"), digest_size=8).hexdigest()
