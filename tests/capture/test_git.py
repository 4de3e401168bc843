"""What git knows about a directory, asked of real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from playhead import _limits
from playhead.capture import git


@pytest.fixture(autouse=True)
def _own_identity(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada Löv\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n',
        encoding="utf-8",
    )


def git_in(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git_in(folder, "init", "-q")
    return folder.resolve()


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


def state_of(folder: Path, exclude: Path | None = None) -> git.GitState:
    found = git.snapshot(folder, exclude=exclude)
    assert found.problem is None
    assert found.state is not None
    return found.state


def test_a_clean_tree_is_described_by_commit_branch_and_root(repo: Path) -> None:
    state = state_of(repo)
    assert state.commit == git_in(repo, "rev-parse", "HEAD")
    assert (state.branch, state.dirty, state.root, state.remote) == ("main", False, repo, None)
    assert (state.untracked, state.diff, state.diff_omitted) == ([], None, None)


def test_staged_and_unstaged_changes_are_in_one_diff_that_applies(repo: Path, tmp_path: Path) -> None:
    commit(repo, "second", b="two\n", image="\0\1\2")
    (repo / "a").write_text("one, staged\n")
    git_in(repo, "add", "a")
    (repo / "b").write_text("two, unstaged\n")
    (repo / "image").write_bytes(bytes(range(256)))
    state = state_of(repo)
    assert state.dirty
    assert state.diff is not None

    copy = tmp_path / "copy"
    git_in(tmp_path, "clone", "-q", str(repo), str(copy))
    subprocess.run(["git", "apply"], cwd=copy, input=state.diff, check=True)
    for name in ("a", "b", "image"):
        assert (copy / name).read_bytes() == (repo / name).read_bytes()


def test_untracked_files_are_listed_and_do_not_make_it_dirty(repo: Path) -> None:
    (repo / "new file ü.txt").write_text("x")
    (repo / "folder").mkdir()
    (repo / "folder" / "inner").write_text("x")
    state = state_of(repo)
    assert not state.dirty
    assert sorted(state.untracked) == ["folder/", "new file ü.txt"]


def test_names_that_are_not_utf8_survive(repo: Path) -> None:
    name = b"caf\xe9\n"
    (Path(os.fsdecode(os.fsencode(repo) + b"/" + name))).write_text("x")
    assert [entry.encode("utf-8", "surrogateescape") for entry in state_of(repo).untracked] == [name]


def test_untracked_files_are_listed_even_when_the_user_hides_them(repo: Path) -> None:
    git_in(repo, "config", "status.showUntrackedFiles", "no")
    (repo / "new").write_text("x")
    assert state_of(repo).untracked == ["new"]


def test_a_repository_without_a_commit_has_a_branch_and_the_staged_content_as_diff(tmp_path: Path) -> None:
    folder = make(tmp_path / "empty")
    assert state_of(folder) == git.GitState(None, "main", False, folder)
    (folder / "a").write_text("staged\n")
    git_in(folder, "add", "a")
    state = state_of(folder)
    assert state.commit is None
    assert state.dirty
    assert b"+staged" in (state.diff or b"")


def test_a_sha256_repository_without_a_commit_is_understood(tmp_path: Path) -> None:
    folder = tmp_path / "wide"
    folder.mkdir()
    git_in(folder, "init", "-q", "--object-format=sha256")
    (folder / "a").write_text("staged\n")
    git_in(folder, "add", "a")
    assert b"+staged" in (state_of(folder).diff or b"")
    sha = commit(folder, "first")
    assert len(sha) == 64
    found = git.commits_since(folder, None)
    assert [(made.sha, made.files) for made in found.commits] == [(sha, ["a"])]


def test_a_detached_head_has_no_branch(repo: Path) -> None:
    git_in(repo, "checkout", "-q", "--detach")
    state = state_of(repo)
    assert state.branch is None
    assert state.commit == git_in(repo, "rev-parse", "HEAD")


def test_outside_of_any_repository_there_is_neither_state_nor_problem(tmp_path: Path) -> None:
    assert git.snapshot(tmp_path) == (None, None)
    assert git.commits_since(tmp_path, None) == ([], 0, None)


def test_a_folder_named_git_that_is_none_does_not_hide_the_repository(repo: Path) -> None:
    inner = repo / "inner"
    (inner / ".git").mkdir(parents=True)
    assert state_of(inner).root == repo


def test_a_missing_git_is_a_problem_only_inside_a_repository(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    found = git.snapshot(repo)
    assert found.state is None
    assert found.problem is not None
    assert "could not be started" in found.problem
    assert git.commits_since(repo, "0" * 40).problem is not None
    assert git.snapshot(tmp_path) == (None, None)


def test_a_git_that_hangs_is_given_up_on_and_left_dead(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git").write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    began = time.monotonic()
    found = git.snapshot(repo, timeout_s=0.3)
    assert time.monotonic() - began < 5
    assert found == (None, "git did not answer in time")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_broken_repository_is_a_problem_with_gits_own_words(repo: Path) -> None:
    (repo / ".git" / "HEAD").write_text("garbage\n")
    found = git.snapshot(repo)
    assert found.state is None
    assert found.problem is not None
    assert "not a git repository" in found.problem


def test_a_diff_over_the_limit_is_left_out_with_its_size(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "a").write_text("x\n" * 5000)
    whole = state_of(repo).diff
    assert whole is not None
    monkeypatch.setattr(_limits, "GIT_DIFF_BYTES_MAX", len(whole) - 1)
    state = state_of(repo)
    assert (state.dirty, state.diff, state.diff_omitted) == (True, None, len(whole))
    assert state.facts()["diff_omitted"] == len(whole)
    monkeypatch.setattr(_limits, "GIT_DIFF_BYTES_MAX", len(whole))
    assert state_of(repo).diff == whole


def test_the_store_is_no_part_of_the_answer(repo: Path) -> None:
    store = repo / "deep" / "*store"
    store.mkdir(parents=True)
    (store / "tracked").write_text("1")
    commit(repo, "store committed by mistake")
    (store / "tracked").write_text("2")
    (store / "new").write_text("x")
    (repo / "deep" / "astore").write_text("x")
    assert state_of(repo).dirty
    state = state_of(repo / "deep", exclude=store)
    assert (state.dirty, state.diff, state.untracked) == (False, None, ["deep/astore"])
    (repo / "a").write_text("changed\n")
    diff = state_of(repo / "deep", exclude=store).diff
    assert diff is not None
    assert b"+changed" in diff
    assert b"store" not in diff


def test_a_store_outside_of_the_repository_changes_nothing(repo: Path, tmp_path: Path) -> None:
    (repo / "new").write_text("x")
    assert state_of(repo, exclude=tmp_path / "elsewhere").untracked == ["new"]
    assert state_of(repo, exclude=repo).untracked == ["new"]


def test_a_linked_worktree_is_its_own_root(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git_in(repo, "worktree", "add", "-q", "-b", "side", str(tree))
    (tree / "a").write_text("changed\n")
    state = state_of(tree)
    assert (state.root, state.branch, state.dirty) == (tree.resolve(), "side", True)
    assert not state_of(repo).dirty


def test_a_submodule_is_its_own_repository(repo: Path, tmp_path: Path) -> None:
    inner = make(tmp_path / "inner")
    inner_commit = commit(inner, "inside", x="1\n")
    git_in(repo, "submodule", "add", "-q", str(inner), "part")
    commit(repo, "with a part")
    state = state_of(repo / "part")
    assert (state.root, state.commit, state.remote) == (repo / "part", inner_commit, str(inner))
    (repo / "part" / "x").write_text("2\n")
    assert b"-dirty" in (state_of(repo).diff or b"")


def test_a_working_tree_that_lies_elsewhere_is_found(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "elsewhere"
    tree.mkdir()
    git_in(repo, "config", "core.worktree", str(tree))
    assert state_of(repo).root == tree.resolve()


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://user:secret@host.example/o/r.git", "https://host.example/o/r.git"),
        ("https://ghp_secret@host.example/o/r.git", "https://host.example/o/r.git"),
        ("HTTPS://u:s@cret@host.example:8443/o/r?private_token=secret#x", "HTTPS://host.example:8443/o/r"),
        ("ssh://git:secret@host.example:22/o/r", "ssh://git@host.example:22/o/r"),
        ("helper::https://u:secret@host.example/o", "helper::https://host.example/o"),
        ("git@host.example:o/r.git", "git@host.example:o/r.git"),
        ("../other", "../other"),
        ("https://host.example/@scope/r", "https://host.example/@scope/r"),
    ],
)
def test_the_remote_never_holds_credentials(repo: Path, url: str, clean: str) -> None:
    git_in(repo, "config", "remote.origin.url", url)
    assert state_of(repo).remote == clean


def test_variables_of_a_hook_do_not_lead_to_another_repository(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make(tmp_path / "other")
    commit(other, "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    state = state_of(repo)
    monkeypatch.undo()
    assert state.commit == git_in(repo, "rev-parse", "HEAD")


def test_no_program_of_the_user_runs_and_nothing_is_written(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = tmp_path / "spy"
    spy.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/ran\ncat "$1" 2>/dev/null\nexit 0\n')
    spy.chmod(0o755)
    hooks = repo / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "fsmonitor-watchman"):
        shutil.copy(spy, hooks / hook)
    for setting in ("core.fsmonitor", "diff.external", "diff.shout.textconv", "diff.shout.command", "core.pager"):
        git_in(repo, "config", setting, str(spy))
    git_in(repo, "config", "log.showSignature", "true")
    git_in(repo, "config", "gpg.program", str(spy))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(spy))
    monkeypatch.setenv("GIT_PAGER", str(spy))
    start = git_in(repo, "rev-parse", "HEAD")
    commit(repo, "attributes", b="1\n", **{".gitattributes": "* diff=shout\n"})
    os.utime(repo / "a", (1, 1))  # only the time differs: git would like to refresh its index
    (repo / "b").write_text("2\n")
    (tmp_path / "ran").unlink(missing_ok=True)
    before = (repo / ".git" / "index").read_bytes()

    state = state_of(repo)
    made = git.commits_since(repo, start).commits

    assert not (tmp_path / "ran").exists()
    assert (repo / ".git" / "index").read_bytes() == before
    assert b"-1\n+2\n" in (state.diff or b"")
    assert b"diff --git a/a" not in (state.diff or b"")
    assert b"+* diff=shout\n" in (made[0].patch or b"")


def test_the_users_taste_does_not_change_the_diff(repo: Path) -> None:
    (repo / "a").write_text("two\n")
    expected = state_of(repo).diff
    for setting in ("diff.noprefix=true", "diff.mnemonicPrefix=true", "color.ui=always", "diff.context=0"):
        git_in(repo, "config", *setting.split("="))
    assert state_of(repo).diff == expected
