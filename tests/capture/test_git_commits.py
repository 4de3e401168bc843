"""The commits made since a moment, asked of real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from playhead import _limits
from playhead.capture import git


@pytest.fixture(autouse=True)
def _own_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada Löv")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")


def git_in(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def make(folder: Path) -> Path:
    folder.mkdir()
    git_in(folder, "init", "-q", "-b", "main")
    return folder


def commit(folder: Path, message: str, **files: str) -> str:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    git_in(folder, "add", "-A")
    git_in(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git_in(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = make(tmp_path / "repo")
    commit(folder, "first", a="one\n")
    return folder


def test_nothing_new_means_no_commits(repo: Path) -> None:
    assert git.commits_since(repo, git_in(repo, "rev-parse", "HEAD")) == ([], 0, None)


def test_commits_come_oldest_first_with_author_files_and_patch(repo: Path) -> None:
    start = git_in(repo, "rev-parse", "HEAD")
    second = commit(repo, "second\n\nwith a body", b="two\n")
    third = commit(repo, "third", a="ONE\n", b="TWO\n", **{"ü name": "x\n"})
    found = git.commits_since(repo, start)
    assert (found.omitted, found.problem) == (0, None)
    assert [made.sha for made in found.commits] == [second, third]
    first = found.commits[0]
    assert (first.parents, first.author, first.message) == ([start], "Ada Löv", "second\n\nwith a body")
    assert first.files == ["b"]
    assert first.authored == git_in(repo, "show", "-s", "--format=%aI", second)
    assert first.patch is not None
    assert b"+two" in first.patch
    assert b"example.org" not in first.patch
    assert found.commits[1].files == ["a", "b", "ü name"]


def test_each_patch_turns_the_parent_into_the_commit(repo: Path, tmp_path: Path) -> None:
    start = git_in(repo, "rev-parse", "HEAD")
    (repo / "image").write_bytes(bytes(range(256)) * 40)
    commit(repo, "binary")
    commit(repo, "empty")
    next_sha_like = git_in(repo, "rev-parse", "HEAD")
    commit(repo, "text that looks like ids", a=f"{start}\n{next_sha_like}\ndiff --git a/x b/x\n\n")
    (repo / "image").write_bytes(bytes(range(255, -1, -1)) * 40)
    commit(repo, "nul in text", **{".gitattributes": "raw diff\n", "raw": "x\0y\n"})
    git_in(repo, "mv", "a", "renamed")
    commit(repo, "rename")
    copy = tmp_path / "copy"
    git_in(tmp_path, "clone", "-q", str(repo), str(copy))
    for made in git.commits_since(repo, start).commits:
        git_in(copy, "checkout", "-q", made.parents[0])
        if made.patch:
            subprocess.run(["git", "apply", "--index"], cwd=copy, input=made.patch, check=True)
        assert git_in(copy, "write-tree") == git_in(copy, "rev-parse", f"{made.sha}^{{tree}}")
        git_in(copy, "reset", "-q", "--hard")


def test_a_start_without_commit_lists_everything(tmp_path: Path) -> None:
    folder = make(tmp_path / "fresh")
    assert git.commits_since(folder, None) == ([], 0, None)
    sha = commit(folder, "root", a="1\n")
    made = git.commits_since(folder, None).commits
    assert [(entry.sha, entry.parents, entry.files) for entry in made] == [(sha, [], ["a"])]
    assert b"new file mode" in (made[0].patch or b"")


def test_an_amended_commit_is_a_new_one(repo: Path) -> None:
    start = commit(repo, "to be amended", b="1\n")
    git_in(repo, "commit", "-q", "--amend", "-m", "amended")
    assert [made.message for made in git.commits_since(repo, start).commits] == ["amended"]


def test_rebased_commits_are_listed_under_their_new_ids(repo: Path) -> None:
    git_in(repo, "checkout", "-q", "-b", "side")
    start = commit(repo, "side work", s="1\n")
    git_in(repo, "checkout", "-q", "main")
    upstream = commit(repo, "upstream", u="1\n")
    git_in(repo, "checkout", "-q", "side")
    git_in(repo, "rebase", "-q", "main")
    made = git.commits_since(repo, start).commits
    assert [entry.message for entry in made] == ["upstream", "side work"]
    assert [entry.sha for entry in made] == [upstream, git_in(repo, "rev-parse", "HEAD")]


def test_a_merge_is_compared_with_its_first_parent(repo: Path) -> None:
    start = git_in(repo, "rev-parse", "HEAD")
    git_in(repo, "checkout", "-q", "-b", "side")
    side = commit(repo, "side", s="side\n")
    git_in(repo, "checkout", "-q", "main")
    ours = commit(repo, "ours", o="ours\n")
    git_in(repo, "merge", "-q", "--no-ff", "-m", "merge", "side")
    made = git.commits_since(repo, start).commits
    assert {entry.sha for entry in made[:2]} == {side, ours}
    merge = made[2]
    assert (merge.parents, merge.files) == ([ours, side], ["s"])
    assert b"+side" in (merge.patch or b"")
    assert b"+ours" not in (merge.patch or b"")


def test_commits_on_a_detached_head_are_seen(repo: Path) -> None:
    start = git_in(repo, "rev-parse", "HEAD")
    git_in(repo, "checkout", "-q", "--detach")
    sha = commit(repo, "loose", b="1\n")
    assert [made.sha for made in git.commits_since(repo, start).commits] == [sha]


def test_more_commits_than_the_limit_keep_the_newest_and_count_the_rest(repo: Path) -> None:
    start = git_in(repo, "rev-parse", "HEAD")
    shas = [commit(repo, f"number {number}", b=f"{number}\n") for number in range(5)]
    found = git.commits_since(repo, start, commits_max=3)
    assert [made.sha for made in found.commits] == shas[2:]
    assert found.omitted == 2
    assert git.commits_since(repo, start, commits_max=5).omitted == 0


def test_patches_over_the_limit_are_missing_and_said_so(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = git_in(repo, "rev-parse", "HEAD")
    commit(repo, "small", b="1\n")
    commit(repo, "large", c="x\n" * 2000)
    commit(repo, "after", d="1\n")
    monkeypatch.setattr(_limits, "GIT_DIFF_BYTES_MAX", 2000)
    found = git.commits_since(repo, start)
    assert [made.patch is None for made in found.commits] == [False, True, True]
    assert [made.files for made in found.commits] == [["b"], ["c"], ["d"]]
    assert found.problem == "2 patches did not fit in 2000 bytes"


def test_a_start_commit_that_is_gone_is_a_problem_and_not_an_empty_answer(repo: Path) -> None:
    found = git.commits_since(repo, "1" * 40)
    assert found.commits == []
    assert found.problem is not None
    assert "bad object" in found.problem


def test_what_is_not_a_commit_id_never_reaches_git(repo: Path) -> None:
    found = git.commits_since(repo, "--output=x")
    assert found.problem == "not a commit id: '--output=x'"
    assert not (repo / "x").exists()
