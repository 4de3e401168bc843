"""Answer `playhead log`: what the index knows of runs, commits and CI, and what git knows of commits, as one stream."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import orjson

from playhead import _limits
from playhead._api.addenda import IMPORTED
from playhead._api.children import roots_of
from playhead._api.importing_git import read_commits
from playhead._api.stores import open_index
from playhead._clock import moment_us
from playhead.capture import git
from playhead.capture.git_command import GitFailed, deadline_after, run
from playhead.errors import UsageError
from playhead.event.plain import text_mark
from playhead.ingest.git_log import Commit
from playhead.store.files import FileStore
from playhead.store.index_questions import Questions
from playhead.store.index_values import text
from playhead.store.remote.reading import RemoteStore
from playhead.views import log

_PARTS = "'child', 'exact', 'reingest', 'step'"  # what is no work of its own: parts of other runs, and replays
_MODE = "coalesce(json_extract(origin, '$.mode'), '')"
_OF_REPOSITORY = (
    "(git_root = :root OR git_remote = :remote OR git_commit IN (SELECT value FROM json_each(:shas))"
    " OR (:inside AND git_root IS NULL AND git_commit IS NULL))"
)
# One that was started elsewhere may have made commits here, and of other repositories, which are not in this stream.
_MADE_HERE = (
    "id IN (SELECT run FROM commits WHERE sha IN (SELECT value FROM json_each(:shas))"
    " UNION SELECT value FROM json_each(:named))"
)
_SHAS = "SELECT git_commit FROM runs UNION SELECT sha FROM commits UNION SELECT sha FROM ci_results"
_RUNS = (
    "SELECT id, name, status, started_us, duration_us, error, git_commit, git_branch FROM runs"
    f" WHERE {_MODE} NOT IN ('{IMPORTED}', {_PARTS}) AND started_us >= :since AND ({{of}} OR {_MADE_HERE})"
    " ORDER BY started_us DESC, id DESC LIMIT :limit"
)
_FROM_RUNS = f"run IN (SELECT id FROM runs WHERE {_MODE} NOT IN ({_PARTS}) AND {{of}})"
_COMMITS = (
    "SELECT sha, run, link, subject, author, authored, committed, time_us, files, added, removed, parents FROM commits"
    f" WHERE sha IN (SELECT value FROM json_each(:shas)) OR (time_us >= :since AND {_FROM_RUNS})"
    " ORDER BY time_us DESC, run DESC, seq DESC LIMIT :several"  # a run has the oldest first, of one second too
)
# A step or a test stands in the stream only where nothing tells of the job that it belongs to.
_RESULTS = (
    "SELECT c.*, e.time AS recorded FROM ci_results c JOIN events e ON e.run = c.run AND e.seq = c.seq"
    " WHERE time_us >= :since AND ((step IS NULL AND test IS NULL) OR NOT EXISTS (SELECT 1 FROM ci_results p"
    " WHERE p.run = c.run AND p.job IS c.job AND p.source IS c.source AND p.step IS NULL AND p.test IS NULL))"
    f" AND (c.sha IN (SELECT value FROM json_each(:shas)) OR c.{_FROM_RUNS}"
    f" OR (c.sha IS NULL AND c.run IN (SELECT id FROM runs WHERE {_MODE} NOT IN ({_PARTS}) AND {_MADE_HERE})))"
    " ORDER BY time_us DESC, c.run DESC, c.seq LIMIT :several"
)


class Stream(msgspec.Struct):
    """Runs, commits and results of CI, the newest first."""

    repository: str | None  # None outside of any: then all of the store is in it
    entries: list[dict[str, Any]]
    problem: str | None = None  # why git did not answer


def stream(
    store: FileStore | RemoteStore,
    repo: Path | None = None,
    *,
    since_us: int = 0,
    limit: int = _limits.LOG_ENTRIES_DEFAULT,
) -> Stream:
    """Return the stream of one repository, that of the current folder unless another is named."""
    there, problem, found, shas = (repo or Path.cwd()).resolve(), None, None, set[str]()
    try:
        found = read_commits(there, "HEAD", limit)
        if found is not None and found.commits:
            shas = _reachable(there)  # a run belongs here by the oldest of them too, whatever the limit
    except GitFailed as failure:
        problem = str(failure)
    root = found.repository.root if found else git.find_root(there)
    if root is None and repo is not None:
        raise UsageError(f"there is no git repository at {repo}", hint="`--repo DIR` names a folder in one.")
    commits = [] if found is None else found.commits
    values = {
        "root": None if root is None else _recorded(str(root)),
        "remote": _recorded(found.repository.remote) if found and found.repository.remote else None,
        "inside": root is not None and isinstance(store, FileStore) and store.root.resolve().is_relative_to(root),
        "since": since_us,
        "limit": limit,
        "several": limit * _limits.IMPORT_RUNS_MAX,  # each may be in as many runs
    }
    of = "1" if root is None else _OF_REPOSITORY
    with open_index(store) as index:
        roots = roots_of(index, {run for commit in commits for run in commit.runs})
        values["named"] = _listed(roots.values())
        values["shas"] = _listed(sha for (sha,) in index.query(_SHAS)[1] if sha in shas)
        runs, recorded, results = (_rows(index, sql.format(of=of), values) for sql in (_RUNS, _COMMITS, _RESULTS))
        roots |= roots_of(index, {row["run"] for row in recorded})
    for result in results:
        result["counts"] = _read(result["counts"], dict)
    together = _commits(commits, recorded, roots, since_us)
    return Stream(None if root is None else str(root), log.stream(runs, together, results, limit), problem)


def _reachable(cwd: Path) -> set[str]:
    """Ask git for the commits of a repository, of all branches: the newest, where they are very many."""
    asked = ["rev-list", f"--max-count={_limits.IMPORT_COMMITS_MAX}", "--all", "HEAD", "--"]
    answer = run(asked, cwd, deadline_after(_limits.IMPORT_GIT_S), keep_bytes_max=_limits.IMPORT_FILE_BYTES_MAX)
    return set(answer.kept.decode("ascii", "replace").split())


def _listed(texts: Iterable[str]) -> str:
    return orjson.dumps(list(texts)).decode()


def _recorded(path: str) -> str | None:
    """Return a text as the index has it: a folder may have a name that is no text."""
    return text(text_mark(path))


def _rows(index: Questions, sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    columns, rows = index.query(sql, values)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _read(told: str | None, form: type) -> Any:
    """Read what an event says, where it has the form that it should have."""
    try:
        value = orjson.loads(told or "null")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, form) else None


def _commits(
    from_git: list[Commit], recorded: list[dict[str, Any]], roots: dict[str, str], since_us: int
) -> list[dict[str, Any]]:
    """Put together what git and what the runs know of commits: git first, where it has the commit.

    What a Python of a run made, which has a run of its own, belongs to the one at the root.
    """
    found: dict[str, dict[str, Any]] = {}
    for commit in from_git:
        added, removed = commit.lines()
        found[commit.sha] = {
            "sha": commit.sha,
            "subject": commit.subject,
            "author": commit.author,
            "authored": commit.authored,
            "committed": commit.committed,
            "time_us": moment_us(commit.committed or commit.authored),
            "files": None if commit.shallow else len(commit.changes),
            "added": added,
            "removed": removed,
            "parents": commit.parents,
            "runs": {roots.get(run, run): link for run, link in commit.runs.items()},
        }
    for row in recorded:
        known = found.setdefault(row["sha"], {**row, "parents": _read(row["parents"], list) or [], "runs": {}})
        # Of the runs that have it, not each knows how many lines it changed.
        known |= {name: row[name] for name in ("files", "added", "removed") if known[name] is None}
        if row["link"] != "range":
            known["runs"].setdefault(roots[row["run"]], row["link"])
    return [commit for commit in found.values() if (commit["time_us"] or 0) >= since_us]
