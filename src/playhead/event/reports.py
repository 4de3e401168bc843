"""Type what git and CI say of a run: while it lasts, or later, when somebody imports it."""

from __future__ import annotations

from typing import Any

from playhead.event.payload import Payload


class GitCommitted(Payload):
    """Record a commit that belongs to the run: one that was made while it lasted, unless `link` says otherwise."""

    KIND = "git.committed"
    commit: str
    files: list[str] = []
    patch: str | None = None  # artifact name
    message: str | None = None
    author: str | None = None
    authored: str | None = None
    parents: list[str] = []
    committer: str | None = None
    committed: str | None = None
    changes: list[Any] = []  # of each file: path, status, added and removed lines, and `before`, its name until then
    link: str | None = (
        None  # of one that it did not make, or that was imported: older, trailer, note, started_from, range
    )
    shallow: bool = False  # the clone ends here: which parents it has, and what it changed, is not known


class CiReported(Payload):
    """Record a result that CI reported: of a job, of a step in it, or of a test."""

    KIND = "ci.reported"
    job: str | None = None
    step: str | None = None
    result: str | None = None  # success, failure, cancelled, skipped, unknown, or another word of the provider's
    test: dict[str, Any] | None = None  # name, classname, file, line, status, duration_us, message, text, …
    log: Any = None
    number: int | None = None  # of the step in its job
    source: str | None = None  # what it was imported from: junit, actions-log
    result_from: str | None = None  # who says so: `api`, `file`, or `log` where it was read off the log
    ci: dict[str, Any] | None = None  # as in run.started: provider, run_id, attempt, workflow, url, …
    commit: str | None = None  # that was tested
    dirty: bool = False  # with changes that are in no commit
    link: str | None = None  # why it is in this run: named, property, ci_run, committed, trailer, note, started_from
    started: str | None = None
    finished: str | None = None
    duration_us: int | None = None
    counts: dict[str, int] = {}  # of tests by status, or of steps by result
    tests: list[Any] = []  # all of a suite, each as in `test`; what failed has an event of its own, and is short here
    errors: list[str] = []  # what was marked as one in a log; the failures of a job
    groups: list[str] = []  # titles of the groups in a log
    properties: dict[str, Any] = {}
