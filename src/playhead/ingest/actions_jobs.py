"""Read what GitHub says of the jobs of a run, and put it to their logs.

Both forms are known: that of the REST API (`started_at`), and that of `gh run view --json jobs` (`startedAt`).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec
import orjson

from playhead import _limits
from playhead.errors import BadImport
from playhead.ingest.actions_log import UNKNOWN, Job, Logs, Step, in_order

_ASK_GITHUB = "`gh api repos/OWNER/REPO/actions/runs/ID/jobs` gives a list of jobs."
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
    attempt: str | None
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
            raise BadImport("it is no list of jobs", hint=_ASK_GITHUB)
        jobs += listed
    if not jobs:
        raise BadImport("there is no job in it", hint=_ASK_GITHUB)
    page, first = pages[0], jobs[0]
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
    names = _numbered([(one.attempt, one.name) for one in told.jobs])
    files = _numbered([(one.attempt, _bare(_cut(one.name))) for one in told.jobs])
    for one, name, file in zip(told.jobs, names, files, strict=True):
        job = next((job for job in left if _bare(job.name) in (file, _bare(name))), None)
        if job is None and len(left) == len(told.jobs) == 1 and not left[0].named:
            job = left[0]
        if job is None:
            job = Job(name=name)
        else:
            left = [each for each in left if each is not job]
        job.name, job.result, job.result_from, job.url = name, one.result, "api", one.url
        if one.started or one.finished:
            job.started, job.finished = one.started, one.finished
        _apply_steps(job, one.steps)
        jobs.append(job)
    return Logs(in_order([*jobs, *left]), logs.ignored)


def _numbered(names: list[tuple[str | None, str]]) -> list[str]:
    """Tell jobs of one name apart, as GitHub does with their files: `build`, `build (1)`; those of each attempt."""
    given: list[str] = []
    taken, seen = set(names), Counter[tuple[str | None, str]]()
    for attempt, name in names:
        told = name
        while seen[attempt, name] and (attempt, told) in taken:
            told = f"{name} ({seen[attempt, name]})"
            seen[attempt, name] += 1
        seen[attempt, name] += not seen[attempt, name]
        taken.add((attempt, told))
        given.append(told)
    return given


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
        _word(job, "run_attempt"),
        _conclusion(job),
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
        _conclusion(step),
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


def _conclusion(told: dict[str, Any]) -> str:
    """Return how a job or a step ended; what has not ended says nothing, or an empty word."""
    word = told.get("conclusion")
    if word is not None and type(word) is not str:
        raise BadImport(f"the conclusion of {_word(told, 'name') or '(no name)'!r} is no word")
    return word or UNKNOWN


def _cut(job: str) -> str:
    """Return as much of the name of a job as that of its file has."""
    kept = _NOT_IN_FILES.sub("", job).encode("utf-16-le", "surrogatepass")[: 2 * _FILE_NAME_MAX]
    return kept.decode("utf-16-le", "ignore")


def _bare(job: str) -> str:
    """Return the name of a job without the letters that GitHub leaves out of that of its file."""
    return " ".join(_NOT_IN_FILES.sub("", job).split())
