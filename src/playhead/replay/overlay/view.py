"""Find what a program means by what it gives to a function of the operating system."""

from __future__ import annotations

import os
import re
import sys
from types import FrameType, TracebackType
from typing import Any

from playhead.capture.sources.files import not_the_agents
from playhead.replay.overlay.layers import Found, Layers

_BETWEEN = ("playhead.replay.overlay", "playhead.capture.hooks")


class Naming:
    """Let errors carry the paths that the program gave."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Any, second: Any = None) -> None:
        self._first, self._second = first, second

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: Any, problem: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(problem, OSError) and problem.errno is not None:
            for name, path in (("filename", self._first), ("filename2", self._second)):
                if path is None:
                    delattr(problem, name)  # a None that is set is shown
                else:
                    setattr(problem, name, path)


# Links of the system that lead to files of the world: the folder and the root of a process, and what it has open.
_LEADS = re.compile(r"(/proc/[^/]+(?:/task/[^/]+)?/(?:cwd|root|fd/\d+)|/dev/fd/\d+)(/.*)?$", re.DOTALL)


class View:
    """The file system as the program sees it."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.raw = layers.raw

    def find(self, path: Any, folder: Any = None, *, follow: bool = True) -> Found | None:
        """Return what a path means; None where it is no path of ours to judge, and the system says what is wrong."""
        text = given_text(path)
        if text is None or not isinstance(folder, (int, type(None))):
            return None
        if text.startswith(not_the_agents()) and self._has_nothing_of(text):
            return None
        with self.layers.lock:
            return self.layers.walk(self.whole(text, folder), follow=follow)

    def whole(self, text: str, folder: int | None = None) -> str:
        """Return a path from the root on, with all that is in it."""
        if text.startswith("/"):
            return self.led(text) if text.startswith("/proc/") else text
        return os.path.join(self.layers.here() if folder is None else self.layers.of_number(folder), text)

    def led(self, text: str, *, itself: bool = False) -> str:
        """Return where a path of the system leads that stands for a folder or an open file of a process.

        What lies below it is meant, or, with `itself`, also what it stands for.
        """
        found = _LEADS.match(text)
        if found is None or not (itself or found[2]):
            return text
        try:
            there = os.fsdecode(self.raw.readlink(found[1]))
        except OSError:
            return text
        whole = os.path.normpath(there + (found[2] or ""))
        if not there.startswith("/") or whole.startswith(("/proc/", "/dev/", "/sys/")):
            return text  # a pipe, a terminal
        return whole.removeprefix(self.layers.files) if whole.startswith(self.layers.files + "/") else whole

    def meant(self, text: str, folder: int | None = None) -> str:
        """Return a path as the recorder names it."""
        if folder is not None and not text.startswith("/"):
            return self.whole(text, folder)
        plain = text.startswith("/") and "/." not in text and "//" not in text
        return text if plain else os.path.normpath(self.whole(text))

    def _has_nothing_of(self, text: str) -> bool:
        """Say whether a file of Python or of a package, as most are that are looked for, is in the world alone."""
        root = next(root for root in not_the_agents() if text.startswith(root))
        return "/../" not in text and self.raw.look(self.layers.files + root.rstrip("/")) is None


def given_text(path: Any) -> str | None:
    """Return the text of a path; None for numbers of open files, and for what is none."""
    if isinstance(path, (int, type(None))):
        return None
    try:
        text = os.fsdecode(path)
    except (TypeError, UnicodeEncodeError):
        return None
    return text if text and "\0" not in text else None


def given(path: Any) -> Any:
    """Return a path as errors and audit events have it."""
    return os.fspath(path)


def program() -> FrameType | None:
    """Return the frame of whoever called a function that the overlay stands in place of."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
        frame = frame.f_back
    return frame
