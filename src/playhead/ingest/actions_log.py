"""Read the logs of a GitHub Actions run: the zip of all jobs, the text of one, or what `gh run view --log` prints.

A log does not say how its job ended. What can be read off it is a failure; where nothing in it tells of one, the result
is `unknown`, and never success. What the jobs API says (actions_jobs.py) counts before it.
"""

from __future__ import annotations

import io
import re
import stat
import zipfile
import zlib
from collections import Counter

import msgspec

from playhead import _limits
from playhead._clock import moment_us
from playhead.errors import BadImport
from playhead.event.kinds import CiReported

UNKNOWN = "unknown"

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the latter where nothing is in it
_JOB_FILE = re.compile(r"(-?\d{1,10})_(.+)\.txt")  # `0_build.txt`; a negative number is that of an older service
_STEP_FILE = re.compile(r"(.+)/(\d{1,10})_(.+)\.txt")
_SYSTEM_FILE = re.compile(r"(.+)/system\.txt")
_TIMED = re.compile(r"\ufeff?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) ?(.*)")
_BY_GH = re.compile(r"([^\t]+)\t([^\t]+)\t\ufeff?(\d{4}-\d\d-\d\dT[\d:.]+Z ?.*)")
_RUN = "Run "  # how the first group of a step is called that runs something
_MARKS = re.compile(r"##\[(error|group)\](.*)")
_EXITED = re.compile(r"Process completed with exit code (-?\d+)")
_CANCELED = re.compile(r"The (?:operation|job) was cancell?ed")
_LOOKED_AT = 1000  # lines, to tell whether it is a log
_NO_STEP = "UNKNOWN STEP"  # as gh calls what belongs to none


class Part(msgspec.Struct, kw_only=True):
    """A job or a step, and its log. A name that was read off the log or a file may not be the one it was given."""

    name: str
    log: str = ""
    result: str = UNKNOWN
    result_from: str = "log"
    started: str | None = None
    finished: str | None = None
    errors: list[str] = []
    groups: list[str] = []


class Step(Part, kw_only=True):
    """One step of a job."""

    number: int | None = None


class Job(Part, kw_only=True):
    """One job with its steps; its log is what is in none of theirs."""

    steps: list[Step] = []
    url: str | None = None
    named: bool = True  # by what was read; the log of a single job does not say whose it is


class Logs(msgspec.Struct):
    """All jobs, in the order in which they began; and files of a zip that are no logs."""

    jobs: list[Job]
    ignored: list[str] = []


def read(data: bytes, name: str) -> Logs:
    """Read a file; `name` is what its job is called where the file does not say."""
    if len(data) > _limits.IMPORT_FILE_BYTES_MAX:
        raise BadImport(f"it has more than {_limits.IMPORT_FILE_BYTES_MAX:,} bytes")
    if data.startswith(_ZIP):
        return _logs(*_sorted_members(_members(data)))
    _count_lines(data, 0)
    text = _text(data)
    lines = text.split("\n", _LOOKED_AT)[:_LOOKED_AT]
    if _BY_GH.match(lines[0]):
        return _logs(*_by_gh(text), [])
    if not any(_TIMED.match(line) for line in lines):
        raise BadImport("it is no log of GitHub Actions: no line begins with a time")
    found = _logs({name: _by_groups(text)}, {name: text}, [])
    found.jobs[0].named = False
    return found


def events(logs: Logs, ci: dict[str, str]) -> list[CiReported]:
    """Return what logs say as events: one for each job, followed by one for each of its steps."""
    found: list[CiReported] = []
    for job in logs.jobs:
        here = len(found)
        by_result: dict[str, int] = {}
        for step in job.steps:
            by_result[step.result] = by_result.get(step.result, 0) + 1
        failed = [step for step in job.steps if step.result == "failure"]
        errors = [": ".join(filter(None, (step.name, *step.errors[-1:]))) for step in failed] or job.errors
        told = CiReported(job=job.name, counts=dict(sorted(by_result.items())), groups=job.groups)
        found.append(_told(told, job, errors))
        for step in job.steps:
            told = CiReported(job=job.name, step=step.name, number=step.number, groups=step.groups)
            found.append(_told(told, step, step.errors))
        for event in found[here:]:
            event.ci = {**ci, "url": job.url} if job.url else ci
    return found


