"""Import what CI reported: find the runs that it belongs to and add it to them, or make a run for it.

Whatever is imported enters a run here, through the same recording as everything else: redacted, sealed, chained. What a
run has already is not added again.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from playhead import _limits
from playhead._api.addenda import adding, begin_import, importing_alone, let_go
from playhead._api.children import roots_of
from playhead._api.concluding import finish
from playhead._api.reading import load
from playhead._api.stores import open_own_index
from playhead._ids import is_run_id
from playhead.capture import ci, git
from playhead.capture.gate import Gate
from playhead.capture.git_command import GitFailed, deadline_after, run
from playhead.capture.opening import default_settings, shared_redactor
from playhead.capture.recording import Recording
from playhead.errors import BadImport, LedgerError, MissingContent, UsageError
from playhead.event import kinds
from playhead.event.envelope import kind_of, parse
from playhead.event.kinds import CiReported
from playhead.ingest import actions_jobs, actions_log, git_log, junit
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.store.index_reports import MADE
from playhead.store.layout import cleaned
from playhead.store.reader import RunReader

_FULL_ID = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NOT_COMPARED = ("link", "dirty")  # where a result was attached says nothing about what it is
_KIND = b'"kind":"ci.reported"'
_SAME_SYSTEM = "(? IS NULL OR ci_provider IS NULL OR ci_provider = ?)"


class About(msgspec.Struct):
    """What is known of where results come from: what they are attached by."""

    run: str | None = None  # the one that was named
    commit: str | None = None
    makers: dict[str, str] = {}  # runs that the commit names itself, each with how: `trailer` or `note`
    dirty: bool = False
    ci: dict[str, str] = {}
    git: dict[str, Any] = {}


class Placed(msgspec.Struct):
    """One run that something belongs to: why, and how much of it was new there; or why nothing could be added."""

    run: str
    link: str | None
    made: bool = False
    added: int = 0
    known: int = 0
    problem: str | None = None


class Imported(msgspec.Struct):
    """What became of an import; `left_out` counts runs that it belongs to as well, and which are older."""

    runs: list[Placed]
    left_out: int = 0


def about(
    *,
    run: str | None,
    commit: str | None,
    ci_run: str | None,
    repo: Path | None,
    store: FileStore,
    told: actions_jobs.Told | None = None,
    environ: Mapping[str, str] | None = None,
) -> About:
    """Find out what results are about: from what was said, else from `told`, else from `environ` and the repository.

    Without `environ` nothing is guessed: whoever imports the log of a job seldom is that job.
    """
    for name, given in (("--run", run), ("--commit", commit), ("--ci-run", ci_run)):
        if given is not None and not given.strip():
            raise UsageError(f"{name} names nothing", hint="Is a variable empty? Leave it out, or say what it is.")
    facts = {} if told is None else dict(told.ci)
    sha = None if told is None else told.commit
    if environ is not None:
        facts = {name: value for name, value in (ci.facts(environ) or {}).items() if value is not None}
        sha = ci.commit_of_pull_request(environ) or facts.get("commit")
    if ci_run is not None and facts.get("run_id") != ci_run:
        facts, sha = {"run_id": ci_run}, None  # another one than we know of
    found = About(None if run is None else _named(run, store), sha, ci=facts)
    try:
        _look_into(found, repo, commit, guess=environ is not None and ci_run is None)
    except GitFailed as problem:
        raise BadImport(str(problem), hint="Name the commit in full, or the run with `--run`.") from None
    return found


def _named(run: str, store: FileStore) -> str:
    found = load(run, store.root)
    if getattr(found.store, "root", None) != store.root:
        raise UsageError(f"{run} is not in {store.root}: nothing is added to it", hint="`--store DIR` names its store.")
    return found.id


def _look_into(found: About, repo: Path | None, commit: str | None, *, guess: bool) -> None:
    """Add what the repository says: where it is, the commit in full, and the runs that the commit names."""
    cwd, deadline = (repo or Path.cwd()).resolve(), deadline_after(_limits.IMPORT_GIT_S)
    there = git.history(cwd, deadline) if cwd.is_dir() else None
    if there is None:
        if repo is not None:
            raise UsageError(f"there is no git repository at {repo}", hint="`--repo DIR` names a folder in one.")
        if commit is not None and not _FULL_ID.fullmatch(commit):
            raise UsageError(f"not a commit: {commit!r}", hint="Outside of a repository, give all 40 digits of its id.")
        found.commit = commit or found.commit
        return
    if commit is None and found.commit is None and guess and not there.bare:
        state = git.status(cwd, [], deadline)
        found.commit, found.dirty = state.commit, state.changed is not None
    named = commit or found.commit
    if named is None or _look_up(found, named, cwd, deadline) or repo is not None:
        found.git = {"root": str(there.root), "remote": there.remote}


def _look_up(found: About, commit: str, cwd: Path, deadline: float) -> bool:
    """Take the commit in full, and say whether this repository has it."""
    if ".." in commit:
        raise UsageError(f"not a commit, but a range of them: {commit!r}", hint="Name the one that was tested.")
    try:
        (one,) = git_log.read(run(git_log.arguments(commit, 1, contents=False), cwd, deadline).kept)
    except (GitFailed, ValueError) as problem:  # git does not know it, or it means none at all
        if not _FULL_ID.fullmatch(commit):
            why = f" ({problem})" if isinstance(problem, GitFailed) else ""
            raise UsageError(f"not a commit of this repository: {commit!r}{why}") from None
        found.commit = commit  # of one that was not fetched, or of another repository
        return False
    found.commit, found.makers = one.sha, one.runs
    return True


def import_junit(
    files: list[tuple[str, bytes]], found: About, store: FileStore, *, job: str | None = None, attach_only: bool = False
) -> tuple[Imported, list[junit.Report]]:
    """Import JUnit files: results of all tests, with the files themselves as artifacts."""
    reports: list[CiReported] = []
    read: list[junit.Report] = []
    for name, data in files:
        try:
            read.append(junit.read(data))
        except BadImport as problem:
            raise _not_imported(name, problem) from None
        reports += junit.events(read[-1], job or found.ci.get("job"))
    tests = [test for report in read for test in report.tests]
    with importing_alone(store, may_make=not attach_only):
        imported = attach(store, found, reports, "junit", files=files, attach_only=attach_only)
        imported.runs += _attach_by_property(store, found, tests, job or found.ci.get("job"), imported)
    return imported, read


def _attach_by_property(
    store: FileStore, found: About, tests: list[junit.Case], job: str | None, imported: Imported
) -> list[Placed]:
    """Add the result of a test to the run that the test itself names, unless all of the file went there."""
    elsewhere = {placed.run for placed in imported.runs}
    by_run: dict[str, list[CiReported]] = {}
    for test in tests:
        named = test.properties.get(junit.RUN_PROPERTY, "")
        if is_run_id(named) and named not in elsewhere and store.folder(named).is_dir():
            by_run.setdefault(named, []).append(junit.event_of(test, job))
    return [_add(store, named, "property", _forms(_filled(reports, found)), []) for named, reports in by_run.items()]


def import_actions_log(
    name: str,
    data: bytes,
    found: About,
    store: FileStore,
    *,
    told: actions_jobs.Told | None = None,
    job: str | None = None,
    attach_only: bool = False,
) -> tuple[Imported, actions_log.Logs]:
    """Import the logs of a run of GitHub Actions, by job and step; `told` is what GitHub says of its jobs."""
    try:
        logs = actions_log.read(data, job or Path(name).stem)
    except BadImport as problem:
        raise _not_imported(name, problem) from None
    if told is not None:
        logs = actions_jobs.apply(logs, told)
    reports = actions_log.events(logs, {"provider": "github-actions", **found.ci})
    with importing_alone(store, may_make=not attach_only):
        return attach(store, found, reports, "actions-log", attach_only=attach_only), logs


def attach(
    store: FileStore,
    found: About,
    reports: list[CiReported],
    source: str,
    *,
    files: list[tuple[str, bytes]] | None = None,
    attach_only: bool = False,
) -> Imported:
    """Add results to every run that they belong to; where there is none make one, unless that is not wanted."""
    forms, files = _forms(_filled(reports, found)), files or []
    external = _external_id(found, forms)
    with open_own_index(store) as index:
        runs, count = _runs_of(index, found)
        if not runs:
            runs = dict.fromkeys(_made_before(index, external, found, store))
            count = len(runs)
    placed = [_add(store, each, link, forms, files) for each, link in runs.items()]
    if not runs and not attach_only:
        placed = [_make(store, found, reports, files, source, external)]
    return Imported(placed, count - len(runs))


def _filled(reports: list[CiReported], found: About) -> list[CiReported]:
    """Say in each result what it is about."""
    for report in reports:
        report.commit, report.dirty = found.commit, found.dirty
        report.ci = report.ci or found.ci or None
    return reports


def _forms(reports: list[CiReported]) -> dict[bytes, CiReported]:
    """Return results by the form in which they are compared with what a run has: as it will be read back, redacted."""
    gate = Gate(shared_redactor(default_settings()))
    return {_compared(gate.settle(kinds.as_fields(report))[0]): report for report in reports}


def _external_id(found: About, forms: dict[bytes, CiReported]) -> str:
    """Return the id by which a run that an import made is found again by the next one."""
    if found.ci.get("run_id"):
        return f"ci:{found.ci['run_id']}"
    return f"commit:{found.commit}" if found.commit else f"import:{hashlib.sha256(b''.join(forms)).hexdigest()}"


def _runs_of(index: Index, found: About) -> tuple[dict[str, str | None], int]:
    """Return the runs that results belong to, each with why, and how many in all: the strongest reason counts."""
    if found.run is not None:
        return {found.run: "named"}, 1
    run_id, provider, sha = found.ci.get("run_id"), found.ci.get("provider"), found.commit
    makers: dict[str, str] = {}
    questions: list[tuple[str, str, tuple[Any, ...]]] = []
    if run_id is not None:
        questions.append(("ci_run", f"ci_run_id = ? AND {_SAME_SYSTEM}", (run_id, provider, provider)))
    if sha is not None:
        recorded = index.query("SELECT run, link FROM commits WHERE sha = ? ORDER BY link IS NULL", (sha,))[1]
        made = [*found.makers.items(), *((str(run), link or "committed") for run, link in recorded if link in MADE)]
        roots = roots_of(index, [run for run, _ in made])
        makers = {roots[run]: how for run, how in made if run in roots}
        named = orjson.dumps(list(makers)).decode()
        questions.append(("committed", "id IN (SELECT value FROM json_each(?))", (named,)))
        questions.append(("started_from", "git_commit = ?", (sha,)))
    for link, condition, values in questions:
        sql = f"SELECT id FROM runs WHERE origin IS NULL AND {condition} ORDER BY id DESC"
        ids = [str(row[0]) for row in index.query(sql, values)[1]]
        if ids:
            why = makers if link == "committed" else {}
            return {each: why.get(each, link) for each in ids[: _limits.IMPORT_RUNS_MAX]}, len(ids)
    return {}, 0


def _made_before(index: Index, external: str, found: About, store: FileStore) -> list[str]:
    """Return the run that an import made of the same: another system may give out the same id."""
    sql = f"SELECT id FROM runs WHERE external_id = ? AND {_SAME_SYSTEM} ORDER BY id DESC"
    provider = found.ci.get("provider")
    rows = index.query(sql, (external, provider, provider))[1]
    return [str(row[0]) for row in rows if store.folder(str(row[0])).is_dir()][:1]


def _add(
    store: FileStore, run_id: str, link: str | None, forms: dict[bytes, CiReported], files: list[tuple[str, bytes]]
) -> Placed:
    """Add to a run what it does not have yet."""
    placed = Placed(run_id, link)
    try:
        reader = RunReader(store, run_id)
        known = _known(reader)
        news = [report for form, report in forms.items() if form not in known]
        made = link is None
        # What an import made and did not finish, since it was killed, is finished by the next one.
        finished = made and _has_ended(reader)
        if news or (made and not finished):
            with adding(store, run_id) as recording:
                if finished:
                    recording.emit(kinds.RunReopened(why="more was imported"))
                _record(recording, news, files, link)
                if made:
                    finish(recording, [*known.values(), *map(kinds.as_fields, news)])
    except (LedgerError, MissingContent) as problem:  # of this run: it does not keep the others from theirs
        placed.problem = problem.message
        return placed
    placed.added, placed.known = len(news), len(forms) - len(news)
    return placed


def _has_ended(reader: RunReader) -> bool:
    """Say whether a run has an end that still holds: where it was reopened, that of before does not."""
    ends = [kind for kind in map(kind_of, reader.lines()) if kind in ("run.finished", "run.reopened")]
    return ends[-1:] == ["run.finished"]


def _known(reader: RunReader) -> dict[bytes, dict[str, Any]]:
    """Return the results that a run has, by a form in which they can be compared."""
    events = [parse(line) for line in reader.lines() if _KIND in line]
    found = [reader.resolve(event).data for event in events if event.kind == "ci.reported"]
    return {_compared(fields): fields for fields in found}


def _compared(fields: dict[str, Any]) -> bytes:
    told = {name: value for name, value in fields.items() if name not in _NOT_COMPARED}
    return orjson.dumps(told, default=repr, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def _record(
    recording: Recording,
    reports: list[CiReported],
    files: list[tuple[str, bytes]],
    link: str | None,
    parent: str | None = None,
) -> None:
    for name, data in files:
        kept = cleaned(Path(name).name)
        recording.artifact(kept, data, role="test_results", media="application/xml", parent=parent)
    for report in reports:
        recording.emit(msgspec.structs.replace(report, link=link), parent=parent)


def _make(
    store: FileStore,
    found: About,
    reports: list[CiReported],
    files: list[tuple[str, bytes]],
    source: str,
    external: str,
) -> Placed:
    """Make a run of results that belong to none."""
    facts = {**found.git, "commit": found.commit} if found.git or found.commit else None
    recording = begin_import(store, "ci", source, external, facts, found.ci or None)
    try:
        _record(recording, reports, files, None, recording.root_span)
        finish(recording, [kinds.as_fields(report) for report in reports])
    except BaseException:
        let_go(recording)
        raise
    return Placed(recording.id, None, True, len(reports))


def read_file(path: str) -> bytes:
    """Read what is to be imported, `-` for stdin; UsageError where it is not there, BadImport where it is too large."""
    try:
        with open(sys.stdin.fileno() if path == "-" else path, "rb", closefd=path != "-") as file:
            data = file.read(_limits.IMPORT_FILE_BYTES_MAX + 1)
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    if len(data) > _limits.IMPORT_FILE_BYTES_MAX:
        raise BadImport(f"{path} has more than {_limits.IMPORT_FILE_BYTES_MAX:,} bytes")
    return data


def read_jobs(path: str) -> actions_jobs.Told:
    """Read what GitHub says of jobs, from a file."""
    try:
        return actions_jobs.read(read_file(path))
    except BadImport as problem:
        raise _not_imported(path, problem) from None


def _not_imported(path: str, problem: BadImport) -> BadImport:
    return BadImport(f"{path} is not imported: {problem.message}", hint=problem.hint)
