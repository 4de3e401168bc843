"""Bring the index up to date with the files.

Writers note a run's id in the journal when they open and when they close it, and `prune` before it removes it. A
catch-up reads the journal from where it stopped, and then only the runs that were noted and those that a writer still
held at the last look. Each timeline is read on from its byte offset; its last bytes before that, which hold the head's
hash, must be the ones read then, else the run is read again from the start. What nobody has touched is not looked at.

Each batch is one transaction that starts by taking the write lock and reads there how far the index is, so several
processes may catch up at once, and one that is killed loses at most a batch.
"""

from __future__ import annotations

import functools
import os
import re
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from playhead import _limits
from playhead._ids import is_run_id
from playhead.errors import WriteFailed
from playhead.store import index_memory, layout, presence
from playhead.store.disk import Disk
from playhead.store.flushing import flush_file_system
from playhead.store.index_database import TABLES, Damaged, log
from playhead.store.index_reads import loader
from playhead.store.index_received import SUMMED, SUMS
from playhead.store.index_rows import INSERTS, NEW_PROGRESS, NEW_RUN, TAIL_BYTES, EnvelopeMatches, Rows

if TYPE_CHECKING:
    from playhead.store.reader import RunReader

Progress = Callable[[int, int], None]

# Searched anywhere in a line: a note that was torn may stand in front of the next one.
_NOTED = re.compile(rb"run_[0-9a-hjkmnp-tv-z]{26}")
_PRUNED = re.compile(rb"(run_[0-9a-hjkmnp-tv-z]{26}) pruned")
_ONE_BY_ONE_MAX = 4  # timelines; to flush more one by one takes longer than to flush the whole file system
_YIELD_S = 0.001  # between batches, so that somebody who waits for the write lock gets it

_LOAD = (
    f"SELECT {', '.join(f'r.{name}' for name in NEW_RUN)}, {', '.join(f'p.{name}' for name in NEW_PROGRESS)}"
    " FROM progress p LEFT JOIN runs r ON r.id = p.run WHERE p.run = ?"
)
_SAVE_RUN = f"INSERT OR REPLACE INTO runs ({', '.join(NEW_RUN)}) VALUES ({', '.join(f':{name}' for name in NEW_RUN)})"
_SAVE_PROGRESS = (
    f"INSERT OR REPLACE INTO progress ({', '.join(NEW_PROGRESS)})"
    f" VALUES ({', '.join(f':{name}' for name in NEW_PROGRESS)})"
)

_disk = Disk()
_sleep = time.sleep  # bound once: the agent's own clock may be replaced later


class Journal(NamedTuple):
    """What the journal says: how far it was read, its bytes just before that, and the runs noted since."""

    offset: int
    tail: str
    runs: list[str]
    replaced: bool


def read_journal(path: Path, offset: int, tail: str) -> Journal:
    """Read the journal on from an offset; from the start where it is not the one that was read then.

    A last line without a newline is still being written and is left for the next time.
    """
    replaced = False
    seen: dict[str, None] = {}
    last = b""
    try:
        with open(path, "rb") as file:
            if not continues(file, offset, tail):
                replaced, offset, tail = True, 0, ""
                file.seek(0)
            for raw, ending, length in complete_lines(file):
                offset += length
                last = ending
                seen.update((found.decode(), None) for found in _NOTED.findall(raw or b""))
    except FileNotFoundError:
        return Journal(0, "", [], offset > 0)
    return Journal(offset, last.decode("latin-1") if last else tail, list(seen), replaced)


def pruned_runs(path: Path) -> frozenset[str]:
    """Return the runs of which the journal says that they were to be pruned: it is no wonder if they are gone."""
    try:
        with open(path, "rb") as file:
            lines = (raw or b"" for raw, _, _ in complete_lines(file))
            return frozenset(found.decode() for raw in lines for found in _PRUNED.findall(raw))
    except FileNotFoundError:
        return frozenset()


def complete_lines(file: BinaryIO) -> Iterator[tuple[bytes | None, bytes, int]]:
    """Read on line by line: the line, its last bytes, its length. The line is None where it is too long to be held."""
    while raw := file.readline(_limits.LINE_BYTES_MAX):
        if raw.endswith(b"\n"):
            yield raw, raw[-TAIL_BYTES:], len(raw)
            continue
        if len(raw) < _limits.LINE_BYTES_MAX:
            return  # and not read on: the rest may come at this moment, and the line would be taken for too long
        length, ending = len(raw), raw[-TAIL_BYTES:]
        while not ending.endswith(b"\n"):
            raw = file.readline(_limits.READ_CHUNK_BYTES)
            if not raw:
                return
            length, ending = length + len(raw), (ending + raw)[-TAIL_BYTES:]
        yield None, ending, length


def continues(file: BinaryIO, offset: int, tail: str) -> bool:
    """Say whether the file still has, before the offset, the bytes it had there; and stand at the offset."""
    expected = tail.encode("latin-1")
    file.seek(offset - len(expected))
    return file.read(len(expected)) == expected


