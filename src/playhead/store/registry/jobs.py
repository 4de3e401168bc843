"""Keep jobs, and give each to one worker at a time.

A worker that claims a job has a lease on it, which it renews while it works. What is said about a job is taken only
from the worker that has the lease, while it has it: one that has lost it is told so, and its job is somebody else's. So
every change is a compare-and-set of status, worker and lease. Attempts and time have limits: a job that kills its
workers, or never ends, fails and is not tried for ever.

Workers have names of their own: no two that live at the same time, and no two threads, may have the same one.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, fields
from typing import Any

import orjson

from playhead import _limits
from playhead._ids import is_job_id, new_job_id
from playhead.errors import Conflict, NotFound, StoreError, UsageError
from playhead.store import layout
from playhead.store.registry import pages
from playhead.store.registry.database import Registry

STATUSES = ("queued", "running", "completed", "failed", "cancelled")

_OPEN = "status IN ('queued', 'running')"  # said in these words, so that the index of open jobs is used
_MINE = "id = ? AND status = 'running' AND worker = ? AND lease_us > ?"


@dataclass(frozen=True)
class Job:
    """A job as it is kept. Times are microseconds since 1970; `done` of `total` is how far its worker says it is."""

    id: str
    project: str
    kind: str
    args: dict[str, Any]
    target_run: str | None
    status: str
    attempts: int
    worker: str | None
    lease_us: int | None
    created_us: int
    started_us: int | None
    finished_us: int | None
    done: int | None
    total: int | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None


_COLUMNS = ", ".join(field.name for field in fields(Job))


class Jobs:
    """Queue jobs of all projects, and hand them out, the oldest first."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def add(self, project: str, kind: str, args: dict[str, Any], *, target_run: str | None = None) -> Job:
        """Queue a job; Conflict where another one makes, or has made, the run `target_run` of the same project."""
        layout.project_name(project)
        asked, now = _encoded(args), self._now()
        id = new_job_id(self._registry.clock)
        try:
            with self._registry.writing() as connection:
                connection.execute(
                    "INSERT INTO jobs (id, project, kind, args, target_run, status, attempts, created_us)"
                    " VALUES (?, ?, ?, ?, ?, 'queued', 0, ?)",
                    (id, project, kind, asked, target_run, now),
                )
        except sqlite3.IntegrityError:
            raise Conflict(
                f"another job makes the run {target_run}",
                hint="Leave the id of the run open, or look at what the other job has done.",
                detail={"target_run": target_run},
            ) from None
        return self.get(project, id)

    def get(self, project: str, id: str) -> Job:
        """Return one job; NotFound where the project has none of that id."""
        with self._registry.reading() as connection:
            row = _row(connection, id) if connection is not None and is_job_id(id) else None
        if row is None or row[1] != project:
            raise NotFound(f"there is no job {id[:80]!r} in project {project}")
        return self._job(row)

    def list(
        self,
        project: str,
        limit: int = _limits.PAGE_ROWS_DEFAULT,
        after: str | None = None,
        status: str | None = None,
    ) -> tuple[list[Job], str | None]:
        """Return jobs, the newest first, and what `after` is for the next page: None where there is none."""
        pages.check(limit, after, is_job_id)
        if status is not None and status not in STATUSES:
            raise UsageError(f"no job has the status {status[:80]!r}", hint=f"There are {', '.join(STATUSES)}.")
        wanted = [("project = ?", project), ("id < ?", after), ("status = ?", status)]
        given = [(sql, value) for sql, value in wanted if value is not None]
        where = " AND ".join(sql for sql, _ in given)
        with self._registry.reading() as connection:
            if connection is None:
                return [], None
            sql = f"SELECT {_COLUMNS} FROM jobs WHERE {where} ORDER BY id DESC LIMIT ?"
            rows = connection.execute(sql, (*(value for _, value in given), limit + 1)).fetchall()
        return pages.page([self._job(row) for row in rows], limit, lambda job: job.id)

    def claim(self, worker: str, lease_s: float) -> Job | None:
        """Take the oldest job that is queued, or whose lease has run out; None where there is nothing to do.

        Before that, jobs that have run out of attempts or of time are failed.
        """
        now = self._now()
        with self._registry.reading() as connection:  # most looks find nothing, and take no lock
            if connection is None or _next(connection, now) is None:
                return None
        with self._registry.writing() as connection:
            _expire(connection, now)
            found = _next(connection, now)
            if found is None:
                return None
            id, status, before, lease_us = found
            taken = connection.execute(
                "UPDATE jobs SET status = 'running', worker = ?, lease_us = ?, attempts = attempts + 1,"
                " started_us = coalesce(started_us, ?), done = NULL, total = NULL"
                " WHERE id = ? AND status = ? AND worker IS ? AND lease_us IS ?",
                (worker, _end(now, lease_s), now, id, status, before, lease_us),
            )
            row = _row(connection, id) if taken.rowcount == 1 else None
        return None if row is None else self._job(row)

    def renew(self, id: str, worker: str, lease_s: float) -> bool:
        """Keep a job for longer; False where it was lost or cancelled, or has run out of time: then stop working."""
        now = self._now()
        return self._change("lease_us = ?", (_end(now, lease_s),), id, worker, now)

    def release(self, id: str, worker: str) -> bool:
        """Give a job back undone: the next one takes it at once, and this attempt does not count."""
        change = "status = 'queued', worker = NULL, lease_us = NULL, started_us = NULL, attempts = attempts - 1"
        return self._change(change, (), id, worker, self._now())

    def progress(self, id: str, worker: str, done: int, total: int | None) -> bool:
        """Say how far a job is; False as for `renew`."""
        return self._change("done = ?, total = ?", (done, total), id, worker, self._now())

    def complete(self, id: str, worker: str, result: dict[str, Any]) -> bool:
        """End a job well; False where it is no longer this worker's, and nothing was changed."""
        now = self._now()
        change = "status = 'completed', lease_us = NULL, finished_us = ?, result = ?"
        return self._change(change, (now, _encoded(result)), id, worker, now)

    def fail(self, id: str, worker: str, error: dict[str, Any]) -> bool:
        """End a job badly, for good; False where it is no longer this worker's, and nothing was changed."""
        now = self._now()
        change = "status = 'failed', lease_us = NULL, finished_us = ?, error = ?"
        return self._change(change, (now, _encoded(error)), id, worker, now)

    def cancel(self, project: str, id: str) -> Job:
        """Cancel a job that has not ended; its worker notices when it says the next thing. Conflict where it has."""
        job, now = self.get(project, id), self._now()
        with self._registry.writing() as connection:
            changed = connection.execute(
                "UPDATE jobs SET status = 'cancelled', lease_us = NULL, finished_us = ?"
                " WHERE id = ? AND status IN ('queued', 'running')",
                (now, id),
            ).rowcount
        job = self.get(project, id)
        if not changed:
            raise Conflict(
                f"the job {id} is {job.status} already", hint="What is done stays.", detail={"status": job.status}
            )
        return job

    def expire(self) -> int:
        """Fail the jobs that have run out of attempts or of time, and return how many; `claim` does so as well."""
        with self._registry.reading() as connection:
            if connection is None:
                return 0
        with self._registry.writing() as connection:
            return _expire(connection, self._now())

    def _change(self, change: str, values: tuple[Any, ...], id: str, worker: str, now: int) -> bool:
        with self._registry.writing() as connection:
            _expire(connection, now)
            sql = f"UPDATE jobs SET {change} WHERE {_MINE}"
            return connection.execute(sql, (*values, id, worker, now)).rowcount == 1

    def _job(self, row: tuple[Any, ...]) -> Job:
        values = dict(zip((field.name for field in fields(Job)), row, strict=True))
        try:
            for name in ("args", "result", "error"):
                values[name] = None if values[name] is None else orjson.loads(values[name])
        except orjson.JSONDecodeError as problem:
            raise StoreError(f"{self._registry.path} is damaged: {values['id']} cannot be read: {problem}") from None
        return Job(**values)

    def _now(self) -> int:
        return self._registry.clock.wall_us()


