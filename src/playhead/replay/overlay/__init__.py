"""Keep the world as it is while a program runs again: what it writes goes to a scratch folder, which it sees.

A guard against mistakes and not a sandbox: code of C that opens files without a word to the interpreter is not held.
docs/guides/isolation.md says what is covered, and how.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from playhead.capture import hooks
from playhead.capture.imports import AfterImport
from playhead.replay.blocked import Block, Blocked
from playhead.replay.overlay.acts import Acts
from playhead.replay.overlay.before import Before, before
from playhead.replay.overlay.databases import Databases
from playhead.replay.overlay.held import Held
from playhead.replay.overlay.layers import CannotLeave, Layers
from playhead.replay.overlay.looks import Looks
from playhead.replay.overlay.natives import Natives
from playhead.replay.overlay.opening import Opening
from playhead.replay.overlay.refusing import Refusing
from playhead.replay.overlay.told import Change, Told
from playhead.replay.overlay.view import View

__all__ = ["Before", "Block", "CannotLeave", "Change", "Overlay", "before", "finder", "install", "uninstall"]

_SOCKET_PATH_MAX = 107  # of the system
_SOCKET_NAME = 30  # what multiprocessing adds: folder and name of a socket
_MEETING = "mp"  # the folder for them

_present: Overlay | None = None


class Overlay:
    """The scratch folder of a replay, laid over the file system."""

    def __init__(
        self, scratch: Path, store: Path, moved: tuple[str, str] | None = None, *, may_pass: bool = False
    ) -> None:
        self._layers = Layers(scratch, (store,), moved, may_pass=may_pass)
        self._told = Told(self._layers)
        self._blocked = Blocked(scratch)
        view = View(self._layers)
        opening = Opening(view, self._told, self._blocked)
        self._parts = (opening, Looks(view), Acts(view))
        self._databases = Databases(opening, self._blocked)
        self._refusing = Refusing(view, self._blocked)
        self._natives = Natives(self._blocked)
        self._arriving = AfterImport({"multiprocessing.process": self._use_scratch})
        self._held = Held()
        self._bytecode = sys.dont_write_bytecode
        self.scratch = Path(self._layers.scratch)

    def expect(self, world: Before) -> None:
        """Let the program find the world as it was when the recording began, as far as that is known.

        What the recorded run made is hidden; what it took away is there again, empty where its content is not known.
        """
        for path in world.absent:
            self._told.absent(path)
        for path in world.folders:
            self._told.put_folder(path)
        for path in world.files:
            self._told.put_missing(path)
        for path, mode in world.modes:
            self._told.have_another_mode(path, mode)
        for folder, paths in world.only.items():
            self._told.only(folder, paths)

    def changes(self) -> list[Change]:
        """Return what the program would have done to the world."""
        return self._told.changes()

    def blocked(self) -> list[Block]:
        """Return what could not be turned to the scratch folder and was refused."""
        return self._blocked.all()

    def hand_over(self, until_us: int | None, is_own: Callable[[str, bool], bool]) -> list[str]:
        """Let files that are open for writing be those of the world; says what was found there. See `leaving.py`."""
        from playhead.replay.overlay.leaving import hand_over  # here: most replays never leave

        return hand_over(self._layers, until_us, is_own)

    def cut(self, path: str, size: int | None) -> None:
        """Have a file that the program adds to as long as it was then: it is a copy of what it is now."""
        place = self._layers.files + path
        if size is not None and self._layers.raw.stat(place).st_size > size:
            self._layers.raw.truncate(place, size)

    def close(self, *, keep: bool = False) -> None:
        """Remove the scratch folder."""
        if _present is self:
            uninstall()
        if not keep:
            _make_removable(self.scratch)
            shutil.rmtree(self.scratch)

    def _begin(self) -> None:
        hooks.prepare(_complain)
        for part in self._parts:
            self._layers.raw.replace_all(part.instead())
        self._held.replace(self._layers.raw.unlink)
        self._databases.install()
        self._natives.install()
        self._refusing.install()
        self._arriving.install()
        self._bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True

    def _end(self) -> None:
        sys.dont_write_bytecode = self._bytecode
        self._arriving.uninstall()
        self._refusing.uninstall()
        self._natives.uninstall()
        self._databases.uninstall()
        hooks.put_back()
        self._held.restore()
        self._leave_scratch()
        try:
            here = os.getcwd()
            if here != self._layers.here():
                os.chdir(self._layers.here())
        except FileNotFoundError:
            pass  # in a folder that was never there, and where it stays as in one that is deleted

    def _use_scratch(self, module: ModuleType) -> None:
        """Let processes of multiprocessing meet in the scratch folder: a socket is no file that could be redirected."""
        folder = self.scratch / _MEETING
        if len(str(folder)) + _SOCKET_NAME <= _SOCKET_PATH_MAX:
            folder.mkdir(mode=0o700, exist_ok=True)
            config: dict[str, Any] = module.current_process()._config
            config.setdefault("tempdir", str(folder))

    def _leave_scratch(self) -> None:
        """Let them meet elsewhere again: it will be gone, as is what they made themselves."""
        module = sys.modules.get("multiprocessing.process")
        config = {} if module is None else module.current_process()._config
        folder = config.get("tempdir")
        if folder is not None and (folder == str(self.scratch / _MEETING) or not os.path.isdir(folder)):
            del config["tempdir"]

    def after_fork(self) -> None:
        """Forget a lock that another thread may have held."""
        self._layers.lock = threading.RLock()


def install(scratch: Path, store: Path, moved: tuple[str, str] | None = None, *, may_pass: bool = False) -> Overlay:
    """Lay a scratch folder over the file system, before anything is watched; other processes may share it.

    What lies in the store of Playhead is left alone. Of `moved` the first folder is found where the second is. With
    `may_pass`, whoever is past the tape meets the world itself. One at a time.
    """
    global _present
    if _present is not None:
        raise RuntimeError("an overlay is in place already")
    overlay = Overlay(scratch, store, moved, may_pass=may_pass)
    overlay._begin()
    _present = overlay
    return overlay


def finder(scratch: Path, moved: tuple[str, str] | None = None) -> Callable[[str], str | None]:
    """Return what says where a file is that a program has written to a scratch folder; None for no such file."""
    layers = Layers(scratch, (), moved)

    def find(path: str) -> str | None:
        try:
            found = layers.walk(path)
        except OSError:
            return None  # a folder on the way is gone
        return None if found.above is None else found.place

    return find


def uninstall() -> None:
    """Take it away again; the scratch folder stays until it is closed."""
    global _present
    overlay, _present = _present, None
    if overlay is not None:
        overlay._end()


def _complain(problem: Exception) -> None:
    raise problem


def _make_removable(folder: Path) -> None:
    """Give back to their owner the folders that the program took its right to write from."""
    if os.geteuid() != 0:
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o700)


def _after_fork_in_child() -> None:
    if _present is not None:
        _present.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
