"""What changed in a working tree while a program ran."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from playhead import _limits
from playhead.capture.git import GitState, snapshot
from playhead.capture.git_changes import since


def git(folder: Path, *arguments: str) -> str:
    fixed = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    return subprocess.check_output(["git", *fixed, *arguments], cwd=folder, text=True, stderr=subprocess.PIPE)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text(f"{name}\n" * 20)
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def now(tree: Path) -> GitState:
    state, problem = snapshot(tree)
    assert state is not None, problem
    return state


def test_nothing_changed_is_nothing_to_say(tree: Path) -> None:
    (tree / "a.txt").write_text("changed before\n")
    (tree / "untracked").write_text("x")
    changes = since(now(tree))
    assert (changes.diff, changes.told(), changes.facts()) == (None, "", {})


def test_changes_committed_or_not_are_in_one_diff_that_applies_to_what_was_there(tree: Path) -> None:
    start = now(tree)
    (tree / "a.txt").write_text("committed\n")
    git(tree, "commit", "-qam", "second")
    (tree / "b.txt").unlink()
    (tree / "new.txt").write_text("staged\n")
    git(tree, "add", "new.txt")
    (tree / "notes").mkdir()
    (tree / "notes" / "x").write_text("untracked")
    changes = since(start)
    assert (changes.files, changes.new) == (["a.txt", "b.txt", "new.txt"], ["notes/"])
    assert changes.told() == "files in the working tree: 3 changed, 1 new"
    assert changes.diff is not None
    git(tree, "stash", "-q")
    git(tree, "checkout", "-q", str(start.commit))
    (tree.parent / "changes.diff").write_bytes(changes.diff)
    git(tree, "apply", str(tree.parent / "changes.diff"))
    assert (tree / "a.txt").read_text() == "committed\n"
    assert (tree / "new.txt").read_text() == "staged\n"
    assert not (tree / "b.txt").exists()


def test_what_differed_before_is_told_apart_from_what_the_program_did(tree: Path) -> None:
    git(tree, "mv", "c.txt", "moved name.txt")
    (tree / "a.txt").write_text("before\n")
    (tree / "b.txt").write_text("before\n")
    (tree / "left").write_text("x")
    start = now(tree)
    (tree / "b.txt").write_text("after\n")
    (tree / "left").unlink()
    changes = since(start)
    assert (changes.files, changes.mixed, changes.undone, changes.gone) == (["b.txt"], ["b.txt"], [], ["left"])
    assert changes.diff is not None
    assert b"a.txt" not in changes.diff
    assert b"moved" not in changes.diff
    git(tree, "checkout", "-q", "a.txt")
    assert since(start).undone == ["a.txt"]


def test_a_repository_without_a_commit_is_compared_with_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    start = now(tmp_path)
    (tmp_path / "first").write_text("x\n")
    git(tmp_path, "add", "first")
    assert since(start).files == ["first"]
    git(tmp_path, "commit", "-qm", "one")
    assert since(start).files == ["first"]


def test_the_store_is_no_part_of_what_changed(tree: Path) -> None:
    start = snapshot(tree, exclude=tree / "store").state
    assert start is not None
    (tree / "store").mkdir()
    (tree / "store" / "x").write_text("x")
    assert since(start, exclude=tree / "store").told() == ""


def test_a_diff_over_the_limit_is_left_out_and_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = now(tree)
    (tree / "a.txt").write_text("large\n" * 1000)
    monkeypatch.setattr(_limits, "GIT_DIFF_BYTES_MAX", 1000)
    changes = since(start)
    assert changes.diff is None
    assert (changes.diff_omitted or 0) > 1000
    assert "left out" in changes.told()


def test_a_repository_that_vanished_is_a_problem_and_no_error(tree: Path) -> None:
    start = now(tree)
    (tree / ".git").rename(tree / "elsewhere")
    assert since(start).told() == "files in the working tree: git could not say: the repository is gone"
