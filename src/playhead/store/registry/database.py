"""Open the SQLite file of what the server keeps, make it where something is to be kept, and migrate it.

It is no projection: where it is damaged, that is said, and it is never dropped, replaced or made anew. A process that
has it open and finds it gone or replaced says so as well: without the keys in it, a server would let everybody in.

A new file is made whole under another name and then gets its own, so an empty one is damage and no beginning. Every
commit is on the disk when it returns. Each thread has a connection of its own; readers wait for nobody.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from playhead import _limits
from playhead._clock import Clock, SystemClock, utc_text
from playhead.errors import StoreError, StoreTooNew
from playhead.store import layout
from playhead.store.alone import alone
from playhead.store.disk import Disk
from playhead.store.files import FileStore
from playhead.store.index_database import statements

PAGE_BYTES = 16384
MIGRATIONS = Path(__file__).parent.parent / "migrations" / "registry"

_LOG_BYTES_MAX = 16 * 1024 * 1024  # of the write-ahead log, once what is in it was moved: cassettes are large

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNUSABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
}
_TABLES = {"keys", "sessions", "cassettes", "cassette_parts", "jobs", "migrations"}

_disk = Disk()

# Connections that a fork copied. Closing one here would disturb the process it belongs to, so none is ever freed.
_inherited: list[object] = []


class _Opened:
    """One connection of one thread, closed when the thread is gone."""

    def __init__(self, connection: sqlite3.Connection, pid: int) -> None:
        self.connection = connection
        self.pid = pid

    def __del__(self) -> None:
        if self.pid == os.getpid():
            self.connection.close()


class Registry:
    """Hold the database of one store. Threads may share it; nothing is opened or made before it is needed."""

    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.root = Path(root)
        self.path = layout.registry(self.root)
        self.clock = clock or SystemClock()
        self._identity: tuple[int, int] | None = None  # of the file that this process uses
        self._opening = threading.Lock()
        self._local = threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file, when no thread is using it any more. The next use opens it again."""
        self._local, self._identity = threading.local(), None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give a connection to read with; None where nothing was ever kept."""
        with self._told():
            yield self._connection(make=False)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside a transaction of its own, which is on the disk when this returns."""
        with self._told():
            connection = self._connection(make=True)
            assert connection is not None
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def noting(self, sql: str, values: tuple[object, ...]) -> bool:
        """Write what may be lost, without waiting for anybody or for the disk; False where that cannot be now."""
        with self._told():
            connection = self._connection(make=False)
            if connection is None:
                return False
            try:
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(sql, values)
                return True
            except sqlite3.OperationalError:  # locked, full, read-only
                return False
            finally:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(f"PRAGMA busy_timeout = {int(_limits.REGISTRY_WAIT_S * 1000)}")

    def _connection(self, *, make: bool) -> sqlite3.Connection | None:
        opened: _Opened | None = getattr(self._local, "opened", None)
        found = _identity(self.path)
        if opened is not None and opened.pid != os.getpid():
            _inherited.append(opened)
            opened = None
        if self._identity is not None and found != self._identity:
            raise StoreError(
                f"{self.path} was removed or replaced while it was in use",
                hint="Put it back where it was, or start this program again.",
            )
        if opened is not None:
            return opened.connection
        if found is None and not make:
            return None
        with self._opening:
            connection = self._open()
        self._local.opened = _Opened(connection, os.getpid())
        return connection

    def _open(self) -> sqlite3.Connection:
        if _identity(self.path) is None:
            self._make()
        connection = _connect(self.path)
        try:
            connection.execute("PRAGMA query_only = ON")  # looked at before anything is changed
            applied = self._applied(connection)
            connection.execute("PRAGMA query_only = OFF")
            if applied != _known():
                with alone(self.root, _limits.REGISTRY_WAIT_S, self._busy):
                    _migrate(connection, self.clock)
            self._identity = _identity(self.path)
            return connection
        except BaseException:
            connection.close()
            raise

    def _make(self) -> None:
        """Make the file whole, and only then give it its name; somebody else may be doing the same."""
        FileStore(self.root).make_root()
        with alone(self.root, _limits.REGISTRY_WAIT_S, self._busy):
            if _identity(self.path) is not None:
                return
            for left in self.root.glob(f".{self.path.name}.*"):  # by somebody who was killed here
                left.unlink(missing_ok=True)
            aside = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
            os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            connection = _connect(aside)
            try:
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                _migrate(connection, self.clock)
                connection.execute("PRAGMA journal_mode = WAL")
            finally:
                connection.close()
            _disk.replace(aside, self.path)
            with contextlib.suppress(PermissionError):  # Windows has no such thing
                _disk.sync_folder(self.root)

    def _applied(self, connection: sqlite3.Connection) -> list[str]:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "migrations" not in tables:
            raise self._damaged("it has no tables of ours")
        applied = [str(name) for (name,) in connection.execute("SELECT name FROM migrations ORDER BY name")]
        if newer := set(applied) - set(_known()):
            raise StoreTooNew(f"a newer Playhead made {self.path}: it knows {min(newer)}")
        if applied == _known() and not tables >= _TABLES:
            raise self._damaged(f"it has no table {min(_TABLES - tables)}")
        return applied

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in one way what went wrong with the file."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise  # a rule of ours: whoever asked knows what it means
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _BUSY:
                raise self._busy(error) from error
            if code in _UNUSABLE:
                raise StoreError(f"{self.path} cannot be used: {error}") from error
            if code == sqlite3.SQLITE_MISUSE:
                raise
            raise self._damaged(str(error)) from error
        except UnicodeDecodeError as error:
            raise self._damaged(str(error)) from error

    def _busy(self, error: Exception) -> StoreError:
        return StoreError(
            f"another process has been writing {self.path} for more than {_limits.REGISTRY_WAIT_S:.0f} s ({error})",
            hint="Try again when it is done.",
        )

    def _damaged(self, why: str) -> StoreError:
        return StoreError(
            f"{self.path} is damaged: {why}",
            hint="It holds keys, cassettes and jobs that are nowhere else, and stays as it is: put a copy of it back.",
        )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path) -> sqlite3.Connection:
    # Transactions are begun and ended by hand. A connection is used by its own thread, and closed by whoever frees it.
    connection = sqlite3.connect(path, timeout=_limits.REGISTRY_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = FULL")  # what is told to somebody must not be lost
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES_MAX}")
    except BaseException:
        connection.close()
        raise
    return connection


def _known() -> list[str]:
    return sorted(name.removesuffix(".sql") for name in os.listdir(MIGRATIONS) if name.endswith(".sql"))


def _migrate(connection: sqlite3.Connection, clock: Clock) -> None:
    """Apply what was not applied yet, all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied TEXT NOT NULL)")
        applied = {name for (name,) in connection.execute("SELECT name FROM migrations")}
        for name in _known():
            if name not in applied:
                for statement in statements((MIGRATIONS / f"{name}.sql").read_text("utf-8")):
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, utc_text(clock.wall_us())))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
