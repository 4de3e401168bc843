"""Let a run know where it came from: code, machine, CI; and what became of the code while it ran."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.capture import ci, environment, git, git_changes, guard
from playhead.event import kinds

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


def look_around(recording: Recording, started: kinds.RunStarted) -> git.GitState | None:
    """Fill in what run.started says about the environment, CI and git; return the state of the working tree."""
    if started.environment is not None:
        return None  # whoever opened the run has said it
    try:
        started.environment = environment.facts()
        started.ci = ci.facts(os.environ)
        if not recording.settings.git:
            return None
        state, problem = git.snapshot(Path.cwd(), exclude=getattr(recording.store, "root", None))
    except Exception as problem_raised:
        guard.absorb(problem_raised, recording, "where the run came from")
        return None
    if problem is not None:
        started.git = {"problem": problem}
    if state is not None:
        started.git = state.facts()
    return state


def keep_diff(recording: Recording, state: git.GitState) -> None:
    """Keep the working tree's difference from its commit as an artifact; run.started says where it was too large."""
    if state.diff:
        recording.artifact(
            "working-tree.diff", state.diff, role="diff", media="text/x-diff", parent=recording.root_span
        )


def conclude(recording: Recording) -> None:
    """Say at the end of a run what became of the working tree: what changed in it, and which commits were made."""
    start = recording.working_tree
    if start is not None:
        changes = keep_changes(recording, start)
        if changes is None or changes.commit is None or changes.commit != start.commit:
            note_commits(recording, start)


def keep_changes(recording: Recording, start: git.GitState) -> git_changes.Changes | None:
    """Keep what changed in the working tree, committed or not, as an artifact; and say what it was."""
    try:
        changes = git_changes.since(start, exclude=getattr(recording.store, "root", None))
    except Exception as problem_raised:
        guard.absorb(problem_raised, recording, "what changed in the working tree")
        return None
    parent = recording.root_span
    if changes.diff:
        recording.artifact("changes.diff", changes.diff, role="diff", media="text/x-diff", parent=parent)
    if told := changes.told():
        facts = {"root": str(start.root), **changes.facts()}
        recording.emit(kinds.NoteAdded(text=told, data=facts), parent=parent)
    return changes


def note_commits(recording: Recording, start: git.GitState) -> None:
    """Record the commits that are new in the working tree, each with its patch; older ones were only taken in."""
    try:
        commits, omitted, problem = git.commits_since(start.root, start.commit)
    except Exception as problem_raised:
        guard.absorb(problem_raised, recording, "commits made during the run")
        return
    parent = recording.root_span
    for commit in commits:
        name = None
        if commit.patch is not None:
            name = recording.artifact(
                f"{kinds.COMMITS}{commit.sha[:12]}.patch",
                commit.patch,
                role="patch",
                media="text/x-diff",
                parent=parent,
            )
        recording.emit(
            kinds.GitCommitted(
                commit=commit.sha,
                files=commit.files,
                patch=name,
                message=commit.message,
                author=commit.author,
                authored=commit.authored,
                parents=commit.parents,
                link="older" if _is_older(commit, start, recording.id) else None,
            ),
            parent=parent,
        )
    if omitted or problem:
        text = f"{omitted} more commits are not recorded" if omitted else "not every commit is recorded in full"
        recording.emit(kinds.NoteAdded(text=text, data={"omitted": omitted, "problem": problem}), parent=parent)


def _is_older(commit: git.Commit, start: git.GitState, run: str) -> bool:
    """Say whether a commit was there before the run, which merged, pulled or checked it out. Git knows the second."""
    there = commit.committed_s is not None and commit.committed_s < start.taken_ns // 1_000_000_000
    return there and run not in commit.message  # a program may date its commits as it likes; the hook names the run
