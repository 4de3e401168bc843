"""Find events by the words in them.

Like the index it is a disposable projection: its file can be deleted, cut or overwritten at any time. It follows the
runs by the journal and from the byte offset of each timeline, in batches of which each is one transaction that reads
there how far it is, so that several processes may catch up at once. What is found is read from its line again: a run
that is gone, or whose timeline is not the one that was read, has no hits.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self, TypeVar

from playhead import _limits
from playhead._ids import is_run_id
from playhead.errors import UsageError
from playhead.store import layout, search_words
from playhead.store.index_database import FAULTS, Database, judge, log
from playhead.store.index_follow import continues
from playhead.store.search_database import LINE_BITS, busy, discard, open_database
from playhead.store.search_follow import News, Stretches, TextFollower, first_number, known_of, opened
from playhead.store.search_texts import Load, blob_loader, texts_of

T = TypeVar("T")

_ATTEMPTS = 3  # the file as it is, built again, in memory
_YIELD_S = 0.001  # between batches, so that somebody who waits for the write lock gets it

_FIND = (
    "SELECT lines.id, lines.offset FROM words CROSS JOIN lines ON lines.id = words.rowid"
    " WHERE words MATCH ? AND words.rowid < ? ORDER BY words.rowid DESC"
)
_RUNS = (
    f"SELECT r.run FROM (SELECT DISTINCT words.rowid >> {LINE_BITS} AS number FROM words"
    " CROSS JOIN lines ON lines.id = words.rowid WHERE words MATCH ?) found"
    " CROSS JOIN runs r ON r.number = found.number WHERE r.run IS NOT NULL ORDER BY r.number DESC"
)

_sleep, _monotonic = time.sleep, time.monotonic  # bound once: the agent's own clock may be replaced later

# Connections that a fork copied. Closing one here would disturb the process it belongs to, so none is ever freed.
_inherited: list[Database] = []


class Hit(NamedTuple):
    """An event that was found. `marks` are from where to where words stand in the snippet; `cursor` is a `before`."""

    run: str
    seq: int
    kind: str
    snippet: str
    marks: list[tuple[int, int]]
    cursor: str


class TextIndex:
    """Search the events of one store. Threads may share one: whoever asks waits for a batch of the reading at most."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._load: Load = blob_loader(self.root)
        self._lock = threading.RLock()
        self._database: Database | None = None
        self._news: News | None = None  # what is left to be read, of the database after it
        self._news_of: Database | None = None
        self._taken = Stretches()
        self._taken_in: Database | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. The next question opens it again."""
        with self._lock:
            database, self._database = self._database, None
            if database is not None and not _is_inherited(database):
                database.close()

    def catch_up(self, limit_s: float | None = None) -> bool:
        """Read what writers have written, the newest run first; False where the time was over before all was read."""
        until = None if limit_s is None else _monotonic() + limit_s
        with self._lock:
            if (left := self._news) is not None and self._open() is self._news_of:  # of a time that was over
                self._news = self._answer(lambda database: self._follower(database).newer(left))
        while not self._read_on():
            if until is not None and _monotonic() >= until:
                return False
            _sleep(_YIELD_S)
        return True

    def find(self, query: str, limit: int = _limits.SEARCH_HITS_DEFAULT, before: str | None = None) -> list[Hit]:
        """Return the events that hold all that is asked for, of the newest run first, its last event first.

        Answers from what was read so far: `catch_up` reads the rest. `before` is the `cursor` of the last hit of the
        page before. UsageError where the query asks for nothing.
        """
        asked = search_words.read(query)
        place = None if before is None else _place(before)
        if not 1 <= limit <= _limits.LIST_RUNS_MAX:
            raise UsageError("a search finds at least one event")
        for _ in range(_ATTEMPTS):
            hits, stale = self._answer(lambda database: self._hits(database, asked, limit, place))
            still_there = [self._mend(run) for run in stale]
            if not any(still_there):
                break  # what was written anew is looked through once more
        return hits

    def runs_with(self, query: str) -> list[str]:
        """Return the runs that hold such an event, the newest first, as far as they were read."""
        expression = search_words.read(query).expression()

        def ask(database: Database) -> list[str]:
            found = database.connection.execute(_RUNS, (expression,)).fetchall()
            return [str(run) for (run,) in found]

        return self._answer(ask)

    def rebuild(self) -> None:
        """Drop the file and read every run again."""
        with self._lock:
            discard(self.root, self._open())
            self._database = None
        self.catch_up()

    def _read_on(self) -> bool:
        """Read one batch; say whether it was the last one."""
        with self._lock:
            if self._open() is not self._news_of:  # at the beginning, or built again meanwhile
                self._news = None
            if self._news is None:
                self._news = self._answer(lambda database: self._follower(database).news())
                self._news_of = self._database
            news = self._news
            if news.runs or news.journal is not None:
                self._news = self._answer(lambda database: self._follower(database).read(news))
            if self._database is not self._news_of or self._news.runs:
                return False
            self._news = None
            if self._database is None or self._database.path is None or not self._is_mostly_dead():
                return True
            log("most of the search file is of runs that are gone, and it is built again: %s", self._database.path)
            discard(self.root, self._database)
            self._database = None
            return False

    def _is_mostly_dead(self) -> bool:
        return self._answer(lambda database: self._follower(database).is_mostly_dead())

    def _follower(self, database: Database) -> TextFollower:
        if self._taken_in is not database:  # else what was found out of another file
            self._taken, self._taken_in = Stretches(), database
        return TextFollower(self.root, database.connection, self._load, self._taken)

    def _mend(self, run: str) -> bool:
        """Read again what is no longer what was read; say whether it is still there."""
        with self._lock:
            more = News([run], (-1, ""), None)
            while more.runs:
                news = more
                more = self._answer(lambda database: self._follower(database).read(news))  # noqa: B023 - asked at once
        return layout.timeline(layout.run_dir(self.root, run)).exists()

    def _hits(
        self, database: Database, asked: search_words.Asked, limit: int, place: tuple[str, int] | None
    ) -> tuple[list[Hit], list[str]]:
        """Return what is found, and the runs that are no longer what was read."""
        below = 2**63 - 1 if place is None else _line_id(database.connection, *place)
        hits: list[Hit] = []
        stale: list[str] = []
        number, run, file = -1, "", None
        try:
            for id, offset in database.connection.execute(_FIND, (asked.expression(), below)):
                if id >> LINE_BITS != number:
                    number = id >> LINE_BITS
                    if file is not None:
                        file.close()
                    run, file = self._unchanged(database.connection, number)
                    if file is None:
                        stale.append(run)
                if file is not None:
                    file.seek(offset)
                    hits.append(self._hit(run, id, file.readline(_limits.LINE_BYTES_MAX), asked))
                    if len(hits) >= limit:
                        break
        finally:
            if file is not None:
                file.close()
        return hits, [run for run in stale if run]

    def _hit(self, run: str, id: int, line: bytes, asked: search_words.Asked) -> Hit:
        kind, texts = texts_of(line, self._load)
        found = search_words.snippet(texts, asked.wanted)
        seq = id & (2**LINE_BITS - 1)
        return Hit(run, seq, kind or "", found.text, found.marks, f"{run}:{seq}")

    def _unchanged(self, connection: sqlite3.Connection, number: int) -> tuple[str, BinaryIO | None]:
        """Open the timeline of a run, if it is still the one that was read."""
        row = connection.execute("SELECT run, bytes, tail FROM runs WHERE number = ?", (number,)).fetchone()
        if row is None or row[0] is None:
            return "", None
        run, size, tail = row
        file = opened(layout.run_dir(self.root, run))
        if file is not None and not continues(file, size, tail):
            file.close()
            file = None
        return run, file

    def _open(self) -> Database:
        """Return the open file: opened again where it was deleted, replaced or cut, or after a fork."""
        database = self._database
        if database is not None and _is_inherited(database):
            database = None
        elif database is not None and not database.is_current(self.root):
            database.close()
            database = None
        self._database = database or open_database(self.root)
        return self._database

    def _answer(self, ask: Callable[[Database], T]) -> T:
        """Ask; where the file turns out damaged, begin it anew."""
        with self._lock:
            for left in range(_ATTEMPTS - 1, -1, -1):
                database = self._open()
                try:
                    return ask(database)
                except FAULTS as error:
                    if str(error).startswith("fts5:"):  # no damage: what is asked is too much for it
                        raise UsageError(f"the search was refused: {error}") from error
                    verdict = judge(error)
                    if verdict == "busy":
                        raise busy(error) from error
                    if verdict != "damaged" or not left:
                        raise
                    log("the search file was damaged (%s) and is built again: %s", error, database.path)
                    self._database = None
                    discard(self.root, database)
        raise AssertionError("unreachable")


def _place(cursor: str) -> tuple[str, int]:
    run, _, seq = cursor.partition(":")
    if not is_run_id(run) or not (seq.isascii() and seq.isdecimal()) or int(seq) >= 2**LINE_BITS:
        raise UsageError(
            f"no page begins before {cursor[:80]!r}", hint="The cursor of a hit says where the next begins."
        )
    return run, int(seq)


def _line_id(connection: sqlite3.Connection, run: str, seq: int) -> int:
    """Return the id that a line has, or would have where its run is gone."""
    known = known_of(connection, run)
    return ((first_number(run) if known is None else known.number) << LINE_BITS) + seq


def _is_inherited(database: Database) -> bool:
    if database.pid == os.getpid():
        return False
    _inherited.append(database)
    return True
