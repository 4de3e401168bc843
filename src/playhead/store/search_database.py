"""Open the SQLite file of the search for words, and get rid of it when it is not usable: it is built again.

Each run has a number that sorts like its id, and each line of it the number of the run followed by its own: so what
FTS5 finds by falling number is the newest first, and needs no table to say which line it is. Numbers are used once. A
run that is gone leaves its words behind until the file is made anew, but none of its lines, so it is never found.

FTS5 keeps where each word stands (`detail=full`): people look for phrases, and a path or an address is one. Without it
the file had half the size (measured: 0.45 for 0.22 bytes a byte of text) and every phrase would be looked for in the
timelines. The texts themselves are not kept (`content=''`); between two of a line stands a mark that no phrase spans.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from playhead import _limits
from playhead.errors import StoreError
from playhead.store import layout
from playhead.store.alone import alone
from playhead.store.index_database import FAULTS, PAGE_BYTES, Database, judge, log

VERSION = 1  # of the tables below, and of the rules by which texts are taken out of lines
LINE_BITS = 23  # of the id of a line in the tables; those above are the number of its run
BETWEEN = "\n\ue000\n"  # a word for FTS5, of a letter that nobody has

_TABLES = f"""
CREATE TABLE runs (
  number INTEGER PRIMARY KEY,
  run    TEXT UNIQUE, -- none where it is gone: the number is not used again
  bytes  INTEGER NOT NULL,
  tail   TEXT NOT NULL,
  lines  INTEGER NOT NULL,
  held   INTEGER NOT NULL
);
CREATE INDEX runs_held ON runs (run) WHERE held = 1;
CREATE TABLE lines (
  id     INTEGER PRIMARY KEY,
  offset INTEGER NOT NULL
);
CREATE TABLE state (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(
  texts, content = '', columnsize = 0, detail = full, tokenize = 'unicode61 remove_diacritics 2'
);
PRAGMA user_version = {VERSION};
"""


class _Newer(Exception):
    """The file was made by a newer Playhead. Never leaves this module."""


def open_database(root: Path) -> Database:
    """Open the file of a store; make it, or replace it, as needed. Where it cannot be written, do without a file."""
    path = layout.search(root)
    if not layout.is_store(root):
        return _in_memory(of_no_store=True)
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        return _in_memory()
    if not os.access(root, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        return _in_memory()
    try:
        database = _open_good(path)
        if database is None:
            with alone(root, _limits.INDEX_WAIT_S, busy):
                # Somebody else may have put it right while this process waited.
                database = _open_good(path)
                if database is None:
                    if path.exists():
                        log("the search file is not usable and is built again: %s", path)
                    _unlink(path)
                    database = _create(path)
        return database
    except _Newer:
        log("a newer Playhead made %s; it is left as it is", path)
    except FAULTS as error:
        if judge(error) == "busy":
            raise busy(error) from error
        if judge(error) == "bug":
            raise
        log("the search file cannot be used (%s): %s", error, path)
    except OSError as error:
        log("the search file cannot be replaced (%s): %s", error, path)
    return _in_memory()


def discard(root: Path, database: Database) -> None:
    """Close the file and remove it, unless another process has already replaced it."""
    path = database.path
    database.close()
    if path is not None:
        with alone(root, _limits.INDEX_WAIT_S, busy):
            if database.is_current(root) or (path.exists() and os.stat(path).st_size < PAGE_BYTES):
                _unlink(path)


def remove(root: Path) -> None:
    """Remove the file, if there is one: with the words of runs that are gone."""
    path = layout.search(root)
    if path.exists():
        with alone(root, _limits.INDEX_WAIT_S, busy):
            _unlink(path)


def busy(error: Exception) -> StoreError:
    """Return the error for a file that another process keeps for too long."""
    return StoreError(
        f"another process has been updating the search for more than {_limits.INDEX_WAIT_S:.0f} s ({error})",
        hint="Try again when it is done; deleting its file is safe, it is built again from the runs.",
    )


def _in_memory(*, of_no_store: bool = False) -> Database:
    connection = _connect(":memory:")
    _make_tables(connection)
    return Database(connection, None, of_no_store=of_no_store)


def _open_good(path: Path) -> Database | None:
    """Open a file that needs nothing done to it; give None for every other one."""
    if not path.exists():
        return None
    connection, good = None, False
    try:
        connection = _connect(path)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise _Newer
        good = version == VERSION
        if good:
            connection.execute("SELECT 1 FROM runs, lines, state LIMIT 1").fetchone()
            connection.execute("SELECT rowid FROM words WHERE words MATCH 'a' LIMIT 1").fetchone()
        database = Database(connection, path)
        good = good and database.is_current(path.parent)
        return database if good else None
    except FAULTS as error:
        good = False
        if judge(error) != "damaged":
            raise
        return None
    finally:
        if connection is not None and not good:
            connection.close()


def _create(path: Path) -> Database:
    connection = _connect(path)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        _make_tables(connection)
        return Database(connection, path)
    except BaseException:
        connection.close()
        raise


def _make_tables(connection: sqlite3.Connection) -> None:
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            raise StoreError(
                "the SQLite of this Python cannot search for words: it was built without FTS5",
                hint="Use a Python from python.org, or your distribution's.",
            ) from error
        raise


def _connect(target: str | Path) -> sqlite3.Connection:
    # Threads share it under the lock of `TextIndex`. Transactions are begun and ended by hand.
    connection = sqlite3.connect(target, timeout=_limits.INDEX_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        if isinstance(target, Path):
            os.chmod(target, 0o600)
        connection.execute("PRAGMA synchronous = NORMAL")  # reads the file: here damage shows first
    except BaseException:
        connection.close()
        raise
    return connection


def _unlink(path: Path) -> None:
    # The database last: while it lies there, nobody starts a new one whose log would be taken away.
    for suffix in ("-wal", "-shm", "-journal", ""):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
