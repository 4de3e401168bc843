"""Tell what changed in a working tree between two moments, without writing anything into the repository.

Git compares with a commit, not with the working tree of a moment ago. So both states are compared with the commit of
the first: a file whose difference from it is the same as before was not touched since.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead import _limits
from playhead.capture.git import EMPTY_TREES, PATCH_FLAGS, GitState, pathspec_without, snapshot
from playhead.capture.git_command import GitFailed, deadline_after, run

_RENAMED = re.compile(rb"^rename to (.*)$", re.MULTILINE)
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)


@dataclass(frozen=True)
class Changes:
    """What is different: `diff` holds the tracked files, each in full against the commit that was there first.

    `mixed` are files that differed from it before and differ in another way now: their part of the diff holds both.
    `undone` are files that differed before and do not now. `new` and `gone` are untracked, a folder with a slash.
    """

    diff: bytes | None = None
    diff_omitted: int | None = None  # its size, where it was larger than the limit
    files: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    problem: str | None = None

    def facts(self) -> dict[str, Any]:
        """Return what is to be said beside the diff."""
        return {name: value for name, value in vars(self).items() if name != "diff" and value}

    def told(self) -> str:
        """Say in one line what changed; empty where nothing did."""
        parts = [
            f"{len(self.files)} changed" if self.files else "",
            f"{len(self.undone)} undone" if self.undone else "",
            f"{len(self.new)} new" if self.new else "",
            f"{len(self.gone)} gone" if self.gone else "",
            f"the diff of {self.diff_omitted} bytes is left out" if self.diff_omitted is not None else "",
            f"git could not say: {self.problem}" if self.problem else "",
        ]
        said = ", ".join(part for part in parts if part)
        return f"files in the working tree: {said}" if said else ""


def since(start: GitState, timeout_s: float = _limits.GIT_TIMEOUT_S, *, exclude: Path | None = None) -> Changes:
    """Compare the working tree as it is now with what it was."""
    end, problem = snapshot(start.root, timeout_s, exclude=exclude)
    if end is None:
        return Changes(problem=problem or "the repository is gone")
    new = sorted(set(end.untracked) - set(start.untracked))
    gone = sorted(set(start.untracked) - set(end.untracked))
    if start.diff_omitted is not None:
        return Changes(new=new, gone=gone, problem="the working tree differed too much before to compare it")
    base = start.commit or EMPTY_TREES[len(end.commit or "") or 40]
    limit = _limits.GIT_DIFF_BYTES_MAX
    try:
        rest = pathspec_without(start.root, exclude)
        now = run(["diff", base, *PATCH_FLAGS, *rest], start.root, deadline_after(timeout_s), keep_bytes_max=limit)
    except GitFailed as failure:
        return Changes(new=new, gone=gone, problem=str(failure))
    if not now.complete:
        return Changes(diff_omitted=now.size, new=new, gone=gone)
    before, after = _sections(start.diff or b""), _sections(now.kept)
    touched = {name: section for name, section in after.items() if before.get(name) != section}
    return Changes(
        diff=b"".join(touched.values()) or None,
        files=sorted(touched),
        mixed=sorted(set(touched) & set(before)),
        undone=sorted(set(before) - set(after)),
        new=new,
        gone=gone,
    )


def _sections(diff: bytes) -> dict[str, bytes]:
    """Cut a diff into the part of each file, by name. No line inside of one can begin like its first."""
    starts = [found.start() for found in _SECTION.finditer(diff)]
    parts = [diff[start:end] for start, end in zip(starts, [*starts[1:], len(diff)], strict=False)]
    return {_name(part): part for part in parts}


def _name(section: bytes) -> str:
    """Return the name of the file; where it was not renamed, both names of the first line are the same."""
    renamed = _RENAMED.search(section.partition(b"\n@@")[0])
    if renamed:
        return renamed[1].decode("utf-8", "surrogateescape")
    named = section.partition(b"\n")[0].removeprefix(b"diff --git ")
    half = named[len(named) // 2 + 1 :].strip(b'"').removeprefix(b"b/")
    return half.decode("utf-8", "surrogateescape")
