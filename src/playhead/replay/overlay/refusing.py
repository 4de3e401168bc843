"""Refuse what would write past the overlay: the interpreter tells of it before it is done."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from playhead.capture import answering, audit
from playhead.errors import WriteRefused
from playhead.replay.blocked import Blocked
from playhead.replay.overlay.layers import Layers
from playhead.replay.overlay.view import View, given_text

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Which arguments of an event are paths of what is changed.
_PATHS = {
    "os.chflags": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (1,),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.removexattr": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.setxattr": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
}
_OURS = "playhead.replay.overlay"


class Refusing:
    """Listens to what is done to files, and says no where that is not done by the overlay."""

    def __init__(self, view: View, blocked: Blocked) -> None:
        self._view, self._blocked = view, blocked
        self._layers: Layers = view.layers
        self._listeners: dict[str, audit.Listener] = {
            event: functools.partial(self._changed, event, paths) for event, paths in _PATHS.items()
        }
        self._listeners |= {"open": self._opened, "sqlite3.connect": self._connected}
        self._above = os.path.join(self._layers.scratch, "")

    def install(self) -> None:
        """Begin."""
        audit.hush(self._is_above)
        for event, listener in self._listeners.items():
            audit.listen(event, listener)

    def uninstall(self) -> None:
        """End."""
        for event, listener in self._listeners.items():
            audit.unlisten(event, listener)
        audit.unhush(self._is_above)

    def _is_above(self, args: tuple[Any, ...]) -> bool:
        """Say whether this is done in the scratch folder: that is our doing, and told before by the program's names."""
        return any(isinstance(arg, str) and arg.startswith(self._above) for arg in args)

    def _opened(self, args: tuple[Any, ...]) -> None:
        path, _, flags = args
        if _by_the_overlay(2) or isinstance(path, int) or not isinstance(flags, int):
            return
        if flags & _WRITES:
            self._refuse("open", path, "io.FileIO and the like write past the scratch folder")
        elif self._is_another(path):
            self._refuse("open", path, "it was changed in this replay, and io.FileIO and the like would not see that")

    def _connected(self, args: tuple[Any, ...]) -> None:
        path = os.fsdecode(args[0]) if isinstance(args[0], (str, bytes)) else ""
        if not _by_the_overlay(2) and path not in ("", ":memory:") and not path.startswith("file::memory:"):
            bare = path.removeprefix("file:").partition("?")[0]
            self._refuse("sqlite3.connect", bare, "sqlite3.Connection writes past the scratch folder")

    def _changed(self, event: str, paths: tuple[int, ...], args: tuple[Any, ...]) -> None:
        if not _by_the_overlay(2):
            for at in paths:
                self._refuse(event, args[at], "it is done by a function that is not turned to the scratch folder")

    def _is_another(self, path: Any) -> bool:
        text = given_text(path)
        if text is None:
            return False
        try:
            found = self._view.find(text)
        except OSError:
            return self._layers.raw.look(self._view.whole(text)) is not None
        if found is None or found.apart:
            return False
        return found.above is not None or (found.facts is None and self._layers.raw.look(found.path) is not None)

    def _refuse(self, event: str, path: Any, why: str) -> None:
        if answering.is_in_world():
            return
        if isinstance(path, int):
            try:
                text: str | None = self._layers.raw.readlink(f"/proc/self/fd/{path}")
            except OSError:
                return  # no Linux, or nothing is open by that number
            if text is None or not text.startswith("/") or text.startswith(self._above):
                return
        else:
            text = given_text(path)
        if text is None:
            return  # no path: the system says what is wrong
        whole = self._view.whole(text)
        if self._layers.is_apart(os.path.normpath(whole)):
            return
        self._blocked.refuse(event, refusal(whole, why))


def refusal(path: str, why: str) -> WriteRefused:
    """Return the error for a write that cannot be turned to the scratch folder."""
    return WriteRefused(
        f"a replay writes nothing outside its scratch folder, and {path} is outside: {why}", target=path
    )


def _by_the_overlay(depth: int) -> bool:
    """Say whether whoever does this is the overlay: then it is done above."""
    frame = sys._getframe(1)
    for _ in range(depth):
        if frame.f_back is None:
            return False  # the interpreter itself, as when it opens the program
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith(_OURS)