def _reader(root: Path, run_id: str) -> RunReader:
    """Return what follows references in a run: most lists of runs meet none that has to be."""
    from playhead.store.files import FileStore
    from playhead.store.reader import RunReader

    return RunReader(FileStore(root), run_id)


def _bring_to_disk(root: Path, read: dict[Path, bool]) -> None:
    """Wait until timelines are on the disk, with the folders that lead to them where that is asked for.

    What the index saw is evidence, so no power loss may take it from a timeline once the index holds it.
    """
    if sys.platform == "win32":  # what is only read cannot be flushed there
        return
    try:
        if len(read) > _ONE_BY_ONE_MAX and flush_file_system(root):
            return
        for directory, is_new in read.items():
            _flush_one(directory, is_new)
    except (OSError, WriteFailed) as error:
        log("a timeline cannot be brought to the disk; it is read all the same: %s", error)


def _flush_one(directory: Path, is_new: bool) -> None:
    try:
        descriptor = _disk.open(layout.timeline(directory), os.O_RDONLY)
    except FileNotFoundError:
        return  # pruned meanwhile
    try:
        _disk.sync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        _disk.sync_folder(directory)
        _disk.sync_folder(directory.parent)


def _has_types_of(row: dict[str, Any], new: dict[str, Any]) -> bool:
    """Say whether numbers are numbers and texts are texts, where a new row says which."""
    return all(new[name] is None or type(row[name]) is type(new[name]) for name in new)


