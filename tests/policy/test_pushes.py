from __future__ import annotations

from pathlib import Path

import pytest
from tests.repositories import commit, git_in, make

from playhead.policy.pushes import pushed_to


@pytest.mark.parametrize(
    ("argv", "to"),
    [
        (["git", "push"], "?"),
        (["git", "push", "--force", "origin", "main"], "origin"),
        (["/usr/bin/git", "-C", "x", "-c", "a=b", "push", "origin"], "origin"),
        (["git", "pull"], None),
        (["git", "stash", "push"], None),
        (["sh", "-c", "cd x && git push origin"], "origin"),
        (["git", "-C", "dir", "push"], "?"),
        (["git", "--git-dir=x", "push", "-o", "ci.skip", "up"], "up"),
        (["git", "--no-pager", "push", "--repo=up"], "up"),
        (["git", "send-pack", "host:x"], "host:x"),
        (["git", "http-push", "https://x"], "https://x"),
        (["git", "remote-https", "origin", "https://x"], "origin"),
        (["git", "subtree", "push", "--prefix=a"], "?"),
        (["git", "lfs", "push", "origin"], "?"),
        (["/usr/lib/git-core/git-push", "origin"], "origin"),
        (["env", "-i", "A=b", "git", "push"], "?"),
        (["bash", "-lc", "true; git -C a push up"], "up"),
        (["timeout", "5", "git", "push"], "?"),
        (["git", "-c", "alias.p=push up", "p"], "up"),
        (["git", "-c", "alias.p=!git push up", "p"], "up"),
        (["git", "-c", "alias.p=p", "p"], None),
        (["git -c a=b push"], "?"),
        (["echo", "git push"], None),
    ],
)
def test_a_push_is_recognised(argv: list[str], to: str | None) -> None:
    assert pushed_to(argv) == to


def test_an_alias_of_the_repository_or_of_the_user_is_a_push(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\n\tup = push\n[alias]\n\tsend = push mirror\n\tst = status\n")
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / ".git" / "config").write_text('[core]\n[alias]\n  Ship = "!git push origin"\n')
    (tmp_path / "repo" / "deep").mkdir()
    repo = str(tmp_path / "repo" / "deep")
    assert pushed_to(["git", "send"], repo) == "mirror"
    assert pushed_to(["git", "ship"], repo) == "origin"
    assert pushed_to(["git", "-C", repo, "ship"], "/") == "origin"
    assert pushed_to(["git", "ship"], "/") is None
    assert pushed_to(["git", "st"], repo) is None
    assert pushed_to(["git", "up"], repo) is None


def test_an_alias_of_the_repository_is_seen_in_its_other_worktrees_and_in_submodules(tmp_path: Path) -> None:
    for name in ("main", "other"):
        commit(make(tmp_path / name), "x")
    main = tmp_path / "main"
    git_in(main, "config", "alias.p", "push up")
    git_in(main, "worktree", "add", "-q", "../tree")
    git_in(main, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "other"), "sub")
    git_in(main / "sub", "config", "alias.q", "push down")
    assert pushed_to(["git", "p"], str(tmp_path / "tree")) == "up"
    assert pushed_to(["git", "-C", "sub", "q"], str(main)) == "down"
    assert pushed_to(["git", "--git-dir", "../tree/.git", "p"], str(main)) == "up"
    assert pushed_to(["git", "--git-dir=.git/worktrees/tree", "p"], str(main)) == "up"
    assert pushed_to(["git", "q"], str(tmp_path / "tree")) is None
