"""Name what a server tells of what it keeps beside runs: hits of a search, cassettes, jobs, keys."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class Hit(msgspec.Struct, frozen=True):
    """An event that holds what was looked for; `marks` are from where to where the words stand in `snippet`."""

    run: str
    seq: int
    kind: str
    snippet: str
    marks: list[tuple[int, int]] = []


class Head(msgspec.Struct, frozen=True):
    """The last line of a run."""

    seq: int
    hash: str


class KeptCassette(msgspec.Struct, frozen=True):
    """A cassette that a server keeps."""

    id: str
    name: str
    run_id: str
    form: str
    runs: int | list[str]
    events: int
    bytes: int
    digest: str
    head: Head
    created: str
    external_id: str | None = None
    by: str | None = None


class Progress(msgspec.Struct, frozen=True):
    """How far a job is."""

    done: int | None = None
    total: int | None = None


class Job(msgspec.Struct, frozen=True):
    """Work that takes longer: `status` is queued, running, completed, failed or cancelled."""

    id: str
    kind: str
    status: str
    created: str
    progress: Progress = Progress()
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    args: dict[str, Any] = {}
    attempts: int = 0
    started: str | None = None
    finished: str | None = None

    @property
    def ended(self) -> bool:
        """Say whether nothing more will come of it."""
        return self.status in ("completed", "failed", "cancelled")


class Rows(NamedTuple):
    """The answer to a question in SQL."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