def _told(event: CiReported, of: Part, errors: list[str]) -> CiReported:
    event.source, event.result, event.result_from = "actions-log", of.result, of.result_from
    event.started, event.finished, event.log = of.started, of.finished, of.log or None
    event.errors = errors[: _limits.ACTIONS_MARKS_MAX]
    began, ended = moment_us(of.started), moment_us(of.finished)
    if began is not None and ended is not None and ended >= began:
        event.duration_us = ended - began
    return event


def judge(text: str) -> tuple[str, list[str], list[str]]:
    """Say what a log tells of its result, and which errors and groups are marked in it."""
    result = UNKNOWN
    found: dict[str, list[str]] = {"error": [], "group": []}
    for line in text.split("\n"):
        timed = _TIMED.match(line)
        mark = _MARKS.match(timed[2] if timed else line)
        if mark is None:
            continue
        kind, told = mark[1], _label(mark[2])
        if kind == "error":
            exited = _EXITED.search(told)
            if _CANCELED.search(told):
                result = "cancelled" if result == UNKNOWN else result
            elif exited is None or exited[1] != "0":
                result = "failure"
        if len(found[kind]) < _limits.ACTIONS_MARKS_MAX:
            found[kind].append(told)
    return result, found["error"], found["group"]


def _logs(steps: dict[str, list[Step]], whole: dict[str, str], ignored: list[str]) -> Logs:
    """Put jobs together from the logs of their steps and their own, in order of time."""
    jobs = [_job(name, steps.get(name, []), whole.get(name, "")) for name in {**steps, **whole}]
    if not jobs:
        raise BadImport("it is a zip, but there is no log of GitHub Actions in it")
    return Logs(in_order(jobs), ignored)


def in_order(jobs: list[Job]) -> list[Job]:
    """Sort jobs by when they began; those of which nobody knows stand at the end."""
    began = {id(job): moment_us(job.started) for job in jobs}
    return sorted(jobs, key=lambda job: (began[id(job)] is None, began[id(job)] or 0))


def _job(name: str, steps: list[Step], text: str) -> Job:
    job = Job(name=name, steps=steps, log=_beside(text, steps))
    for part in (*steps, job):
        part.result, part.errors, part.groups = judge(part.log)
        part.started, part.finished = _span(part.log)
    parts = (*steps, job)
    job.result = next((bad for bad in ("failure", "cancelled") if any(part.result == bad for part in parts)), UNKNOWN)
    job.started = min((part.started for part in parts if part.started), default=None)
    job.finished = max((part.finished for part in parts if part.finished), default=None)
    return job


def _beside(text: str, steps: list[Step]) -> str:
    """Return the lines of a job that are in none of its steps, so that none is kept twice and none is lost."""
    left = Counter(line for step in steps for line in step.log.split("\n"))
    kept: list[str] = []
    for line in text.split("\n"):
        if left[line] > 0:
            left[line] -= 1
        elif line.strip():
            kept.append(line)
    return "\n".join(kept)


def _span(text: str) -> tuple[str | None, str | None]:
    """Return the first and the last time of a log."""
    times = [found[1] for line in text.split("\n") if (found := _TIMED.match(line))]
    return (times[0], times[-1]) if times else (None, None)


def _by_gh(text: str) -> tuple[dict[str, list[Step]], dict[str, str]]:
    """Split what `gh run view --log` prints: job, step and line, with tabs between; what is in no step is the job's."""
    found: dict[str, dict[str, list[str]]] = {}
    where: list[str] = []
    for line in text.split("\n"):
        split = _BY_GH.match(line)
        if split is not None:
            where = found.setdefault(_label(split[1]), {}).setdefault(_label(split[2]), [])
        where.append(line if split is None else split[3])
    whole = {job: "\n".join(steps.pop(_NO_STEP, [])) for job, steps in found.items()}
    return {
        job: [Step(name=name, log="\n".join(lines)) for name, lines in steps.items()] for job, steps in found.items()
    }, whole


