"""Read what GitHub says of the jobs of a run, and put it to their logs.

Both forms are known: that of the REST API (`started_at`), and that of `gh run view --json jobs` (`startedAt`).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson

from playhead import _limits
from playhead.errors import BadImport
from playhead.ingest.actions_log import UNKNOWN, Job, Logs, Step, in_order

_NOT_IN_FILES = re.compile(r'[/\\:*?"<>|]')
_FILE_NAME_MAX = 90  # letters of a job's name, in UTF-16, that its file has


class ToldStep(msgspec.Struct):
    """What GitHub says of one step."""

    name: str
    number: int | None
    result: str
    started: str | None
    finished: str | None


class ToldJob(msgspec.Struct):
    """What GitHub says of one job."""

    name: str
    result: str
    started: str | None
    finished: str | None
    url: str | None
    steps: list[ToldStep]


class Told(msgspec.Struct):
    """What GitHub says of a run: its jobs, its id, and the commit that it was of."""

    jobs: list[ToldJob]
    ci: dict[str, str]
    commit: str | None


def read(data: bytes) -> Told:
    """Read the answer of the API; an answer for several pages may be a list of them."""
    if len(data) > _limits.IMPORT_FILE_BYTES_MAX:
        raise BadImport(f"it has more than {_limits.IMPORT_FILE_BYTES_MAX:,} bytes")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        raise BadImport(f"it is no JSON: {problem}") from None
    pages = document if isinstance(document, list) else [document]
    jobs: list[dict[str, Any]] = []
    for page in pages:
        listed = page.get("jobs", [page] if "steps" in page else None) if isinstance(page, dict) else None
        if not isinstance(listed, list) or not all(isinstance(job, dict) for job in listed):
            raise BadImport("it is no list of jobs", hint="`gh api repos/OWNER/REPO/actions/runs/ID/jobs` gives one.")
        jobs += listed
    page, first = (pages[0] if pages else {}), (jobs[0] if jobs else {})
    ci = {
        "provider": "github-actions",
        "run_id": _word(first, "run_id") or _word(page, "databaseId"),
        "attempt": _word(first, "run_attempt") or _word(page, "attempt"),
        "workflow": _word(first, "workflow_name") or _word(page, "workflowName"),
        "branch": _word(first, "head_branch") or _word(page, "headBranch"),
        "url": _word(page, "url"),
    }
    known = {name: word for name, word in ci.items() if word is not None}
    return Told([_job(job) for job in jobs], known, _word(first, "head_sha") or _word(page, "headSha"))


def apply(logs: Logs, told: Told) -> Logs:
    """Return the logs with what GitHub says: results, names and times; what has no log is there too."""
    left = list(logs.jobs)
    jobs: list[Job] = []
    for one in told.jobs:
        name = _in_a_file(one.name)
        job = next((job for job in left if _in_a_file(job.name) == name), None)
        if job is None and len(left) == len(told.jobs) == 1:
            job = left[0]  # a log that does not say whose it is
        if job is None:
            job = Job(name=one.name)
        else:
            left = [each for each in left if each is not job]
        job.name, job.result, job.result_from, job.url = one.name, one.result, "api", one.url
        if one.started or one.finished:
            job.started, job.finished = one.started, one.finished
        _apply_steps(job, one.steps)
        jobs.append(job)
    return Logs(in_order([*jobs, *left]), logs.ignored)


def _apply_steps(job: Job, told: list[ToldStep]) -> None:
    """Find the log of each step by its number; one that was split off a log has none, and is found by its name."""
    left = list(job.steps)
    known: list[Step] = []
    for one in told:
        by_number = (step for step in left if step.number is not None and step.number == one.number)
        by_name = (step for step in left if step.number is None and step.name == one.name)
        step = next(by_number, None) or next(by_name, None)
        if step is None:
            step = Step(name=one.name)
        else:
            left = [each for each in left if each is not step]
        step.name, step.number, step.result, step.result_from = one.name, one.number, one.result, "api"
        if one.started or one.finished:
            step.started, step.finished = one.started, one.finished
        known.append(step)
    job.steps = [*known, *left]


def _job(job: dict[str, Any]) -> ToldJob:
    steps = job.get("steps")
    return ToldJob(
        _word(job, "name") or "(no name)",
        _word(job, "conclusion") or UNKNOWN,
        _word(job, "started_at", "startedAt"),
        _word(job, "completed_at", "completedAt"),
        _word(job, "html_url", "url"),
        [_step(step) for step in steps if isinstance(step, dict)] if isinstance(steps, list) else [],
    )


def _step(step: dict[str, Any]) -> ToldStep:
    number = step.get("number")
    return ToldStep(
        _word(step, "name") or "(no name)",
        number if type(number) is int else None,
        _word(step, "conclusion") or UNKNOWN,
        _word(step, "started_at", "startedAt"),
        _word(step, "completed_at", "completedAt"),
    )


def _word(told: dict[str, Any], *names: str) -> str | None:
    """Return the first of these that says something, as text."""
    for name in names:
        value = told.get(name)
        if type(value) in (str, int) and value != "":
            return str(value)
    return None


def _in_a_file(job: str) -> str:
    """Return the name of a job as far as that of its file tells it: GitHub leaves out letters, and what is too long."""
    bare = _NOT_IN_FILES.sub("", job).encode("utf-16-le", "surrogatepass")[: 2 * _FILE_NAME_MAX]
    return " ".join(bare.decode("utf-16-le", "ignore").split())
