"""Find out what git knows about a directory: the commit, what differs from it, and the commits made since.

Nothing here records, and nothing here changes the repository. The directory alone decides which repository is meant.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from playhead import _limits
from playhead.capture.git_command import GitFailed, deadline_after, run

# The tree without entries is built into git; which of the two depends on the hash of the repository.
EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
# A patch must read the same, and apply, whatever the user's own settings say.
PATCH_FLAGS = [
    "--patch", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative",
    "--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0", "--diff-algorithm=default",
    "--find-renames", "--submodule=short", "--ignore-submodules=untracked", "-O/dev/null",
]  # fmt: skip
_LOG_FIELDS = ("%H", "%P", "%an", "%aI", "%ct", "%B")
_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<userinfo>[^/?#\s]*)@")
_QUERY = re.compile(r"[?#].*", re.DOTALL)


@dataclass(frozen=True)
class GitState:
    """What a working tree looks like at one moment.

    `dirty` says that tracked files differ from the commit; untracked files are listed apart, a folder that holds
    nothing else by its name and a slash. `diff` holds staged and unstaged changes of tracked files and is None when
    clean, or when it was larger than the limit: then `diff_omitted` is its size in bytes.
    """

    commit: str | None  # None: no commit yet
    branch: str | None  # None: detached
    dirty: bool
    root: Path
    remote: str | None = None  # url of origin, without credentials
    untracked: list[str] = field(default_factory=list)
    diff: bytes | None = None
    diff_omitted: int | None = None
    inside: bytes | None = field(default=b"", compare=False)  # names in such folders; None where they are too many
    taken_ns: int = field(default=0, compare=False)  # when, on the clock by which the file system dates files

    def facts(self) -> dict[str, Any]:
        """Return what belongs into run.started; the diff itself is an artifact."""
        facts: dict[str, Any] = {
            "commit": self.commit,
            "branch": self.branch,
            "dirty": self.dirty,
            "root": str(self.root),
            "remote": self.remote,
            "untracked": list(self.untracked),
        }
        if self.diff_omitted is not None:
            facts["diff_omitted"] = self.diff_omitted
        return facts


class Repository(NamedTuple):
    """Where a repository is, and where it came from: the url of origin, without credentials."""

    root: Path
    remote: str | None
    bare: bool = False  # without a working tree, as on a server


class Snapshot(NamedTuple):
    """A state, or why there is none. Both are None outside of any repository: that is a fact, not a problem."""

    state: GitState | None
    problem: str | None


@dataclass(frozen=True)
class Commit:
    """One commit. `patch` compares it with its first parent; None means that it did not fit in the limit."""

    sha: str
    parents: list[str]
    author: str
    authored: str  # ISO 8601, with the author's offset
    message: str
    files: list[str]
    patch: bytes | None
    committed_s: int | None = None  # since 1970; None where the commit does not say


class Commits(NamedTuple):
    """Commits, oldest first; how many older ones were left out; and what went wrong, if anything did."""

    commits: list[Commit]
    omitted: int
    problem: str | None


def snapshot(cwd: Path, timeout_s: float = _limits.GIT_TIMEOUT_S, *, exclude: Path | None = None) -> Snapshot:
    """Describe the working tree that holds cwd: two git processes when it is clean, three when it is dirty.

    One more where it has folders that git does not know.

    `exclude` names a folder (the store) whose files are no part of the answer.
    """
    cwd, deadline = cwd.resolve(), deadline_after(timeout_s)
    try:
        found = repository(cwd, deadline)
        if found is None:
            return Snapshot(None, None)
        pathspec = pathspec_without(found.root, exclude)
        return Snapshot(_state(cwd, found.root, found.remote, pathspec, deadline), None)
    except GitFailed as failure:
        return Snapshot(None, str(failure))


def repository(cwd: Path, deadline: float) -> Repository | None:
    """Return the repository that holds a folder, or None; one git process. Raises GitFailed."""
    root = find_root(cwd)
    if root is None:
        return None
    remote, elsewhere = _configuration(cwd, deadline)
    if elsewhere:
        root = Path(_text(run(["rev-parse", "--show-toplevel"], cwd, deadline).kept.rstrip(b"\n")))
    return Repository(root, remote)


def history(cwd: Path, deadline: float) -> Repository | None:
    """Return the repository whose commits can be read from a folder: one without a working tree counts too."""
    found = repository(cwd, deadline)
    if found is None and (cwd / "HEAD").is_file() and all((cwd / name).is_dir() for name in ("objects", "refs")):
        return Repository(cwd, _configuration(cwd, deadline)[0], bare=True)
    return found


def commits_since(
    cwd: Path,
    start_commit: str | None,
    timeout_s: float = _limits.GIT_TIMEOUT_S,
    *,
    commits_max: int = _limits.GIT_COMMITS_MAX,
) -> Commits:
    """List what HEAD reaches now and the start commit does not; with None, everything that HEAD reaches.

    This also holds when history was rewritten: an amended or rebased commit is a new one. It does not prove that the
    run made these commits: those it pulled or checked out are among them.
    """
    cwd = cwd.resolve()
    if start_commit is not None and not _COMMIT_ID.fullmatch(start_commit):
        return Commits([], 0, f"not a commit id: {start_commit!r}")
    if find_root(cwd) is None:
        return Commits([], 0, None)
    deadline = deadline_after(timeout_s)
    span = ["HEAD"] if start_commit is None else ["HEAD", f"^{start_commit}"]
    try:
        head = run(["rev-parse", "--verify", "--quiet", "HEAD"], cwd, deadline, accept=frozenset({0, 1})).kept
        if head.decode().strip() in ("", start_commit):
            return Commits([], 0, None)
        log = _log(cwd, span, commits_max, deadline)
        if not log:
            return Commits([], 0, None)
        omitted = 0
        if len(log) == commits_max:
            omitted = int(run(["rev-list", "--count", *span, "--"], cwd, deadline).kept) - len(log)
        questions = "".join(" ".join([entry[0], *entry[1].split()[:1]]) + "\n" for entry in log).encode()
        shas = [entry[0] for entry in log]
        files = _files(cwd, questions, deadline)
        patches = _patches(cwd, questions, shas, deadline)
    except GitFailed as failure:
        return Commits([], 0, str(failure))
    commits = [
        Commit(sha, parents.split(), author, authored, message, files.get(sha, []), patches.get(sha), _seconds(time))
        for sha, parents, author, authored, time, message in log
    ]
    missing = sum(commit.patch is None for commit in commits)
    problem = f"{missing} patches did not fit in {_limits.GIT_DIFF_BYTES_MAX} bytes" if missing else None
    return Commits(commits, omitted, problem)


def without_credentials(url: str) -> str:
    """Remove user, password and query of a web address, and the password of any other address."""

    def clean(match: re.Match[str]) -> str:
        scheme = match["scheme"]
        user = "" if scheme.lower() in ("http", "https") else match["userinfo"].partition(":")[0]
        return f"{scheme}://{user}@" if user else f"{scheme}://"

    cleaned = _USERINFO.sub(clean, url)
    return _QUERY.sub("", cleaned) if re.match(r"https?://", cleaned, re.IGNORECASE) else cleaned


def find_root(cwd: Path) -> Path | None:
    """Look upwards for `.git`, as git does, so that no process is started where there is no repository."""
    for folder in (cwd, *cwd.parents):
        entry = folder / ".git"
        # A worktree or a submodule has a file here; a folder without HEAD is none of git's and is passed over.
        if os.path.isfile(entry) or os.path.lexists(entry / "HEAD"):
            return folder
    return None


def _configuration(cwd: Path, deadline: float) -> tuple[str | None, bool]:
    """Return the url of origin, and whether the working tree may lie elsewhere than beside `.git`."""
    pattern = r"^(remote\.origin\.url|core\.worktree)$"
    answer = run(["config", "-z", "--get-regexp", pattern], cwd, deadline, accept=frozenset({0, 1})).kept
    remote, elsewhere = None, False
    for entry in _split(answer):
        name, _, value = entry.partition("\n")
        if name == "core.worktree":
            elsewhere = True
        elif remote is None:
            remote = without_credentials(value)
    return remote, elsewhere


def pathspec_without(root: Path, exclude: Path | None) -> list[str]:
    """Return what to add to a command so that it passes over a folder of the working tree."""
    if exclude is None:
        return []
    inside = exclude.resolve()
    if inside == root or not inside.is_relative_to(root):
        return []
    return ["--", ":(top)", f":(top,literal,exclude){inside.relative_to(root).as_posix()}"]


class Status(NamedTuple):
    """What git says of a working tree: the commit, the branch, what it does not know, one entry that differs."""

    commit: str | None
    branch: str | None
    untracked: list[str]
    changed: str | None

    def base(self) -> str | None:
        """Return what to compare with; without a commit any object id in the entry tells which hash is in use."""
        return self.commit or (EMPTY_TREES[len(self.changed.split(" ")[7])] if self.changed else None)


def status(cwd: Path, pathspec: list[str], deadline: float, *, every_file: bool = False) -> Status:
    """Ask git for the state; `every_file` lists those in folders that hold nothing else too. Raises GitFailed."""
    listed = f"--untracked-files={'all' if every_file else 'normal'}"
    flags = ["--porcelain=v2", "--branch", "-z", listed, "--ignore-submodules=untracked"]
    answer = run(["status", *flags, "--no-renames", "--no-ahead-behind", *pathspec], cwd, deadline).kept
    commit = branch = None
    untracked: list[str] = []
    changed: str | None = None
    for entry in _split(answer):
        if entry.startswith("# branch.oid ") and not entry.endswith("(initial)"):
            commit = entry.removeprefix("# branch.oid ")
        elif entry.startswith("# branch.head ") and not entry.endswith("(detached)"):
            branch = entry.removeprefix("# branch.head ")
        elif entry.startswith("? "):
            untracked.append(entry[2:])
        elif entry.startswith(("1 ", "u ")):
            changed = entry
    return Status(commit, branch, untracked, changed)


def _state(cwd: Path, root: Path, remote: str | None, pathspec: list[str], deadline: float) -> GitState:
    found = status(cwd, pathspec, deadline)
    commit, branch, untracked, changed = found
    taken, inside = _file_clock_ns(), _inside(root, untracked, pathspec, deadline)
    if changed is None:
        return GitState(commit, branch, False, root, remote, untracked, inside=inside, taken_ns=taken)
    limit = _limits.GIT_DIFF_BYTES_MAX
    diff = run(["diff", str(found.base()), *PATCH_FLAGS, *pathspec], cwd, deadline, keep_bytes_max=limit)
    kept, omitted = (diff.kept or None, None) if diff.complete else (None, diff.size)
    return GitState(commit, branch, True, root, remote, untracked, kept, omitted, inside, taken)


def _inside(root: Path, untracked: list[str], pathspec: list[str], deadline: float) -> bytes | None:
    """Return the names of what is in folders that git does not know, as it lists them."""
    if not any(name.endswith("/") for name in untracked):
        return b""
    flags, limit = ["--others", "--exclude-standard", "-z"], _limits.GIT_UNTRACKED_BYTES_MAX
    listed = run(["ls-files", *flags, *pathspec], root, deadline, keep_bytes_max=limit)
    return listed.kept if listed.complete else None


def _file_clock_ns() -> int:
    """Return the time that a file would get which is changed now: Linux dates files by a clock that moves in ticks."""
    clock = getattr(time, "CLOCK_REALTIME_COARSE", None)
    return time.time_ns() if clock is None else time.clock_gettime_ns(clock)


def _log(cwd: Path, span: list[str], commits_max: int, deadline: float) -> list[tuple[str, ...]]:
    form = "--format=tformat:" + "%x00".join(_LOG_FIELDS)
    flags = ["-z", "--no-patch", "--no-show-signature", "--no-notes", "--encoding=UTF-8", "--topo-order", "--reverse"]
    answer = run(["log", *flags, form, f"--max-count={commits_max}", *span, "--"], cwd, deadline).kept
    texts = [_text(part) for part in answer.split(b"\0")]
    width = len(_LOG_FIELDS)
    return [(*texts[at : at + width - 1], texts[at + width - 1].rstrip("\n")) for at in range(0, len(texts) - 1, width)]


def _seconds(told: str) -> int | None:
    return int(told) if told.isdecimal() else None


def _files(cwd: Path, questions: bytes, deadline: float) -> dict[str, list[str]]:
    """Ask once for the paths of all commits. A raw entry begins with a colon, so a path is never taken for an id."""
    flags = ["--stdin", "-r", "--root", "--raw", "-z", "--no-renames", "--ignore-submodules=untracked"]
    files: dict[str, list[str]] = {}
    current: list[str] = []
    parts = iter(_split(run(["diff-tree", *flags], cwd, deadline, stdin=questions).kept))
    for part in parts:
        if part.startswith(":"):
            current.append(next(parts))
        else:
            current = files.setdefault(part.strip(), [])
    return files


def _patches(cwd: Path, questions: bytes, shas: list[str], deadline: float) -> dict[str, bytes]:
    """Ask once for the patches of all commits, and cut the answer where a line is the id of the commit that is next.

    No line inside a patch can be an id: text carries a mark in front, and a line of a binary is never 40 or 64 long.
    """
    flags = ["--stdin", "-r", "--root", "--always", *PATCH_FLAGS]
    limit = _limits.GIT_DIFF_BYTES_MAX
    answer = run(["diff-tree", *flags], cwd, deadline, stdin=questions, keep_bytes_max=limit)
    patches: dict[str, bytes] = {}
    text, at = answer.kept, 0
    for number, sha in enumerate(shas):
        begin = at + len(sha) + 1
        following = shas[number + 1].encode() if number + 1 < len(shas) else None
        end = len(text) if following is None else text.find(b"\n" + following + b"\n", begin - 1) + 1
        if end == 0 or (following is None and not answer.complete):
            break  # the limit fell into this patch: a part of it would not apply
        patches[sha] = text[begin:end].removeprefix(b"\n")
        at = end
    return patches


def _split(answer: bytes) -> list[str]:
    return [_text(part) for part in answer.split(b"\0") if part]


def _text(raw: bytes) -> str:
    """Decode without loss: bytes that are not UTF-8 become lone surrogates, which `plain` marks."""
    return raw.decode("utf-8", "surrogateescape")
