"""Turn databases to the scratch folder: SQLite and the kinds of `dbm` open their files by themselves."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any
from urllib.parse import quote, unquote

from playhead.capture import answering, hooks
from playhead.capture.imports import AfterImport
from playhead.replay import world
from playhead.replay.blocked import Blocked
from playhead.replay.overlay.opening import Opening
from playhead.replay.overlay.view import given, given_text

_IN_MEMORY = ("", ":memory:")


class Databases:
    """What stands in place of the functions that open them, as soon as their modules are there."""

    def __init__(self, opening: Opening, blocked: Blocked) -> None:
        self._opening, self._blocked = opening, blocked
        self._connect: Any = None
        self._kind: type = object
        self._authorize: Any = None
        self._arriving = AfterImport({"_sqlite3": self._sqlite, "_dbm": self._dbm, "_gdbm": self._dbm})

    def install(self) -> None:
        """Begin to wait for them."""
        self._arriving.install()

    def uninstall(self) -> None:
        """End that."""
        self._arriving.uninstall()

    def _sqlite(self, module: ModuleType) -> None:
        self._kind = module.Connection
        self._connect = hooks.replace(module.connect, self.connect)

        def set_authorizer(connection: Any, *args: Any, **options: Any) -> Any:
            return self.set_authorizer(connection, *args, **options)  # a function becomes a method in a class

        self._authorize = hooks.replace(module.Connection.__dict__["set_authorizer"], set_authorizer)

    def connect(self, *args: Any, **options: Any) -> Any:
        """Open a database as `sqlite3.connect` does."""
        database: Any = args[0] if args else options.get("database")
        uri = bool(args[7]) if len(args) > 7 else bool(options.get("uri"))
        if answering.is_in_world():
            return self._connect(*args, **options)
        place = None if given_text(database) is None else self._place(os.fsdecode(database), uri)
        if place is None:
            return self._guarded(self._connect(*args, **options))
        sys.audit("sqlite3.connect", given(database))  # as the program gave it; ours is not listened to
        if answering.is_in_world():  # since it was told of just now
            return world.do(self._connect, *args, **options)
        if args:
            return self._guarded(self._connect(place, *args[1:], **options))
        return self._guarded(self._connect(**{**options, "database": place}))

    def _place(self, text: str, uri: bool) -> str | None:
        """Return what to open in place of a database; None where it is no file."""
        if not (uri and text.startswith("file:")):
            return None if text in _IN_MEMORY or self._opening.is_ours(text) else self._above(text)
        path, _, query = text.removeprefix("file:").partition("#")[0].partition("?")
        path = unquote(path)
        if path.startswith("//"):
            path = "/" + path[2:].partition("/")[2]
        if path in _IN_MEMORY or "mode=memory" in query.split("&") or self._opening.is_ours(path):
            return None
        return f"file:{quote(self._above(path))}{'?' if query else ''}{query}"

    def _above(self, path: str) -> str:
        try:
            return self._opening.database(path)
        except OSError:
            return self._opening.nowhere(path)  # the way to it ends before: SQLite says that it is unable to open it

    # Statements of SQL open files too: ATTACH, VACUUM INTO.

    def _guarded(self, connection: Any) -> Any:
        if isinstance(connection, self._kind):  # else it is what a factory of the program's made in its place
            self.set_authorizer(connection, None)
        return connection

    def set_authorizer(self, connection: Any, *args: Any, **options: Any) -> Any:
        """Set what is asked before each part of a statement, and be asked before it."""
        given_one = args[0] if args else options.get("authorizer_callback")
        if len(args) > 1 or len(options) > 1 or (given_one is not None and not callable(given_one)):
            return self._authorize(connection, *args, **options)  # says what is wrong

        def authorizer(action: int, first: Any, second: Any, *rest: Any) -> Any:
            if action == 24 and not self._may_attach(first):  # SQLITE_ATTACH
                return 1  # SQLITE_DENY
            return 0 if given_one is None else given_one(action, first, second, *rest)

        return self._authorize(connection, authorizer)

    def _may_attach(self, name: Any) -> bool:
        text = name or ""
        if text in _IN_MEMORY or text.startswith("file::memory:") or self._opening.is_ours(text):
            return True
        self._blocked.add("sqlite3 ATTACH", text)
        return False

    def _dbm(self, module: ModuleType) -> None:
        opened = module.open

        def open_above(*args: Any, **options: Any) -> Any:
            if not args or given_text(args[0]) is None or answering.is_in_world():
                return original(*args, **options)
            return original(self._opening.database(os.fsdecode(args[0])), *args[1:], **options)

        original = hooks.replace(opened, open_above)
