"""Open the SQLite file of the index, and get rid of it when it is not usable.

Everything in the file can be read again from the runs, so a damaged one is dropped and never repaired; only what it has
seen is carried over, as far as it can be read (index_memory.py). What creates, migrates or drops it does so alone (a
lock on the store's folder); what only opens a good one waits for nobody.
Where the file cannot be written, or a newer Playhead made it, the index lives in memory and the file is left alone.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playhead import _limits
from playhead._clock import SystemClock, utc_text
from playhead.errors import StoreError
from playhead.store import index_memory, layout
from playhead.store.alone import alone

TABLES = (
    "runs",
    "events",
    "calls",
    "steps",
    "policy_checks",
    "artifacts",
    "effects",
    "reads",
    "commits",
    "ci_results",
    "traces",
)
_REPLAYS = (
    "SELECT id FROM main.runs WHERE origin IS NOT NULL AND json_extract(origin, '$.mode') IN ('exact', 'reingest')"
)
INTERNAL_TABLES = ("progress", "state", "remembered", "migrations")

PAGE_BYTES = 16384  # measured: less space and faster inserts than 4096 with rows of this size
MIGRATIONS = Path(__file__).parent / "migrations" / "sqlite"

_DAMAGED = {
    sqlite3.SQLITE_ERROR,  # a table or column of ours is missing
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_CONSTRAINT,  # rows are there that the progress says were not read yet
    sqlite3.SQLITE_MISMATCH,
}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNUSABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
}

# What a damaged file can raise: Python cannot even decode some of SQLite's messages about one.
FAULTS = (sqlite3.Error, UnicodeDecodeError)

_sleep = time.sleep  # bound once: the agent's own clock may be replaced later


class Damaged(sqlite3.DatabaseError):
    """A row holds what no row of ours can hold."""


class Newer(Exception):
    """The file was made by a newer Playhead. Never leaves this module."""


class Database:
    """Hold one open index: in a file, or in memory where `path` is None."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None, *, of_no_store: bool = False) -> None:
        self.connection = connection
        self.path = path
        self.of_no_store = of_no_store
        self.pid = os.getpid()
        self._identity = _identity(path) if path else None

    def is_current(self, root: Path) -> bool:
        """Say whether the file that is open is still the one that lies there, with its first page.

        An index in memory is current, unless it stands for a store that has come to be since.
        """
        if self.path is None:
            return not (self.of_no_store and layout.is_store(root))
        return self._identity is not None and _identity(self.path) == self._identity

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def log(message: str, *values: object) -> None:
    """Say what happened to the index; nobody needs to act on it."""
    import logging  # rarely needed, and slow to import

    logging.getLogger("playhead").info(message, *values)


def judge(error: Exception) -> Literal["damaged", "busy", "unusable", "bug"]:
    """Say what an error of SQLite means for the file."""
    if isinstance(error, UnicodeDecodeError):
        return "damaged"
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # raised by Python's module: text that is not UTF-8 is damage, the rest is misuse
        return "damaged" if isinstance(error, Damaged | sqlite3.OperationalError) else "bug"
    if code == sqlite3.SQLITE_IOERR_SHORT_READ or code & 0xFF in _DAMAGED:
        return "damaged"
    if code & 0xFF in _BUSY:
        return "busy"
    return "unusable" if code & 0xFF in _UNUSABLE else "bug"


