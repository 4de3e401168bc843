"""Import commits: add each to the runs that it belongs to, and make a run of the others where that is wanted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson

from playhead import _limits
from playhead._api.addenda import adding, begin_import, importing_alone, let_go
from playhead._api.children import roots_of
from playhead._api.stores import open_own_index
from playhead.capture import git
from playhead.capture.git_command import GitFailed, deadline_after, run
from playhead.errors import BadImport, LedgerError, UsageError
from playhead.ingest import git_log
from playhead.ingest.git_log import Commit
from playhead.store import presence
from playhead.store.files import FileStore
from playhead.store.index import Index

Progress = Callable[[int], None]

# As git says it, in English as we ask it to.
_NO_COMMITS = "bad revision 'HEAD'"
_NOT_FETCHED = "from promisor remote"


class Attached(msgspec.Struct):
    """A commit that a run has now, and why."""

    run: str
    commit: str
    link: str


class GitImported(msgspec.Struct):
    """What became of an import of commits."""

    repository: str
    revisions: str
    commits: int = 0
    older: bool = False  # there are more, and they were not looked at
    attached: list[Attached] = []
    known: int = 0  # links that were recorded before
    unlinked: int = 0  # commits that belong to no run
    new: int = 0  # of them: those that are recorded nowhere, not even in a run that was made of a range
    not_here: list[str] = []  # runs that commits name, and that this store does not have
    running: list[str] = []  # runs that are still going on: they record their commits themselves at their end
    problems: dict[str, str] = {}  # by run: why nothing could be added to it
    made: str | None = None
    shallow: list[str] = []  # commits at which the clone ends: what they changed is not known; older ones are not here
    partial: bool = False  # the clone does not have all contents: no lines and renames are known


class Commits(msgspec.Struct):
    """Commits of a repository, the newest first; and whether there are older ones."""

    repository: git.Repository
    commits: list[Commit]
    older: bool = False
    partial: bool = False  # the clone does not have all contents: lines were not counted, and renames not looked for


def read_commits(repo: Path, revisions: str, limit: int) -> Commits | None:
    """Ask git for commits with one process; None where there is no repository. Raises GitFailed."""
    cwd, deadline = repo.resolve(), deadline_after(_limits.IMPORT_GIT_S)
    found = git.history(cwd, deadline) if cwd.is_dir() else None
    if found is None:
        return None
    kept_max, partial = _limits.IMPORT_FILE_BYTES_MAX, False
    try:
        answer = run(git_log.arguments(revisions, limit + 1), cwd, deadline, keep_bytes_max=kept_max)
    except GitFailed as problem:
        if _NO_COMMITS in str(problem):
            return Commits(found, [])
        if _NOT_FETCHED not in str(problem):
            raise
        partial, asked = True, git_log.arguments(revisions, limit + 1, contents=False)
        answer = run(asked, cwd, deadline, keep_bytes_max=kept_max)
    if not answer.complete:
        raise BadImport(
            f"git printed more than {kept_max:,} bytes of {revisions}", hint="Ask for fewer commits with `--limit`."
        )
    commits, ends = git_log.read(answer.kept), _ends(cwd, deadline)
    for commit in commits:
        if commit.sha in ends:
            commit.cut_off()
    return Commits(found, commits[:limit], len(commits) > limit, partial)


def _ends(cwd: Path, deadline: float) -> set[str]:
    """Return the commits at which a shallow clone ends; git takes them for the first ones that there ever were."""
    name = run(["rev-parse", "--git-path", "shallow"], cwd, deadline).kept.removesuffix(b"\n")
    try:
        return set((cwd / os.fsdecode(name)).read_text("utf-8", "replace").split())
    except FileNotFoundError:
        return set()


def import_git(
    revisions: str,
    repo: Path,
    store: FileStore,
    *,
    limit: int = _limits.IMPORT_COMMITS_DEFAULT,
    make_run: bool = False,
    progress: Progress = lambda amount: None,
) -> GitImported:
    """Add commits to the runs that they name, and to those that were started from them."""
    try:
        read = read_commits(repo, revisions, limit)
    except GitFailed as problem:
        raise UsageError(
            f"git cannot list {revisions!r}: {problem}", hint="RANGE is what `git log` takes: main, HEAD~20..HEAD."
        ) from None
    if read is None:
        raise UsageError(f"there is no git repository at {repo}", hint="`--repo DIR` names a folder in one.")
    found = GitImported(str(read.repository.root), revisions, len(read.commits), read.older)
    found.partial = read.partial
    found.shallow = [commit.sha for commit in read.commits if commit.shallow]
    with importing_alone(store, may_make=make_run):
        _attach(store, read, found, make_run, progress)
    return found


def _attach(store: FileStore, read: Commits, found: GitImported, make_run: bool, progress: Progress) -> None:
    """Add commits to the runs that they belong to, and say so."""
    with open_own_index(store) as index:
        plan, left = _planned(index, read.commits, found)
        found.new = len(left)
    for run_id, commits in plan.items():
        if presence.is_held(store.folder(run_id)):
            found.running.append(run_id)
            continue
        try:
            with adding(store, run_id) as recording:
                for commit, link in commits:
                    recording.emit(commit.event(link))
            found.attached += [Attached(run_id, commit.sha, link) for commit, link in commits]
        except LedgerError as problem:  # of this run: it does not keep the others from theirs
            found.problems[run_id] = problem.message
        progress(1)
    if make_run and left:
        found.made = _make(store, left, read.repository, found.revisions)
        found.attached += [Attached(found.made, commit.sha, "range") for commit in left]


def _planned(
    index: Index, commits: list[Commit], found: GitImported
) -> tuple[dict[str, list[tuple[Commit, str]]], list[Commit]]:
    """Say which run gets which commits, oldest first, and which commits belong to none and are recorded nowhere."""
    shas = _listed(commit.sha for commit in commits)
    recorded: dict[str, dict[str, str]] = {}  # by commit and run: why it is there
    sql = "SELECT sha, run, coalesce(link, 'committed') FROM commits WHERE sha IN (SELECT value FROM json_each(?))"
    for sha, run_id, link in _rows(index, sql, shas):
        recorded.setdefault(sha, {})[run_id] = link
    started: dict[str, list[str]] = {}
    sql = (
        "SELECT git_commit, id FROM runs WHERE origin IS NULL AND git_commit IN (SELECT value FROM json_each(?))"
        " ORDER BY id DESC"
    )
    for sha, run_id in _rows(index, sql, shas):
        started.setdefault(sha, []).append(run_id)
    roots = roots_of(index, {run_id for commit in commits for run_id in commit.runs})
    plan: dict[str, list[tuple[Commit, str]]] = {}
    left: list[Commit] = []
    for commit in reversed(commits):
        links = dict.fromkeys(started.get(commit.sha, [])[: _limits.IMPORT_RUNS_MAX], "started_from")
        links |= {roots[run_id]: link for run_id, link in commit.runs.items() if run_id in roots}
        found.not_here += [each for each in commit.runs if each not in roots and each not in found.not_here]
        known = recorded.get(commit.sha, {})
        linked = [run_id for run_id, link in known.items() if link != "range"]  # as what it made it recorded itself
        found.known += len(linked)
        for run_id in links.keys() - known.keys():
            plan.setdefault(run_id, []).append((commit, links[run_id]))
        found.unlinked += not links and not linked
        if not links and not known:
            left.append(commit)
    return dict(sorted(plan.items())), left


def _make(store: FileStore, commits: list[Commit], repository: git.Repository, revisions: str) -> str:
    facts = {"root": str(repository.root), "remote": repository.remote}
    recording = begin_import(store, f"git {revisions}", "git", None, facts, None)
    try:
        for commit in commits:
            recording.emit(commit.event("range"), parent=recording.root_span)
        recording.output = {"commits": len(commits)}
        recording.finish("ok")
    except BaseException:
        let_go(recording)
        raise
    return recording.id


def _listed(texts: Any) -> str:
    return orjson.dumps(list(texts)).decode()


def _rows(index: Index, sql: str, values: str) -> list[tuple[str, ...]]:
    return index.query(sql, (values,))[1]
