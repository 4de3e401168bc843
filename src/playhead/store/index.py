"""Answer questions about many runs, from SQLite.

The index is a disposable projection of the timelines: it can be deleted, cut or overwritten at any time and is then
built again. Every question first catches up with the files (index_follow.py), so nobody needs to keep it up to date.
It does not verify chains; `playhead verify` does.

Writers must hold a run (presence.py) before they note it in the journal.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from playhead import _limits
from playhead._ids import is_run_id
from playhead.errors import StoreError, UsageError
from playhead.store import layout
from playhead.store.index_database import (
    FAULTS,
    TABLES,
    Damaged,
    Database,
    busy,
    check_tables,
    discard,
    in_memory,
    judge,
    log,
    open_database,
    read_only,
)
from playhead.store.index_follow import Follower, Progress, pruned_runs
from playhead.store.index_memory import Heads, heads_in, heads_seen, remembered
from playhead.store.index_questions import SELECT, Questions, run_of_row
from playhead.store.index_questions import STATUSES as STATUSES
from playhead.store.index_rows import EnvelopeMatches

T = TypeVar("T")

QUERY_HINT = (
    f"One SELECT over the tables {', '.join(TABLES)}; docs/reference/index-tables.md explains every column,"
    " and `SELECT sql FROM sqlite_master` shows them."
)

_NOT_THE_QUESTION = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY)
_monotonic = time.monotonic
_ATTEMPTS = 3  # the index as it is, built again, in memory

# Connections that a fork copied. Closing one here would disturb the process it belongs to, so none is ever freed.
_inherited: list[Database] = []


class Index(Questions):
    """Follow the runs of one store and answer questions about them. Threads may share one.

    `envelope_matches` is given the data of `run.started`, or of the step that adopted the run, and says whether the
    stored envelope has the stored hash: None where it cannot tell. It is asked once, when the line is read.
    `version` is a number that grows with everything that this process writes: where it has not grown, questions that
    are asked within `INDEX_GRACE_S` are answered from what was read for the first of them.
    """

    root: Path

    def __init__(
        self,
        root: Path,
        *,
        envelope_matches: EnvelopeMatches | None = None,
        version: Callable[[], int] | None = None,
    ) -> None:
        self.root = Path(root)
        self._version = version
        self._read_at: tuple[int, float] = -1, 0.0  # the version that was read, and when
        self._envelope_matches = envelope_matches
        self._lock = threading.RLock()
        self._database: Database | None = None
        self._read_by: Database | None = None

    def close(self) -> None:
        """Close the database. The next question opens it again."""
        with self._lock:
            database, self._database = self._database, None
            if database is not None and not _is_inherited(database):
                database.close()

    def catch_up(self) -> None:
        """Read what writers have written since the last question."""
        self._answer(lambda database: None)

    def rebuild(self, progress: Progress | None = None, *, forget: bool = False) -> int:
        """Drop the index and read every run again; return how many runs there are.

        What was seen of a run and is no longer there stays remembered (`remembered`), unless `forget` says otherwise.
        """
        with self._lock:
            database = self._open()
            if database.path is not None:
                discard(self.root, database, forget=forget)
                self._database = None
            elif forget and layout.index(self.root).exists():
                raise StoreError(
                    f"{layout.index(self.root)} cannot be written, or a newer Playhead made it: it forgets nothing",
                    hint="Ask that Playhead, or delete the file: it is built again from the runs.",
                )
            else:
                self.close()

            def count(database: Database) -> int:
                return int(database.connection.execute("SELECT count(*) FROM runs").fetchone()[0])

            return self._answer(count, progress)

    def get(self, run_id: str) -> dict[str, Any] | None:
        """Return one run as `list_runs` does; a run directory that nobody noted in the journal is read now."""
        if not is_run_id(run_id) or not self._exists(run_id):
            return None
        found = self._runs(f"{SELECT} WHERE id = ?", (run_id,))
        if not found:
            self._answer(lambda database: self._follower(database).follow([run_id]))
            found = self._runs(f"{SELECT} WHERE id = ?", (run_id,))
        return found[0] if found else None

    def head(self, run_id: str) -> tuple[int, str] | None:
        """Return seq and hash of the last line of a run that was seen, whether or not it is still there."""
        self.get(run_id)  # reads it, where nobody noted it in the journal
        return self._heads(run_id).get(run_id)

    def heads(self) -> Heads:
        """Return the same for every run, also for those whose directory is gone, unless they were pruned."""
        found = self._heads()
        gone = [run for run in found if not layout.run_dir(self.root, run).exists()]
        # The journal is asked once more: a run may have been read between its note there and its removal.
        for run in pruned_runs(layout.journal(self.root)).intersection(gone) if gone else ():
            self.forget(run)
            del found[run]
        return found

    def _heads(self, run_id: str | None = None) -> Heads:
        def ask(database: Database) -> Heads:
            seen, damaged = heads_seen(database.connection, run_id)
            if damaged and database.path is not None:
                raise Damaged("it does not agree with itself about the last line of a run")
            return seen | remembered(database.connection)

        return self._answer(ask)

    def remembered(self) -> Heads:
        """Return the lines that were seen of runs that no longer hold them: cut, written anew, or removed."""
        return self._answer(lambda database: remembered(database.connection))

    def forget(self, run_id: str) -> None:
        """Remove a run from the index, after its directory was removed."""

        def delete(database: Database) -> None:
            follower = self._follower(database)
            follower.follow([], finally_=lambda: follower.forget(run_id))

        self._answer(delete)

    def query(
        self,
        sql: str,
        params: Sequence[Any] | dict[str, Any] = (),
        *,
        replays: bool = True,
        seconds: float | None = None,
        rows_max: int | None = None,
        bytes_max: int | None = None,
        start: int | None = None,
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Answer one SELECT with its column names and rows. What writes, attaches or sets anything is refused.

        Without `replays`, nothing of exact replays is in the tables: what they asked was answered from a recording.
        `seconds` is how long it may take, `rows_max` how many rows it may have, and `bytes_max` how much they may say;
        with `start` there may be more rows, and a page of so many is told, from that row on.
        """

        def ask(database: Database) -> tuple[list[str], list[tuple[Any, ...]]]:
            with read_only(database, replays=replays, seconds=seconds, value_bytes_max=bytes_max) as connection:
                try:
                    cursor = connection.execute(sql, params)
                    if start is not None:
                        next(itertools.islice(cursor, start, start), None)
                    rows = _fetched(cursor, rows_max, bytes_max, is_page=start is not None)
                except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, TypeError) as error:
                    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                    if code == sqlite3.SQLITE_INTERRUPT:
                        raise _refused(f"it took longer than {seconds:g} s") from error
                    if code in _NOT_THE_QUESTION or isinstance(error, UnicodeDecodeError):
                        raise
                    check_tables(database.connection)
                    raise _refused(str(error)) from error
            if cursor.description is None:
                raise _refused("this is not a question that has rows for an answer")
            return [column[0] for column in cursor.description], rows

        return self._answer(ask)

    def peek(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Answer a question of our own from what was read so far; nobody waits for what is new."""
        with self._lock:
            try:
                return self._open().connection.execute(sql, params).fetchall()
            except FAULTS:
                return self.query(sql, params)[1]  # which mends the file, or says what is wrong

    def read(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        """Let somebody ask several questions of the index as it is at one moment; nothing can be written."""

        def answer(database: Database) -> T:
            with read_only(database) as connection:
                connection.text_factory = str  # all texts in our own tables are whole, and many are read
                return ask(connection)

        return self._answer(answer)

    def _open(self) -> Database:
        """Return the open database: opened again where its file was deleted, replaced or cut, or after a fork."""
        database = self._database
        if database is not None and _is_inherited(database):
            database = None
        elif database is not None and not database.is_current(self.root):
            if database.path is not None:
                log("the index was deleted or cut and is rebuilt from the runs: %s", database.path)
            database.close()
            database = None
        self._database = database or open_database(self.root)
        return self._database

    def _follower(self, database: Database) -> Follower:
        return Follower(self.root, database.connection, self._envelope_matches, lasting=database.path is not None)

    def _answer(self, ask: Callable[[Database], T], progress: Progress | None = None) -> T:
        """Catch up and ask; where the file turns out damaged build it again, where it cannot be used do without it."""
        with self._lock:
            for left in range(_ATTEMPTS - 1, -1, -1):
                database = self._open()
                try:
                    if not self._is_fresh(database):
                        version = -1 if self._version is None else self._version()
                        self._follower(database).catch_up(progress)
                        self._read_at, self._read_by = (version, _monotonic()), database
                    return ask(database)
                except FAULTS as error:
                    verdict = judge(error)
                    if verdict == "busy":
                        raise busy(error) from error
                    if verdict == "bug" or database.path is None or not left:
                        raise
                    self._replace(database, error, by_memory=verdict == "unusable" or left == 1)
                except OSError as error:
                    raise StoreError(f"the store cannot be read: {error}") from error
        raise AssertionError("unreachable")

    def _is_fresh(self, database: Database) -> bool:
        """Say whether nobody can have written what was not read, but for other processes, in the last moment."""
        if self._version is None or self._read_by is not database:
            return False
        version, at_s = self._read_at
        return version == self._version() and _monotonic() - at_s < _limits.INDEX_GRACE_S

    def _replace(self, database: Database, error: Exception, *, by_memory: bool) -> None:
        self._database = None
        if by_memory:
            log("the index cannot be used (%s) and is built in memory: %s", error, database.path)
            heads = heads_in(database.connection)
            database.close()
            self._database = in_memory(heads)
        else:
            log("the index was damaged (%s) and is rebuilt from the runs: %s", error, database.path)
            discard(self.root, database)

    def _runs(self, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        return self._answer(lambda database: [run_of_row(row) for row in database.connection.execute(sql, values)])

    def _ids(self, sql: str, values: Sequence[Any]) -> list[str]:
        return self._answer(lambda database: [str(row[0]) for row in database.connection.execute(sql, values)])

    def _existing(self, sql: str, values: Sequence[Any]) -> str | None:
        """Return the first id found whose directory is still there; the rows of one that was removed are dropped."""
        while found := self._ids(sql, values):
            if self._exists(found[0]):
                return found[0]
            self.lose(found[0])
        return None

    def lose(self, run_id: str) -> None:
        """Drop the rows of a run whose directory is gone; the last line that was seen stays remembered."""
        if is_run_id(run_id) and not self._exists(run_id):
            self._answer(lambda database: self._lose(database, run_id))

    def _lose(self, database: Database, run_id: str) -> None:
        follower = self._follower(database)
        follower.follow([], finally_=lambda: follower.lose(run_id))

    def _exists(self, run_id: str) -> bool:
        return layout.timeline(layout.run_dir(self.root, run_id)).exists()


def _is_inherited(database: Database) -> bool:
    if database.pid == os.getpid():
        return False
    _inherited.append(database)
    return True


def _fetched(
    cursor: sqlite3.Cursor, rows_max: int | None, bytes_max: int | None, *, is_page: bool
) -> list[tuple[Any, ...]]:
    """Return the rows of an answer, unless they are more than is wanted; of one in pages no more than a page has."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        if rows_max is not None and len(rows) == rows_max:
            if is_page:
                break
            raise _refused(f"it has more than {rows_max:,} rows")
        if bytes_max is not None:
            size += sum(len(one) if isinstance(one, (str, bytes)) else 8 for one in row)
            if size > bytes_max:
                raise _refused(f"it has more than {bytes_max:,} bytes")
        rows.append(row)
    return rows


def _refused(message: str) -> UsageError:
    return UsageError(f"the query was refused: {message}", hint=QUERY_HINT)