def open_database(root: Path) -> Database:
    """Open the index of a store; make it, migrate it or replace it as needed."""
    path = layout.index(root)
    if not layout.is_store(root) and not os.path.lexists(path):  # asking leaves nothing behind in a folder of others
        return in_memory(of_no_store=True)
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        log("the index is not a file of its own; it is left alone and built in memory: %s", path)
        return in_memory()
    if not os.access(root, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        log("the store cannot be written; the index is built in memory: %s", root)
        return in_memory(index_memory.heads_of_file(path))
    try:
        database = _open_good(path)
        if database is None:
            with alone(root, _limits.INDEX_WAIT_S, busy):
                # Somebody else may have put it right while this process waited.
                database = _open_good(path) or _open_any(path)
        return database
    except Newer:
        log("a newer Playhead made %s; it is left as it is and the index is built in memory", path)
    except FAULTS as error:
        if judge(error) == "busy":
            raise busy(error) from error
        if judge(error) == "bug":
            raise
        log("the index cannot be used (%s) and is built in memory: %s", error, path)
    except OSError as error:
        log("the index cannot be replaced (%s) and is built in memory: %s", error, path)
    return in_memory(index_memory.heads_of_file(path))


def in_memory(heads: index_memory.Heads | None = None, *, of_no_store: bool = False) -> Database:
    """Make an empty index that leaves no trace; `heads` is what was seen by the one whose place it takes."""
    connection = _connect(":memory:")
    _migrate(connection, [])
    index_memory.remember(connection, heads or {})
    return Database(connection, None, of_no_store=of_no_store)


def discard(root: Path, database: Database, *, forget: bool = False) -> None:
    """Close an index and remove its file, unless another process has already replaced it.

    An empty one takes its place where there is something to remember; `forget` asks for no memory.
    """
    path = database.path
    if path is None:
        database.close()
        return
    with alone(root, _limits.INDEX_WAIT_S, busy):
        ours = database.is_current(root) or not path.exists() or os.stat(path).st_size < PAGE_BYTES
        heads = index_memory.heads_in(database.connection) if ours and path.exists() and not forget else {}
        database.close()
        if ours:
            _unlink(path)
        if heads:
            _prepare(path, heads).close()


def busy(error: Exception) -> StoreError:
    """Return the error for an index that another process keeps for too long."""
    return StoreError(
        f"another process has been updating the index for more than {_limits.INDEX_WAIT_S:.0f} s ({error})",
        hint="Try again when it is done; deleting the index is safe, it is rebuilt from the runs.",
    )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_size >= PAGE_BYTES else None


def _is_cut(path: Path) -> bool:
    """Say whether the file ends within a page: SQLite would read zeros there and not complain."""
    for last in (False, True):
        if not path.exists() or os.stat(path).st_size % PAGE_BYTES == 0:
            return False
        if not last:
            _sleep(0.02)  # somebody may be writing that page just now
    return True


def _connect(target: str | Path) -> sqlite3.Connection:
    # Threads share it under the lock of `Index`. Transactions are begun and ended by hand.
    connection = sqlite3.connect(target, timeout=_limits.INDEX_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        if isinstance(target, Path):
            os.chmod(target, 0o600)  # like every other file of a store
        connection.execute("PRAGMA synchronous = NORMAL")  # reads the file: here damage shows first
    except BaseException:
        connection.close()
        raise
    return connection


def _known() -> list[str]:
    return sorted(name.removesuffix(".sql") for name in os.listdir(MIGRATIONS) if name.endswith(".sql"))


def check_tables(connection: sqlite3.Connection) -> bool:
    """Say whether the tables are there: all, or none in a new file. Anything else is damage."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and not tables.issuperset((*TABLES, *INTERNAL_TABLES)):
        raise Damaged("not an index of Playhead, or not all of one")
    return bool(tables)


def _applied(connection: sqlite3.Connection) -> list[str]:
    if not check_tables(connection):
        return []
    applied = [str(name) for (name,) in connection.execute("SELECT name FROM migrations ORDER BY name")]
    if set(applied) - set(_known()):
        raise Newer
    return applied


def _open_good(path: Path) -> Database | None:
    """Open a file that needs nothing done to it; give None for every other one."""
    if _identity(path) is None or _is_cut(path):
        return None
    good = False
    try:
        connection = _connect(path)
        try:
            good = _applied(connection) == _known()
            return Database(connection, path) if good else None
        finally:
            if not good:
                connection.close()
    except FAULTS as error:
        if judge(error) != "damaged":
            raise
        return None


def _open_any(path: Path) -> Database:
    """Create the file, migrate it, or drop it and create it."""
    try:
        return _prepare(path)
    except FAULTS as error:
        if judge(error) != "damaged":
            raise
        log("the index was damaged (%s) and is rebuilt from the runs: %s", error, path)
    heads = index_memory.heads_of_file(path)
    _unlink(path)
    return _prepare(path, heads)


def _prepare(path: Path, heads: index_memory.Heads | None = None) -> Database:
    if _is_cut(path):
        raise Damaged("the file ends in the middle of a page")
    connection = _connect(path)
    try:
        applied = _applied(connection)
        if not applied:
            # The size of a page can only be chosen before the first one is written.
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode = WAL")
        _migrate(connection, applied)
        index_memory.remember(connection, heads or {})
        return Database(connection, path)
    except BaseException:
        connection.close()
        raise


def _migrate(connection: sqlite3.Connection, applied: list[str]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied TEXT NOT NULL)")
        for name in _known():
            if name not in applied:
                for statement in statements((MIGRATIONS / f"{name}.sql").read_text("utf-8")):
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, utc_text(SystemClock().wall_us())))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def statements(script: str) -> Iterator[str]:
    """Split a script into its statements; `executescript` would commit behind our back."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _unlink(path: Path) -> None:
    # The database last: while it lies there, nobody starts a new one whose log would be taken away.
    for suffix in ("-wal", "-shm", "-journal", ""):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_FUNCTIONS_REFUSED = {"load_extension", "fts3_tokenizer", "writefile", "edit"}


def _authorize(action: int, first: str | None, second: str | None, *_: Any) -> int:
    if action in _READING or (action == sqlite3.SQLITE_FUNCTION and second not in _FUNCTIONS_REFUSED):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


@contextmanager
def read_only(
    database: Database, *, replays: bool = True, seconds: float | None = None, value_bytes_max: int | None = None
) -> Iterator[sqlite3.Connection]:
    """Give a connection that can only read: SQLite itself refuses to write, and only reading is authorized.

    Without `replays` the tables hold no exact replays, whose calls were never made: views of their names stand before
    them. What takes longer than `seconds` is interrupted, and no single value may have more than `value_bytes_max`.
    """
    if database.path is None:
        connection = database.connection  # memory has one connection; it is freed again afterwards
    else:
        connection = sqlite3.connect(
            index_memory.address(database.path), uri=True, timeout=_limits.INDEX_WAIT_S, isolation_level=None
        )
    largest = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    attached = connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    # A question may make text that is not UTF-8 (`CAST(x'ff' AS TEXT)`): shown as well as it can be, not an error.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        # Used once before the authorizer is there, since SQLite makes these two tables at their first use.
        connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()
        for table in () if replays else TABLES:
            run = "id" if table == "runs" else "run"
            view = f"SELECT * FROM main.{table} WHERE {run} NOT IN ({_REPLAYS})"
            connection.execute(f"CREATE TEMP VIEW {table} AS {view}")
        connection.execute("PRAGMA query_only = ON")
        if database.path is not None:
            connection.execute("BEGIN")  # all questions see the same rows, whoever writes meanwhile
        connection.set_authorizer(_authorize)
        if value_bytes_max is not None:
            largest = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, value_bytes_max)
        if seconds is not None:
            until = time.monotonic() + seconds
            connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        yield connection
    finally:
        connection.set_progress_handler(None, 0)
        if database.path is None:
            connection.text_factory = str
            connection.set_authorizer(None)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, attached)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, largest)
            connection.execute("PRAGMA query_only = OFF")
            for table in TABLES:
                connection.execute(f"DROP VIEW IF EXISTS temp.{table}")
        else:
            connection.close()