class Follower:
    """Write what the files say into one open database."""

    def __init__(
        self, root: Path, connection: sqlite3.Connection, envelope_matches: EnvelopeMatches | None, *, lasting: bool
    ) -> None:
        self._root = root
        self._connection = connection
        self._envelope_matches = envelope_matches
        self._lasting = lasting
        self._pruned: tuple[int, frozenset[str]] = -1, frozenset()  # and the size of the journal that said so
        self._read: dict[Path, bool] = {}  # directories of runs of which lines were read, and whether they are new

    def catch_up(self, progress: Progress | None = None) -> None:
        """Read what is new. Without news the write lock is not even taken."""
        offset, tail, complete = self._state()
        journal = read_journal(layout.journal(self._root), offset, tail)
        runs = journal.runs
        if journal.replaced or not complete:
            runs = sorted({*runs, *self._directories()})
        noted = set(runs)
        sql = "SELECT p.run, r.bytes FROM progress p LEFT JOIN runs r ON r.id = p.run WHERE p.held = 1"
        held = self._connection.execute(sql).fetchall()
        folder = os.path.join(layout.runs_dir(self._root), "")
        unchanged = []
        for run, size in held:
            told = presence.vouched_size(folder + run)
            if run in noted or (told is not None and told == size):
                continue
            if told is None and self._has_length(run, size or 0):
                unchanged.append(layout.run_dir(self._root, run))
            else:
                runs.append(run)
        if unchanged:
            still_held = presence.held_among(unchanged)
            runs += [run_dir.name for run_dir in unchanged if run_dir not in still_held]
        if runs or not complete or (journal.offset, journal.tail) != (offset, tail):
            self.follow(runs, progress, lambda: self._remember((offset, tail), journal))

    def follow(
        self, runs: Iterable[str], progress: Progress | None = None, finally_: Callable[[], None] | None = None
    ) -> None:
        """Read the given runs on to their ends, in batches; then do one thing more in the last of them."""
        runs = list(runs)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            room = _limits.INDEX_BATCH_EVENTS
            for done, run_id in enumerate(runs):
                more = True
                while more:
                    lines, more = self._follow_one(run_id, room)
                    room -= lines + 1  # a run without news costs something too
                    if room <= 0:
                        self._bring_to_disk()
                        self._connection.execute("COMMIT")
                        _sleep(_YIELD_S)
                        self._connection.execute("BEGIN IMMEDIATE")
                        room = _limits.INDEX_BATCH_EVENTS
                if progress:
                    progress(done + 1, len(runs))
            index_memory.settle(self._connection, self._root)
            if finally_:
                finally_()
            self._bring_to_disk()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _bring_to_disk(self) -> None:
        read, self._read = self._read, {}
        _bring_to_disk(self._root, read)

    def forget(self, run_id: str) -> None:
        """Remove every row of a run, and what was seen of it."""
        self._drop_rows(run_id)
        self._connection.execute("DELETE FROM remembered WHERE run = ?", (run_id,))

    def lose(self, run_id: str) -> None:
        """Remove the rows of a run that is not there. What was seen of it stays known, unless it was pruned."""
        if self._was_pruned(run_id):
            self.forget(run_id)
            return
        self._remember_head(self._load(run_id)[0])
        self._drop_rows(run_id)

    def _was_pruned(self, run_id: str) -> bool:
        journal = layout.journal(self._root)
        size = os.stat(journal).st_size if journal.exists() else 0
        if self._pruned[0] != size:
            self._pruned = size, pruned_runs(journal)
        return run_id in self._pruned[1]

    def _remember_head(self, run: dict[str, Any]) -> None:
        if run["head_seq"] is not None:
            index_memory.remember(self._connection, {run["id"]: (run["head_seq"], run["head_hash"])})

    def _drop_rows(self, run_id: str) -> None:
        for table in (*TABLES, "progress"):
            column = "id" if table == "runs" else "run"
            self._connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (run_id,))

    def _follow_one(self, run_id: str, room: int) -> tuple[int, bool]:
        """Read at most `room` lines of a run; say how many, and whether there may be more."""
        directory = layout.run_dir(self._root, run_id)
        # Asked before reading: what a writer that is gone has written is then in the file.
        held = presence.is_held(directory)
        run, progress = self._load(run_id)
        timeline = os.fspath(layout.timeline(directory))
        try:
            if not stat.S_ISREG(os.stat(timeline).st_mode):
                raise FileNotFoundError(timeline)
            file = open(timeline, "rb", buffering=_limits.READ_CHUNK_BYTES // 4)  # noqa: SIM115
        except (FileNotFoundError, NotADirectoryError):
            self.lose(run_id)
            if held:  # its first line is still to come
                self._connection.execute(_SAVE_PROGRESS, {**NEW_PROGRESS, "run": run_id, "held": 1})
            return 0, False
        except OSError as error:
            log("a timeline cannot be read and keeps the rows it has: %s", error)
            self._connection.execute("UPDATE progress SET held = 0 WHERE run = ?", (run_id,))
            return 0, False
        with file:
            if not continues(file, run["bytes"], progress["tail"]):
                self._remember_head(run)
                self._drop_rows(run_id)
                run, progress = {**NEW_RUN, "id": run_id}, {**NEW_PROGRESS, "run": run_id}
                file.seek(0)
            reader = functools.cache(functools.partial(_reader, self._root, run_id))
            load, resolve = loader(self._root), lambda value: reader().readable(value)
            rows = Rows(run, progress, self._envelope_matches, load, resolve)
            more, new = False, not run["bytes"]
            for raw, tail, length in complete_lines(file):
                rows.add(raw, tail, length)
                if rows.lines >= room:
                    more = True
                    break
            if rows.lines and self._lasting:
                # Whoever finishes a run has flushed it with its folders; to ask again for the file costs little.
                self._read[directory] = new and (held or progress["ended"] is None)
        was_held = progress["held"] == 1
        if rows.lines or not run["bytes"] or was_held != held:
            # Between two batches the end of the run is not known yet: it is kept among the runs to look at.
            rows.settle(held or more)
            self._save(rows)
        return rows.lines, more

    def _load(self, run_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        row = self._connection.execute(_LOAD, (run_id,)).fetchone()
        if row is None:
            return {**NEW_RUN, "id": run_id}, {**NEW_PROGRESS, "run": run_id}
        run = dict(zip(NEW_RUN, row[: len(NEW_RUN)], strict=True))
        progress = dict(zip(NEW_PROGRESS, row[len(NEW_RUN) :], strict=True))
        if run["id"] is None:
            run = {**NEW_RUN, "id": run_id}
        readable = _has_types_of(run, NEW_RUN) and _has_types_of(progress, NEW_PROGRESS)
        if not readable or run["bytes"] < len(progress["tail"]):
            raise Damaged(f"the progress of {run_id} is not readable")
        return run, progress

    def _save(self, rows: Rows) -> None:
        for name, pending in rows.pending.items():
            if pending:
                self._connection.executemany(INSERTS[name], pending)
        if rows.revised:
            sums = self._connection.execute(SUMS, (rows.run["id"],)).fetchone()
            rows.run.update(zip(SUMMED, sums, strict=True))
        if rows.run["bytes"]:
            self._connection.execute(_SAVE_RUN, rows.run)
        if rows.run["bytes"] or rows.progress["held"]:
            self._connection.execute(_SAVE_PROGRESS, rows.progress)
        else:  # nothing was ever written and nobody is about to
            self._connection.execute("DELETE FROM progress WHERE run = ?", (rows.run["id"],))

    def _has_length(self, run_id: str, known: int) -> bool:
        try:
            return os.stat(layout.timeline(layout.run_dir(self._root, run_id))).st_size == known
        except OSError:
            return False

    def _directories(self) -> list[str]:
        try:
            return [name for name in os.listdir(layout.runs_dir(self._root)) if is_run_id(name)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _state(self) -> tuple[int, str, bool]:
        state = dict(self._connection.execute("SELECT name, value FROM state").fetchall())
        offset, tail = str(state.get("journal_offset", "0")), state.get("journal_tail", "")
        if not offset.isdecimal() or type(tail) is not str or int(offset) < len(tail):
            raise Damaged("the place in the journal is not readable")
        return int(offset), tail, state.get("complete") == "1"

    def _remember(self, before: tuple[int, str], journal: Journal) -> None:
        """Keep how far the journal was read, unless another process has read on meanwhile."""
        if self._state()[:2] == before:
            rows = [("journal_offset", str(journal.offset)), ("journal_tail", journal.tail), ("complete", "1")]
            self._connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", rows)
