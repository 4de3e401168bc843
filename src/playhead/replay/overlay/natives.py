"""Keep modules of C from files that they would write without a word: keys of TLS, lines that were typed."""

from __future__ import annotations

import os
import weakref
from types import ModuleType
from typing import Any

from playhead.capture import hooks
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.replay.blocked import Blocked

_HISTORY = {"write_history_file": 0, "append_history_file": 1}  # which argument is the path


class Natives:
    """What stands in place of their functions, as soon as they are there: it writes nothing, and keeps that."""

    def __init__(self, blocked: Blocked) -> None:
        self._blocked = blocked
        self._patches = Patches()
        self._arriving = AfterImport({"readline": self._readline, "ssl": self._ssl})

    def install(self) -> None:
        """Begin to wait for them."""
        self._arriving.install()

    def uninstall(self) -> None:
        """End that."""
        self._arriving.uninstall()
        self._patches.restore()

    def _readline(self, module: ModuleType) -> None:
        for name, at in _HISTORY.items():
            if type(getattr(module, name, None)) is type(len):  # else it is a module of the program's own
                hooks.replace(getattr(module, name), self._not_writing(f"readline.{name}", at))

    def _not_writing(self, what: str, at: int) -> Any:
        def write(*args: Any) -> None:
            path = args[at] if len(args) > at else None
            self._blocked.add(what, "~/.history" if path is None else os.fsdecode(path))

        return write

    def _ssl(self, module: ModuleType) -> None:
        if hasattr(getattr(module, "SSLContext", None), "keylog_filename"):
            self._patches.cover(module.SSLContext, "keylog_filename", self._not_logging)

    def _not_logging(self, original: Any) -> property:
        """Return an attribute that says what it was set to, and opens no file."""
        names: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

        def get(context: Any) -> Any:
            return names.get(context)

        def put(context: Any, path: Any) -> None:
            names[context] = path
            if path is not None:
                self._blocked.add("ssl keylog", os.fsdecode(path))

        return property(get, put)
