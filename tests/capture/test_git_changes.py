"""What changed in a working tree while a program ran."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from playhead import _limits
from playhead.capture.git import GitState, snapshot
from playhead.capture.git_changes import Changes, since


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
    assert (changes.files, changes.gone, changes.new) == (["a.txt", "new.txt"], ["b.txt"], ["notes/x"])
    assert changes.told() == "files in the working tree: 2 changed, 1 new, 1 gone"
    assert changes.diff is not None
    git(tree, "stash", "-qu")
    git(tree, "checkout", "-q", str(start.commit))
    (tree.parent / "changes.diff").write_bytes(changes.diff)
    git(tree, "apply", str(tree.parent / "changes.diff"))
    assert (tree / "a.txt").read_text() == "committed\n"
    assert (tree / "new.txt").read_text() == "staged\n"
    assert not (tree / "b.txt").exists()
    assert (tree / "notes" / "x").read_text() == "untracked"


def test_files_that_git_knows_and_that_are_gone_are_told_apart_from_those_that_changed(tree: Path) -> None:
    (tree / "a.txt").write_text("changed before\n")
    (tree / "b.txt").unlink()
    (tree / "empty").touch()
    (tree / "binary").write_bytes(b"\0" * 99 + b"\ndeleted file mode 100644\n")
    git(tree, "add", "empty", "binary")
    git(tree, "commit", "-qm", "more", "empty", "binary")
    start = now(tree)
    for name in ("a.txt", "c.txt", "empty"):
        (tree / name).unlink()
    git(tree, "commit", "-qm", "gone", "empty")
    (tree / "binary").write_bytes(b"\0")
    changes = since(start)
    assert (changes.files, changes.gone, changes.mixed) == (["binary"], ["a.txt", "c.txt", "empty"], ["a.txt"])


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


def test_files_that_are_gone_from_a_folder_that_git_does_not_know_are_named(tree: Path) -> None:
    for name in ("data/a", "data/b ü", "data/deep/c", "data/deep/d", "other/e", "data/kept.log"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x")
    (tree / ".gitignore").write_text("*.pyc\n")
    (tree / "data" / "x.pyc").write_text("x")
    start = now(tree)
    assert sorted(start.untracked) == [".gitignore", "data/", "other/"]
    (tree / "data" / "b ü").unlink()
    (tree / "data" / "x.pyc").unlink()
    shutil.rmtree(tree / "data" / "deep")
    shutil.rmtree(tree / "other")
    (tree / ".gitignore").write_text("*.pyc\n*.log\n")  # which git does not list any more, and is still there
    assert since(start).gone == ["data/b ü", "data/deep/c", "data/deep/d", "other/"]


def test_folders_with_too_many_files_to_remember_are_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "GIT_UNTRACKED_BYTES_MAX", 3)
    (tree / "data").mkdir()
    (tree / "data" / "a").write_text("x")
    start = now(tree)
    assert "too many files" in since(start).told()


def test_what_was_renamed_is_gone_by_its_old_name(tree: Path) -> None:
    git(tree, "rm", "-q", "c.txt")  # before, and none of the program's doing
    start = now(tree)
    git(tree, "mv", "a.txt", "moved name.txt")
    changes = since(start)
    assert (changes.files, changes.gone) == (["moved name.txt"], ["a.txt"])


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


def content(tree: Path, changes: Changes) -> dict[str, str]:
    """Apply a diff in an empty copy of the first commit, and return the files that it added."""
    copy = tree.parent / "copy"
    git(tree, "worktree", "add", "-q", "--detach", str(copy), "HEAD")
    (tree.parent / "changes.diff").write_bytes(changes.diff or b"")
    git(copy, "apply", str(tree.parent / "changes.diff"))
    names = git(copy, "ls-files", "--others", "-z").split("\0")
    found = [copy / name for name in names if name]
    return {
        path.relative_to(copy).as_posix(): os.readlink(path) if path.is_symlink() else path.read_bytes().decode()
        for path in found
    }


def test_the_content_of_files_that_git_does_not_know_is_in_the_diff_and_applies(tree: Path) -> None:
    start = now(tree)
    files = {
        "plain": "one\ntwo\n", "no newline": "one\ntwo", "single": "x\n", "deep/er/file.py": "print()\n",
        'odd "name"\t\\': "quoted\n", "größe": "umlaut\n", "crlf": "a\r\nb\r\n", "blank": "\n\n",
    }  # fmt: skip
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(text.encode())
    (tree / "empty").touch()
    (tree / "tool").write_text("#!/bin/sh\n")
    (tree / "tool").chmod(0o755)
    (tree / "link").symlink_to("plain")
    changes = since(start)
    expected = {**files, "empty": "", "tool": "#!/bin/sh\n", "link": "plain"}
    assert changes.new == sorted(expected)
    assert content(tree, changes) == expected
    assert os.access(tree.parent / "copy" / "tool", os.X_OK)


def test_it_is_the_diff_that_git_itself_would_write_without_hashes(tree: Path) -> None:
    start = now(tree)
    (tree / "new file").write_text("one\ntwo")
    (tree / "other").write_text("x\n")
    changes = since(start)
    git(tree, "add", "--intent-to-add", ".")
    flags = ["--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"]
    written = git(tree, "diff", *flags).splitlines(keepends=True)
    assert (changes.diff or b"").decode() == "".join(line for line in written if not line.startswith("index "))


def test_neither_the_repository_nor_its_index_is_touched(tree: Path) -> None:
    start = now(tree)
    (tree / "new").write_text("x")
    before = {path: path.stat().st_mtime_ns for path in (tree / ".git").rglob("*")}
    since(start)
    assert {path: path.stat().st_mtime_ns for path in (tree / ".git").rglob("*")} == before


def test_ignored_files_are_no_part_of_it(tree: Path) -> None:
    start = now(tree)
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "a.log").write_text("x")
    assert since(start).new == [".gitignore"]


def test_what_git_did_not_know_before_is_altered_only_if_it_was_written_since(tree: Path) -> None:
    (tree / "mine").write_text("before")
    (tree / "kept").write_text("before")
    (tree / "folder").mkdir()
    (tree / "folder" / "kept").write_text("before")
    time.sleep(0.05)  # the file system dates files by ticks
    start = now(tree)
    time.sleep(0.05)
    (tree / "mine").write_text("after")
    (tree / "folder" / "added").write_text("after")
    changes = since(start)
    assert (changes.new, changes.altered, changes.gone) == ([], ["folder/added", "mine"], [])
    assert changes.told() == "files in the working tree: 2 changed"
    assert b"kept" not in (changes.diff or b"")


def test_binary_and_large_files_are_named_and_left_out(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "GIT_NEW_FILE_BYTES_MAX", 1000)
    start = now(tree)
    (tree / "image").write_bytes(b"\x89PNG\0")
    (tree / "large").write_text("x" * 1001)
    (tree / "just").write_text("x" * 1000)
    changes = since(start)
    assert (changes.new, changes.binary, changes.omitted) == (["image", "just", "large"], ["image"], ["large"])
    assert b"large" not in (changes.diff or b"")


def test_all_new_files_together_stay_within_the_limit_of_a_diff(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "GIT_DIFF_BYTES_MAX", 5000)
    start = now(tree)
    for number in range(10):
        (tree / f"f{number}").write_text("x" * 900)
    changes = since(start)
    assert len(changes.diff or b"") <= 5000
    assert len(changes.omitted) == 6
    assert changes.new == [f"f{number}" for number in range(10)]


def test_a_repository_inside_the_repository_is_named_and_not_entered(tree: Path) -> None:
    start = now(tree)
    (tree / "inner").mkdir()
    git(tree / "inner", "init", "-q")
    (tree / "inner" / "x").write_text("x")
    changes = since(start)
    assert (changes.new, changes.diff) == (["inner/"], None)
