"""Bring the search for words up to date with the files.

The runs to look at come from the journal, as for the index (index_follow.py), and from those that a writer still held
at the last look. Each timeline is read on from its byte offset; its last bytes before that must be the ones read then,
else the run is read again from the start, under a new number. Each batch is one transaction that begins with the write
lock and reads there how far each run is, so several processes may catch up at once.
"""

from __future__ import annotations

import bisect
import os
import sqlite3
import stat
from collections import deque
from pathlib import Path
from typing import BinaryIO, NamedTuple

from playhead import _limits
from playhead._ids import is_run_id, time_ms
from playhead.store import layout, presence
from playhead.store.index_database import Damaged
from playhead.store.index_follow import Journal, complete_lines, continues, read_journal
from playhead.store.search_database import BETWEEN, LINE_BITS
from playhead.store.search_texts import Load, texts_of

_EPOCH_MS = 1_577_836_800_000  # 2020: numbers of runs count from there, and fit for 34 years
_NUMBER_MAX = (1 << 63 - LINE_BITS) - (1 << 20)  # some are left for runs of the same millisecond
_DEAD_MIN = 10_000  # lines of runs that are gone, from which on the file may be made anew


class Known(NamedTuple):
    """How far a run was read."""

    number: int
    bytes: int
    tail: str
    lines: int


class News(NamedTuple):
    """The runs that may have news, the newest first, and what the journal said up to where; none where nothing new."""

    runs: list[str]
    before: tuple[int, str]
    journal: Journal | None