def _end(now: int, lease_s: float) -> int:
    return now + max(1, int(lease_s * 1_000_000))


def _row(connection: sqlite3.Connection, id: str) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = connection.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (id,)).fetchone()
    return row


def _next(connection: sqlite3.Connection, now: int) -> tuple[Any, ...] | None:
    """Return id, status, worker and lease of the oldest job that may be taken."""
    row: tuple[Any, ...] | None = connection.execute(
        f"SELECT id, status, worker, lease_us FROM jobs WHERE {_OPEN}"
        " AND (status = 'queued' OR lease_us <= ?) ORDER BY id LIMIT 1",
        (now,),
    ).fetchone()
    return row


def _expire(connection: sqlite3.Connection, now: int) -> int:
    """Fail what has run too long, and what was tried too often."""
    too_late = now - int(_limits.JOB_SECONDS_MAX * 1_000_000)
    slow = {
        "code": "timed_out",
        "message": f"it took longer than {_limits.JOB_SECONDS_MAX:.0f} s, all attempts together",
    }
    tried = {
        "code": "worker_lost",
        "message": f"{_limits.JOB_ATTEMPTS_MAX} workers took it, and none was heard of again",
    }
    change = "UPDATE jobs SET status = 'failed', lease_us = NULL, finished_us = ?, error = ?"
    sql = f"{change} WHERE {_OPEN} AND status = 'running'"
    late = connection.execute(f"{sql} AND started_us <= ?", (now, orjson.dumps(slow).decode(), too_late)).rowcount
    lost = connection.execute(
        f"{sql} AND lease_us <= ? AND attempts >= ?",
        (now, orjson.dumps(tried).decode(), now, _limits.JOB_ATTEMPTS_MAX),
    ).rowcount
    return late + lost


def _encoded(value: dict[str, Any]) -> str:
    try:
        told = orjson.dumps(value)
    except orjson.JSONEncodeError as problem:
        raise UsageError(f"this cannot be kept with a job: {problem}") from None
    if len(told) > _limits.JOB_JSON_BYTES_MAX:
        raise UsageError(
            f"a job is asked, and answers, at most {_limits.JOB_JSON_BYTES_MAX:,} bytes of JSON, not {len(told):,}"
        )
    return told.decode()
