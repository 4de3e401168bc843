"""Tell what changed in a working tree between two moments, without writing anything into the repository.

Git compares with a commit, not with the working tree of a moment ago. So both states are compared with the commit of
the first: a file whose difference from it is the same as before was not touched since.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead import _limits
from playhead.capture import git_untracked
from playhead.capture.git import EMPTY_TREES, PATCH_FLAGS, GitState, Status, find_root, pathspec_without, status
from playhead.capture.git_command import GitFailed, deadline_after, run
from playhead.event.kinds import TREE_CHANGED

_RENAMED = re.compile(rb"^rename to (.*)$", re.MULTILINE)
_RENAMED_FROM = re.compile(rb"^rename from (.*)$", re.MULTILINE)
_DELETED = re.compile(rb"^deleted file mode ", re.MULTILINE)
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)


@dataclass(frozen=True)
class Changes:
    """What is different: `diff` holds each file in full against the commit that was there first.

    `mixed` are files that differed from it before and differ in another way now: their part of the diff holds both.
    `undone` are files that differed before and do not now. `gone` are files that are not there any more, by the
    old name where there is a new one. `new` and
    `altered` are files that git does not know; of one the diff holds all of it. `binary` are those of them that hold no
    text, and `omitted` those that are too large or could not be read: of both the diff says nothing.
    """

    diff: bytes | None = None
    diff_omitted: int | None = None  # size of what tracked files add to it, where it was larger than the limit
    files: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    binary: list[str] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)
    problem: str | None = None
    commit: str | None = None  # the one that is there now; None where there is none, or where git could not say

    def facts(self) -> dict[str, Any]:
        """Return what is to be said beside the diff."""
        return {name: value for name, value in vars(self).items() if name not in ("diff", "commit") and value}

    def told(self) -> str:
        """Say in one line what changed; empty where nothing did."""
        changed = len(self.files) + len(self.altered)
        parts = [
            f"{changed} changed" if changed else "",
            f"{len(self.undone)} undone" if self.undone else "",
            f"{len(self.new)} new" if self.new else "",
            f"{len(self.gone)} gone" if self.gone else "",
            f"the diff of {self.diff_omitted} bytes is left out" if self.diff_omitted is not None else "",
            f"git could not say: {self.problem}" if self.problem else "",
        ]
        said = ", ".join(part for part in parts if part)
        return TREE_CHANGED + said if said else ""


def since(start: GitState, timeout_s: float = _limits.GIT_TIMEOUT_S, *, exclude: Path | None = None) -> Changes:
    """Compare the working tree as it is now with what it was: one git process where nothing changed, else two."""
    if find_root(start.root) is None:
        return Changes(problem="the repository is gone")
    deadline = deadline_after(timeout_s)
    rest = pathspec_without(start.root, exclude)
    tracked: dict[str, Any] = {}
    diff = b""
    try:
        end = status(start.root, rest, deadline, every_file=True)
        if start.diff_omitted is not None:
            tracked["problem"] = "the working tree differed too much before to compare it"
        elif end.changed is not None or end.commit != start.commit or start.diff:
            diff, tracked = _tracked(start, end, rest, deadline)
    except GitFailed as failure:
        return Changes(problem=str(failure))
    new, altered, gone = _unknown(start, end)
    gone = sorted({*gone, *tracked.pop("gone", ())})
    if start.inside is None:
        tracked.setdefault("problem", "folders that it does not know hold too many files to see which are gone")
    room = _limits.GIT_DIFF_BYTES_MAX - len(diff)
    files = [name for name in sorted({*new, *altered}) if not name.endswith("/")]
    added = git_untracked.added(start.root, files, room, deadline)
    return Changes(
        diff=diff + added.diff or None,
        new=new,
        altered=altered,
        gone=gone,
        binary=added.binary,
        omitted=added.omitted,
        commit=end.commit,
        **tracked,
    )


def _tracked(start: GitState, end: Status, rest: list[str], deadline: float) -> tuple[bytes, dict[str, Any]]:
    """Return the sections of files that git knows and that differ in another way than before; and what they are."""
    base = start.commit or end.base() or EMPTY_TREES[40]
    if start.commit is None:
        base = EMPTY_TREES[len(base)]
    limit = _limits.GIT_DIFF_BYTES_MAX
    now = run(["diff", base, *PATCH_FLAGS, *rest], start.root, deadline, keep_bytes_max=limit)
    if not now.complete:
        return b"", {"diff_omitted": now.size}
    before, after = _sections(start.diff or b""), _sections(now.kept)
    touched = {name: section for name, section in after.items() if before.get(name) != section}
    mixed, undone = sorted(set(touched) & set(before)), sorted(set(before) - set(after))
    deleted = {name for name, section in touched.items() if _DELETED.search(_head(section))}
    moved = {found[1] for section in touched.values() if (found := _RENAMED_FROM.search(_head(section)))}
    gone = deleted | {name.decode("utf-8", "surrogateescape") for name in moved}
    told = {"files": sorted(set(touched) - gone), "gone": gone, "mixed": mixed, "undone": undone}
    return b"".join(touched.values()), told


def _unknown(start: GitState, end: Status) -> tuple[list[str], list[str], list[str]]:
    """Return which files that git does not know are new, altered, gone. At the start only names were looked at.

    What was there then, perhaps in a folder that was named as a whole, is altered if the file system dates it later.
    """
    were = set(start.untracked)
    folders = tuple(name for name in were if name.endswith("/"))
    known = {name for name in end.untracked if name in were or (folders and name.startswith(folders))}
    new = sorted(set(end.untracked) - known)
    altered = sorted(name for name in known if _changed_ns(start.root / name) >= start.taken_ns)
    there = {*end.untracked, *(name[: at + 1] for name in known for at in range(len(name)) if name[at] == "/")}
    gone = were - there
    whole = tuple(name for name in gone if name.endswith("/"))
    inside = {os.fsdecode(name) for name in (start.inside or b"").split(b"\0") if name} - were - there
    gone |= {name for name in inside if not name.startswith(whole) and not os.path.lexists(start.root / name)}
    return new, altered, sorted(gone)


def _changed_ns(path: Path) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0


def _sections(diff: bytes) -> dict[str, bytes]:
    """Cut a diff into the part of each file, by name. No line inside of one can begin like its first."""
    starts = [found.start() for found in _SECTION.finditer(diff)]
    parts = [diff[start:end] for start, end in zip(starts, [*starts[1:], len(diff)], strict=False)]
    return {_name(part): part for part in parts}


def _head(section: bytes) -> bytes:
    """Return what stands before the first lines of the file."""
    return section.partition(b"\n@@")[0]


def _name(section: bytes) -> str:
    """Return the name of the file; where it was not renamed, both names of the first line are the same."""
    renamed = _RENAMED.search(_head(section))
    if renamed:
        return renamed[1].decode("utf-8", "surrogateescape")
    named = section.partition(b"\n")[0].removeprefix(b"diff --git ")
    half = named[len(named) // 2 + 1 :].strip(b'"').removeprefix(b"b/")
    return half.decode("utf-8", "surrogateescape")
