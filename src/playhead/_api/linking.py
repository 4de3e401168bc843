"""Link commits to runs: by a hook that names the run in the message of a commit, or by a note for one that is made."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from playhead import _limits
from playhead.capture import git
from playhead.capture.git_command import GitFailed, deadline_after, run
from playhead.errors import BadImport, UsageError
from playhead.ingest import git_log

HOOK = "prepare-commit-msg"
_MARK = "# playhead: names the recorded run that makes a commit"
# What a hook of somebody else's can have too, wherever in it: it has its own variables, and never stops a commit.
LINES = f"""\
{_MARK}
(
  run=${{PLAYHEAD_RUN:-}}
  if [ -z "$run" ]; then
    # A recorded Python hides that variable; this one tells the programs that it starts.
    run=$(printf %s "${{PLAYHEAD_ATTACH:-}}" | cut -d: -f3 | cut -d/ -f1)
  fi
  case $run in
    *[!0-9a-z_]*) exit ;;
    run_??????????????????????????) ;;
    *) exit ;;
  esac
  # One that waits for an editor ($2 is empty, or says template) has no message yet, and git stops where it gets none.
  case ${{2:-}} in
    "" | template) exit ;;
  esac
  # Where no editor is asked, which git tells so, a line that begins with # is one of the message.
  plain=
  case ${{GIT_EDITOR:-}}$(git config commit.cleanup) in
    :strip) ;;
    :*) plain="-c core.commentChar=$(printf '\\001')" ;;
  esac
  # An empty message stops a commit, too.
  [ -n "$(git $plain stripspace --strip-comments < "$1")" ] || exit
  [ -z "$(tail -c 1 "$1")" ] || echo >> "$1" # without its end of line, that of a merge would go on in the trailer
  git $plain -c trailer.separators=: interpret-trailers --in-place --no-divider \
    --if-missing add --if-exists addIfDifferent --trailer "{git_log.TRAILER}: $run" "$1"
) || :
"""
SCRIPT = f"#!/bin/sh\n# `playhead import git --hook remove` takes this file away.\n{LINES}"


class Hook(msgspec.Struct):
    """The hook of a repository: `installed`, `none`, or somebody else's: `other`, or `added` where it has our lines."""

    state: str
    file: str
    shared: bool  # all repositories of this user have this folder of hooks


class Linked(msgspec.Struct):
    """A commit with a note that names a run; not `added` where the commit had it already."""

    run: str
    commit: str
    added: bool


def hook(repo: Path) -> Hook:
    """Say whether the hook is there."""
    folder, shared = _hooks_folder(repo)
    file = folder / HOOK
    try:
        text = file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return Hook("other" if file.is_symlink() else "none", str(file), shared)
    except OSError as problem:
        raise BadImport(f"cannot read {file}: {problem.strerror}", hint="") from None
    state = "installed" if text == SCRIPT else "added" if _MARK in text else "other"
    return Hook(state, str(file), shared)


def install_hook(repo: Path) -> Hook:
    """Put the hook in its place; one that is there already is left alone."""
    found = hook(repo)
    if found.state == "other":
        raise UsageError(
            f"{found.file} is there already, and is left as it is",
            hint="`playhead import git --hook print` prints what to add to it, before it ends.",
        )
    if found.state == "added":
        return found
    file = Path(found.file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f".{HOOK}.playhead")
        aside.write_text(SCRIPT)
        aside.chmod(0o755)
        os.replace(aside, file)
    except OSError as problem:
        raise UsageError(f"cannot write {file}: {problem.strerror}") from None
    return msgspec.structs.replace(found, state="installed")


def remove_hook(repo: Path) -> Hook:
    """Take the hook away, where it is ours."""
    found = hook(repo)
    if found.state in ("other", "added"):
        raise UsageError(
            f"{found.file} has lines that are not ours, and is left as it is",
            hint="Take ours out of it by hand: `playhead import git --hook print` prints them.",
        )
    try:
        Path(found.file).unlink(missing_ok=True)
    except OSError as problem:
        raise UsageError(f"cannot remove {found.file}: {problem.strerror}") from None
    return msgspec.structs.replace(found, state="none")


def link(run_id: str, commit: str, repo: Path) -> Linked:
    """Add a note to a commit that names a run; what the note says already stays."""
    cwd, deadline = repo.resolve(), deadline_after(_limits.IMPORT_GIT_S)
    try:
        if git.history(cwd, deadline) is None:
            raise UsageError(f"there is no git repository at {repo}", hint="`--repo DIR` names a folder in one.")
        (found,) = git_log.read(run(git_log.arguments(commit, 1, contents=False), cwd, deadline).kept)
    except (GitFailed, ValueError) as problem:
        raise UsageError(f"not a commit of this repository: {commit!r} ({problem})") from None
    if run_id in found.runs:
        return Linked(run_id, found.sha, False)
    told = ["-m", f"{git_log.TRAILER}: {run_id}"]
    try:
        run(["notes", f"--ref={git_log.NOTES}", "append", *told, found.sha], cwd, deadline)
    except GitFailed as problem:
        raise BadImport(
            f"the note was not written: {problem}", hint="A note is a commit: git must know who you are."
        ) from None
    return Linked(run_id, found.sha, True)


def commit_id(named: str, repo: Path) -> str:
    """Return the id of the commit that git calls so in a repository: `HEAD~1`, a branch, a tag."""
    cwd, deadline = repo.resolve(), deadline_after(_limits.IMPORT_GIT_S)
    try:
        if git.find_root(cwd) is None:
            raise UsageError(f"not the id of a commit: {named!r}", hint="What git calls it is known in a repository.")
        told = run(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}"], cwd, deadline,
                   accept=frozenset({0, 1})).kept.decode("ascii", "replace").strip()  # fmt: skip
    except GitFailed as problem:
        raise UsageError(f"not a commit of this repository: {named!r} ({problem})") from None
    if not told:
        raise UsageError(f"not a commit of this repository: {named!r}")
    return told


def _hooks_folder(repo: Path) -> tuple[Path, bool]:
    """Return where git looks for hooks, and whether that is the same for all repositories of this user."""
    cwd, deadline = repo.resolve(), deadline_after(_limits.IMPORT_GIT_S)
    try:
        found = git.repository(cwd, deadline)
        if found is None:
            raise UsageError(f"there is no git repository at {repo}", hint="`--repo DIR` names a folder in one.")
        asked = ["config", "-z", "--show-scope", "--type=path", "--get-all", "core.hooksPath"]
        answer = run(asked, cwd, deadline, accept=frozenset({0, 1})).kept.decode("utf-8", "surrogateescape")
        words = answer.split("\0")
        # The last one counts, and git was just told not to run any: that is the one of the scope `command`.
        set_here = [pair for pair in zip(words[::2], words[1::2], strict=False) if pair[0] != "command"]
        if set_here:
            scope, path = set_here[-1]
            return found.root / path, scope in ("global", "system")
        common = run(["rev-parse", "--git-common-dir"], cwd, deadline).kept.rstrip(b"\n")
    except GitFailed as problem:
        raise BadImport(str(problem)) from None
    return (cwd / os.fsdecode(common)).resolve() / "hooks", False