class Stretches:
    """Remember stretches of numbers that are taken: where many runs begin in a millisecond, they are long."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # the first number after each

    def after(self, number: int) -> int:
        """Return the number itself, or the first one after the stretch that it is in."""
        place = bisect.bisect_right(self._starts, number) - 1
        return max(number, self._ends[place]) if place >= 0 else number

    def add(self, start: int, end: int) -> None:
        """Note that all from `start` on are taken, but not `end`."""
        first, last = bisect.bisect_left(self._ends, start), bisect.bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        if len(self._starts) > _limits.SEARCH_STRETCHES_MAX:
            self._starts, self._ends = [], []


class TextFollower:
    """Write the words of what the files say into one open database."""

    def __init__(self, root: Path, connection: sqlite3.Connection, load: Load, taken: Stretches | None = None) -> None:
        self._root = root
        self._connection = connection
        self._load = load
        self._taken = taken or Stretches()

    def news(self) -> News:
        """Say what is to be read."""
        offset, tail, complete = self._state()
        journal = read_journal(layout.journal(self._root), offset, tail)
        runs = set(journal.runs)
        if journal.replaced or not complete:
            runs.update(self._directories())
            runs.update(run for (run,) in self._connection.execute("SELECT run FROM runs WHERE run IS NOT NULL"))
        runs.update(self._held_with_news())
        same = complete and (journal.offset, journal.tail) == (offset, tail)
        return News(sorted(runs, reverse=True), (offset, tail), None if same else journal)

    def newer(self, news: News) -> News:
        """Put what was written since before what is left to be read."""
        journal = news.journal
        if journal is None:
            return self.news()
        since = read_journal(layout.journal(self._root), journal.offset, journal.tail)
        if since.replaced:
            return self.news()
        newer = {*since.runs, *self._held_with_news()}
        left = (run for run in news.runs if run not in newer)
        return News([*sorted(newer, reverse=True), *left], news.before, since)

    def read(self, news: News) -> News:
        """Read a batch, and return what is left; with the last of it, keep how far the journal was read."""
        left, room = deque(news.runs), _limits.SEARCH_BATCH_EVENTS
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            while left and room > 0:
                used, more = self._follow(left[0], room)
                room -= used + 1  # a run without news costs something too
                if not more:
                    left.popleft()
            journal = news.journal
            if not left and journal is not None:
                if self._state()[:2] == news.before:  # else another process has read on meanwhile
                    self._keep(journal_offset=journal.offset, journal_tail=journal.tail, complete=1)
                journal = None
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return News(list(left), news.before, journal)

    def is_mostly_dead(self) -> bool:
        """Say whether most words are of runs that are gone."""
        dead = self._dead()
        if dead <= _DEAD_MIN:
            return False
        sql = "SELECT ifnull(sum(lines), 0) FROM runs WHERE run IS NOT NULL"
        return dead > int(self._connection.execute(sql).fetchone()[0])

    def _held_with_news(self) -> list[str]:
        held = self._connection.execute("SELECT run, bytes FROM runs WHERE held = 1 AND run IS NOT NULL").fetchall()
        folder = os.path.join(layout.runs_dir(self._root), "")
        return [run for run, size in held if self._has_news(run, size, presence.vouched_size(folder + run))]

    def _has_news(self, run: str, size: int, told: int | None) -> bool:
        if told is not None:
            return told != size
        directory = layout.run_dir(self._root, run)
        try:
            return os.stat(layout.timeline(directory)).st_size != size or not presence.is_held(directory)
        except OSError:
            return True

    def _directories(self) -> list[str]:
        try:
            return [name for name in os.listdir(layout.runs_dir(self._root)) if is_run_id(name)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _follow(self, run: str, room: int) -> tuple[int, bool]:
        """Read a run on, as far as there is room; say how much of it was used, and whether there may be more."""
        directory = layout.run_dir(self._root, run)
        held = presence.is_held(directory)  # asked before reading: what a writer that is gone has written is then there
        known = known_of(self._connection, run)
        file = opened(directory)
        if file is None:
            if held and known is not None and known.bytes == 0:
                return 0, False
            self._drop(known)
            if held:  # its first line is still to come
                self._save(run, Known(self._free_number(run), 0, "", 0), held)
            return 0, False
        with file:
            if known is not None and not continues(file, known.bytes, known.tail):
                self._drop(known)
                known = None
            if known is None:
                file.seek(0)
                known = Known(self._free_number(run), 0, "", 0)
            known, used, more = self._read(file, known, room)
        self._save(run, known, held or more)
        return used, more

    def _read(self, file: BinaryIO, known: Known, room: int) -> tuple[Known, int, bool]:
        first, offset, tail, seq = known.number << LINE_BITS, known.bytes, known.tail, known.lines
        places: list[tuple[int, int]] = []
        words: list[tuple[int, str]] = []
        used, more = 0, False
        for raw, ending, length in complete_lines(file):
            if raw is not None and seq < _limits.SEARCH_EVENTS_MAX:
                _, texts = texts_of(raw, self._load)
                if texts:
                    places.append((first + seq, offset))
                    words.append((first + seq, BETWEEN.join(texts)))
                    used += len(words[-1][1]) // _limits.SEARCH_EVENT_CHARACTERS
            offset, tail, seq, used = offset + length, ending.decode("latin-1"), seq + 1, used + 1
            if used >= room:
                more = True
                break
        self._connection.executemany("INSERT INTO lines VALUES (?, ?)", places)
        self._connection.executemany("INSERT INTO words (rowid, texts) VALUES (?, ?)", words)
        return Known(known.number, offset, tail, seq), used, more

    def _save(self, run: str, known: Known, held: bool) -> None:
        self._connection.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE"
            " SET bytes = excluded.bytes, tail = excluded.tail, lines = excluded.lines, held = excluded.held",
            (known.number, run, known.bytes, known.tail, known.lines, int(held)),
        )

    def _drop(self, known: Known | None) -> None:
        """Forget a run. Its words stay behind; without lines they are never found."""
        if known is None:
            return
        first = known.number << LINE_BITS
        self._connection.execute("DELETE FROM lines WHERE id BETWEEN ? AND ?", (first, first + 2**LINE_BITS - 1))
        self._connection.execute("UPDATE runs SET run = NULL, held = 0 WHERE number = ?", (known.number,))
        self._keep(dead=self._dead() + known.lines)

    def _free_number(self, run: str) -> int:
        """Return a number that no run has or had: that of the run's millisecond, or the next free one."""
        first = number = first_number(run)
        sql = "SELECT 1 FROM runs WHERE number = ?"
        while True:
            number = self._taken.after(number)
            if self._connection.execute(sql, (number,)).fetchone() is None:
                break
            number += 1
        self._taken.add(first, number + 1)
        return number

    def _dead(self) -> int:
        row = self._connection.execute("SELECT value FROM state WHERE name = 'dead'").fetchone()
        return int(row[0]) if row is not None and str(row[0]).isdecimal() else 0

    def _keep(self, **values: str | int) -> None:
        rows = [(name, str(value)) for name, value in values.items()]
        self._connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", rows)

    def _state(self) -> tuple[int, str, bool]:
        state = dict(self._connection.execute("SELECT name, value FROM state").fetchall())
        offset, tail = str(state.get("journal_offset", "0")), state.get("journal_tail", "")
        if not offset.isdecimal() or type(tail) is not str or int(offset) < len(tail):
            raise Damaged("the place in the journal is not readable")
        return int(offset), tail, state.get("complete") == "1"


def known_of(connection: sqlite3.Connection, run: str) -> Known | None:
    """Return how far a run was read; None where it was not, or is gone."""
    row = connection.execute("SELECT number, bytes, tail, lines FROM runs WHERE run = ?", (run,)).fetchone()
    if row is None:
        return None
    known = Known(*row)
    if tuple(map(type, known)) != (int, int, str, int) or known.bytes < len(known.tail):
        raise Damaged(f"how far {run} was read cannot be read")
    return known


def first_number(run: str) -> int:
    """Return the number that a run gets, where no other was made in its millisecond."""
    since_ms: int = time_ms(run) - _EPOCH_MS
    return max(0, min(since_ms, _NUMBER_MAX))


def opened(directory: Path) -> BinaryIO | None:
    """Open a timeline; None where there is none, or nothing that can be read."""
    path = layout.timeline(directory)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        return open(path, "rb", buffering=_limits.READ_CHUNK_BYTES // 4)
    except OSError:
        return None