def _by_groups(text: str) -> list[Step]:
    """Split the log of a job where something is run: its steps have no other mark. What comes before is in none."""
    steps: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        timed = _TIMED.match(line)
        mark = _MARKS.match(timed[2]) if timed else None
        if mark and mark[1] == "group" and mark[2].startswith(_RUN):
            steps.append((_label(mark[2]), []))
        if steps:
            steps[-1][1].append(line)
    return [Step(name=name, log="\n".join(lines)) for name, lines in steps]


def _sorted_members(members: dict[str, str]) -> tuple[dict[str, list[Step]], dict[str, str], list[str]]:
    """Tell the logs of jobs, those of their steps, and other files apart."""
    steps: dict[str, list[Step]] = {}
    whole: dict[str, tuple[int, str]] = {}
    ignored: list[str] = []
    for name, text in members.items():
        if found := _STEP_FILE.fullmatch(name):
            steps.setdefault(found[1], []).append(Step(name=found[3], number=int(found[2]), log=text))
        elif found := _SYSTEM_FILE.fullmatch(name):
            steps.setdefault(found[1], []).append(Step(name="system", log=text))
        elif "/" not in name and (found := _JOB_FILE.fullmatch(name)):
            number = int(found[1])
            before = whole.get(found[2])
            if before is None or before[0] < 0 <= number:  # of two, that of the older service is passed over
                whole[found[2]] = number, text
        else:
            ignored.append(name)
    for name, (_, text) in whole.items():
        if all(step.number is None for step in steps.get(name, [])):  # a zip with one file for each job
            steps.setdefault(name, []).extend(_by_groups(text))
    for each in steps.values():
        each.sort(key=lambda step: (step.number is None, step.number or 0))
    return steps, {name: text for name, (_, text) in whole.items()}, ignored


def _members(data: bytes) -> dict[str, str]:
    """Unpack a zip in memory; no name in it is ever used as a path, and none that tries to be one is taken."""
    found: dict[str, str] = {}
    left, lines = _limits.ACTIONS_BYTES_MAX, 0
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
            if not infos:
                raise BadImport("it is a zip, and it is empty")
            if len(infos) > _limits.ACTIONS_MEMBERS_MAX:
                raise BadImport(f"it has more than {_limits.ACTIONS_MEMBERS_MAX:,} files")
            for info in infos:
                _check_member(info, found)
                with archive.open(info) as member:
                    content = member.read(left + 1)  # whatever the zip says that it has
                left -= len(content)
                if left < 0:
                    raise BadImport(f"it becomes more than {_limits.ACTIONS_BYTES_MAX:,} bytes when it is unpacked")
                lines = _count_lines(content, lines)
                found[info.filename] = _text(content)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as problem:
        raise BadImport(f"it is a zip that cannot be unpacked: {problem}") from None
    return found


def _count_lines(data: bytes, before: int) -> int:
    """Count lines: each takes memory many times its size where it is short, and a small zip can hold very many."""
    lines = before + data.count(b"\n")
    if lines > _limits.ACTIONS_LINES_MAX:
        raise BadImport(f"it has more than {_limits.ACTIONS_LINES_MAX:,} lines")
    return lines


def _check_member(info: zipfile.ZipInfo, found: dict[str, str]) -> None:
    name = info.filename
    if name.startswith("/") or "\\" in info.orig_filename or "\0" in info.orig_filename or ".." in name.split("/"):
        raise BadImport(f"a file in it has a name that leads elsewhere: {name[:100]!r}")
    if name in found:
        raise BadImport(f"it has two files {name[:100]!r}")
    if info.flag_bits & 0x1:
        raise BadImport(f"{name[:100]!r} in it is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadImport(f"{name[:100]!r} in it is compressed in a way that logs are not")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise BadImport(f"{name[:100]!r} in it is no plain file")


def _text(data: bytes) -> str:
    """Decode a log without loss; the mark at its beginning says nothing."""
    return data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def _label(text: str) -> str:
    """Return a part of a log as a text to show: what is no text in it is in the log without loss."""
    return text.strip().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
