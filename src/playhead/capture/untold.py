"""Tell of what Python has no audit event for, or does not tell all of: pipes, devices, folders, databases, histories.

Each is told by an event of our own, in the thread that does it and right before it is done, as Python's are.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import threading
from collections.abc import Callable
from typing import Any

from playhead.capture import answering
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches

MADE, OPENED, CONNECTED, ATTACHED = "playhead.made", "playhead.opened", "playhead.connected", "playhead.attached"
UNNAMED = "?"  # a database that SQLite does not tell the name of


class _Asked(threading.local):
    """What a thread gave to the `os.open` or `sqlite3.connect` that it is in, and which `os.posix_spawn` it is in."""

    folder: int | None = None
    uri: bool | None = None
    search: bool | None = None


_asked = _Asked()
_always = Patches()
_ruled = Patches()  # where a policy has to be asked
_modules: AfterImport | None = None
_readline: AfterImport | None = None


def install() -> None:
    """Tell of pipes, devices and what `readline` writes."""
    global _readline
    _replace(_always, "mkfifo", _making)
    _replace(_always, "mknod", _making)
    _readline = AfterImport({"readline": _keeping_histories})
    _readline.install()


def install_for_policy() -> None:
    """Tell of all that a policy is asked about."""
    global _modules
    if not _ruled.done:
        _replace(_ruled, "open", _opening)
        _replace(_ruled, "posix_spawn", _spawning)
        _replace(_ruled, "posix_spawnp", _spawning)
        connect = functools.partial(_ruled.replace, name="connect", make=_connecting)
        _modules = AfterImport({"sqlite3": connect, "sqlite3.dbapi2": connect})
        _modules.install()


def uninstall() -> None:
    """Tell of nothing any more."""
    global _modules, _readline
    for watch in (_modules, _readline):
        if watch is not None:
            watch.uninstall()
    _modules = _readline = None
    _always.restore()
    _ruled.restore()


def folder() -> int | None:
    """Return the number of the folder that `os.open` was given, in this thread, -1 for none; None where nobody told."""
    return _asked.folder


def uri() -> bool | None:
    """Return whether `sqlite3.connect` was given a URI, in this thread; None where nobody told."""
    return _asked.uri


def searches() -> bool | None:
    """Return whether `os.posix_spawn` looks for the program, in this thread; None where nobody told."""
    return _asked.search


def _replace(patches: Patches, name: str, make: Callable[[Any], Any]) -> None:
    import posix  # where `os` has them from

    for owner in (os, posix):
        if name in vars(owner):
            patches.replace(owner, name, make)


def _making(original: Any) -> Any:
    @functools.wraps(original)
    def make(*args: Any, **options: Any) -> Any:
        path = args[0] if args else options.get("path")
        if isinstance(path, (str, bytes, os.PathLike)):  # else it is refused
            path = os.fspath(path)  # once: it is made under the name that was told
            args, options = ((path, *args[1:]), options) if args else (args, {**options, "path": path})
            mode = args[1] if len(args) > 1 else options.get("mode", 0)
            sort = stat.S_IFIFO if original.__name__ == "mkfifo" else mode & 0o170000 if type(mode) is int else 0
            folder = options.get("dir_fd")
            sys.audit(MADE, path, sort, folder if isinstance(folder, int) else -1)
        return original(*args, **options)

    return make


def _opening(original: Any) -> Any:
    """Say relative to which folder a file is opened: the event that Python has does not."""

    @functools.wraps(original)
    def open(*args: Any, **options: Any) -> Any:
        before, given = _asked.folder, options.get("dir_fd")
        _asked.folder = given if isinstance(given, int) else -1
        try:
            return original(*args, **options)
        finally:
            _asked.folder = before

    return open


def _spawning(original: Any) -> Any:
    """Tell of the files that are opened for a process that is started, and whether its program is looked for."""

    @functools.wraps(original)
    def spawn(*args: Any, **options: Any) -> Any:
        actions = [*(options.get("file_actions") or ())]
        for action in actions:
            if isinstance(action, tuple) and len(action) == 5 and action[0] == os.POSIX_SPAWN_OPEN:
                sys.audit(OPENED, action[2], None, action[3])
        before, _asked.search = _asked.search, original.__name__ == "posix_spawnp"
        try:
            return original(*args, **(options | {"file_actions": actions} if actions else options))
        finally:
            _asked.search = before

    return spawn


def _keeping_histories(readline: Any) -> None:
    for name, at, flags in (
        ("write_history_file", 0, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ("append_history_file", 1, os.O_WRONLY | os.O_APPEND),
    ):
        if name in vars(readline):  # some are built without
            _always.replace(readline, name, functools.partial(_writing_a_history, at, flags))


def _writing_a_history(at: int, flags: int, original: Any) -> Any:
    """Tell of the file, which C opens; without a name that is `.history` at home."""

    @functools.wraps(original)
    def write(*args: Any) -> Any:
        name = args[at] if len(args) > at else None
        if isinstance(name, os.PathLike):
            name = os.fspath(name)
            args = (*args[:at], name, *args[at + 1 :])
        path = os.path.join(os.path.expanduser("~"), ".history") if name is None else name
        if isinstance(path, (str, bytes)):  # else it is refused
            made = os.O_CREAT if answering.player is not None else 0  # what was written before is not there in a replay
            sys.audit(OPENED, os.path.abspath(path), None, flags | made)
        return original(*args)

    return write


def dbm(module: str, filename: Any, flag: Any = "r", *_: Any) -> None:
    """Tell of a database that a library of C is about to open: `dbm.gnu`, or `dbm.ndbm`, which adds to its name."""
    if isinstance(filename, (str, bytes, os.PathLike)) and isinstance(flag, str) and not flag.startswith("r"):
        name = os.fsdecode(filename) + (".db" if module == "dbm.ndbm" else "")
        sys.audit(OPENED, name, None, os.O_RDWR | (0 if flag.startswith("w") else os.O_CREAT))


def _connecting(original: Any) -> Any:
    """Say whether the name of a database is a URI, and tell of the connection once it is made."""

    @functools.wraps(original)
    def connect(*args: Any, **options: Any) -> Any:
        before = _asked.uri
        _asked.uri = bool(args[7] if len(args) > 7 else options.get("uri"))
        try:
            connection = original(*args, **options)
        finally:
            _asked.uri = before
        sys.audit(CONNECTED, connection)
        return connection

    return connect


def watch_database(connection: Any) -> None:
    """Tell of the files that a connection attaches, or writes a copy to; what is raised then keeps it from doing so."""
    import sqlite3  # here: who has a connection has it

    sqlite3.Connection.set_authorizer(connection, _authorize)


def _authorize(action: int, name: str | None, *_: Any) -> int:
    import sqlite3

    if action == sqlite3.SQLITE_ATTACH:
        sys.audit(ATTACHED, UNNAMED if name is None else name)
    return sqlite3.SQLITE_OK
