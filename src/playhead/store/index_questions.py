"""Ask about runs what every index answers by the same SQL, wherever its tables lie."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import orjson

from playhead import _limits
from playhead._ids import is_run_id
from playhead.store.index_database import Damaged
from playhead.store.index_filter import RunFilter
from playhead.store.index_memory import Heads
from playhead.store.index_rows import NEW_RUN

if TYPE_CHECKING:
    from playhead.store.remote.address import Address

T = TypeVar("T")

STATUSES = ("running", "crashed", "ok", "error", "cancelled")
COLUMNS = tuple(NEW_RUN)
SELECT = f"SELECT {', '.join(COLUMNS)} FROM runs"
_AT_ONCE = 500  # runs asked about in one question


class Questions(ABC):
    """What may be asked about the runs of one store. Threads may share one."""

    root: Path | Address  # of the store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open. The next question opens it again."""

    @abstractmethod
    def get(self, run_id: str) -> dict[str, Any] | None:
        """Return one run as `list_runs` does; a run directory that nobody noted in the journal is read now."""

    @abstractmethod
    def head(self, run_id: str) -> tuple[int, str] | None:
        """Return seq and hash of the last line of a run that was seen, whether or not it is still there."""

    @abstractmethod
    def heads(self) -> Heads:
        """Return the same for every run, also for those whose directory is gone, unless they were pruned."""

    @abstractmethod
    def query(
        self, sql: str, params: Sequence[Any] | dict[str, Any] = (), *, replays: bool = True
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Answer one SELECT with its column names and rows. What writes, attaches or sets anything is refused.

        Without `replays`, nothing of exact replays is in the tables: what they asked was answered from a recording.
        """

    @abstractmethod
    def read(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        """Let somebody ask several questions; nothing can be written."""

    @abstractmethod
    def _runs(self, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the rows of a question, each as a run."""

    @abstractmethod
    def _ids(self, sql: str, values: Sequence[Any]) -> list[str]:
        """Return the first column of a question."""

    @abstractmethod
    def _existing(self, sql: str, values: Sequence[Any]) -> str | None:
        """Return the first id found that is still there."""

    def list_runs(self, *, limit: int = _limits.LIST_RUNS_DEFAULT, **chosen: Any) -> list[dict[str, Any]]:
        """List runs, newest first, open ones included; `chosen` are fields of RunFilter. A negative `limit` is none."""
        where, values = RunFilter(**chosen).where()
        return self._runs(f"{SELECT}{where and f' WHERE {where}'} ORDER BY id DESC LIMIT ?", (*values, limit))

    def names(self, runs: Sequence[str]) -> dict[str, str]:
        """Return the names of runs, by their ids."""
        found: dict[str, str] = {}
        for start in range(0, len(runs), _AT_ONCE):
            page = runs[start : start + _AT_ONCE]
            sql = f"SELECT id, name FROM runs WHERE id IN ({','.join('?' * len(page))})"
            found.update((run, name or "") for run, name in self.query(sql, page)[1])
        return found

    def find_envelope(self, envelope_hash: str, *, status: str | None = None, before: str | None = None) -> str | None:
        """Return the newest run that was asked this and can be played back: one look-up among any number of runs.

        `status` asks for runs that ended so; `before` goes on to the one before that run.
        """
        sql = (
            "SELECT id FROM runs WHERE envelope_hash = ? AND replayable = 1 AND (? IS NULL OR status = ?)"
            " AND (? IS NULL OR id < ?) ORDER BY id DESC LIMIT 1"
        )
        return self._existing(sql, (envelope_hash, status, status, before, before))

    def latest(self, name: str | None = None, back: int = 0) -> str | None:
        """Return the newest run, or the newest of a name, or the one `back` runs before it.

        Replays and child runs do not count, unless no other has the name.
        """
        if name is None:
            return self._existing("SELECT id FROM runs WHERE origin IS NULL ORDER BY id DESC LIMIT 1 OFFSET ?", (back,))
        own = "EXISTS (SELECT 1 FROM runs WHERE name = ? AND origin IS NULL)"
        sql = f"SELECT id FROM runs WHERE name = ? AND (origin IS NULL) = {own} ORDER BY id DESC LIMIT 1 OFFSET ?"
        return self._existing(sql, (name, name, back))

    def with_prefix(self, prefix: str, limit: int = 10) -> list[str]:
        """Return the ids that begin like this, newest first; with a negative limit all of them."""
        # "{" comes after every letter an id can have.
        sql = "SELECT id FROM runs WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?"
        return self._ids(sql, (prefix, prefix + "{", limit))

    def by_external_id(self, id: str) -> str | None:
        """Return the newest run that came from outside under this id."""
        return self._existing("SELECT id FROM runs WHERE external_id = ? ORDER BY id DESC LIMIT 1", (id,))

    def by_trace(self, id: str) -> str | None:
        """Return the newest run that has spans of this trace."""
        sql = (
            "SELECT r.id FROM traces t JOIN runs r ON r.id = t.run WHERE t.trace = ? AND r.origin IS NULL"
            " ORDER BY r.id DESC LIMIT 1"
        )
        return self._existing(sql, (id,))


def run_of_row(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row of `runs` as people and scripts see it."""
    run = dict(zip(COLUMNS, row, strict=True))
    if run["status"] not in STATUSES or not is_run_id(str(run["id"])):
        raise Damaged("a row of runs is not readable")
    try:
        for column in ("origin", "reasons", "received", "tags"):
            run[column] = None if run[column] is None else orjson.loads(run[column])
        run["duration_ms"] = None if run["duration_us"] is None else run["duration_us"] / 1000
    except (ValueError, TypeError) as error:
        raise Damaged(f"a row of runs is not readable: {error}") from error
    run["replayable"] = bool(run["replayable"])
    run["git_dirty"] = None if run["git_dirty"] is None else bool(run["git_dirty"])
    return run
