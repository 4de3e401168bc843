from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.repositories import commit, git_in

from playhead._api import linking
from playhead.errors import UsageError
from playhead.ingest import git_log

RUN, OTHER = "run_01m7k9spd2eyx9twdc57j2zz2m", "run_01m7k9spy84v11wa8knt9afmv8"


def message(repo: Path) -> str:
    return git_in(repo, "log", "-1", "--format=%B")


def test_a_commit_of_a_recorded_program_names_its_run_and_others_do_not(repo: Path) -> None:
    assert linking.hook(repo).state == "none"
    found = linking.install_hook(repo)
    assert (found.state, Path(found.file).name, found.shared) == ("installed", "prepare-commit-msg", False)
    commit(repo, "mine")
    assert message(repo) == "mine"
    commit(repo, "made", {"PLAYHEAD_RUN": RUN})
    assert message(repo) == f"made\n\nPlayhead-Run: {RUN}"
    git_in(repo, "commit", "-q", "--amend", "--allow-empty", "--no-edit", PLAYHEAD_RUN=RUN)
    assert message(repo) == f"made\n\nPlayhead-Run: {RUN}"
    # What a recorded Python starts is told by this variable, which holds other things too.
    commit(repo, "by python\n\nSigned-off-by: Ada", {"PLAYHEAD_ATTACH": f"cpython-311:/x/report:{OTHER}/12/3:ear"})
    assert message(repo) == f"by python\n\nSigned-off-by: Ada\nPlayhead-Run: {OTHER}"


@pytest.mark.parametrize("value", ["run_short", "", "run_$(touch evil)xxxxxxxxxxxxx", RUN.upper(), f"{RUN}x"])
def test_what_is_no_run_changes_no_message_and_stops_no_commit(repo: Path, value: str) -> None:
    linking.install_hook(repo)
    commit(repo, "made", {"PLAYHEAD_RUN": value})
    assert message(repo) == "made"
    assert not (repo / "evil").exists()


def test_a_message_that_is_empty_still_stops_the_commit(repo: Path) -> None:
    linking.install_hook(repo)
    before = commit(repo, "first")
    (repo / "template").write_text("What and why\n")
    # The last four ask an editor, or strip lines that begin with #.
    stripped = (["-t", "template"], [], ["-e", "-m", "# why"], ["-m", "# why"])
    for arguments in (["-m", ""], ["-F", os.devnull], *stripped):
        if arguments == stripped[-1]:
            git_in(repo, "config", "commit.cleanup", "strip")
        with pytest.raises(AssertionError, match=r"empty commit message|did not edit the message"):
            git_in(repo, "commit", "--allow-empty", *arguments, PLAYHEAD_RUN=RUN, GIT_EDITOR="true")
    assert git_in(repo, "rev-parse", "HEAD") == before


@pytest.mark.parametrize("text", ["#42 fix the bug", "fix\n\n# why\n---\nand more", "fix\n\n---\nand more"])
def test_the_run_is_named_at_the_end_of_whatever_git_takes_for_a_message(repo: Path, text: str) -> None:
    linking.install_hook(repo)
    commit(repo, text, {"PLAYHEAD_RUN": RUN})
    assert message(repo) == f"{text}\n\nPlayhead-Run: {RUN}"


def test_the_subject_of_a_merge_stays_what_it_is(repo: Path) -> None:
    linking.install_hook(repo)
    commit(repo, "first")
    git_in(repo, "checkout", "-q", "-b", "other")
    commit(repo, "second")
    git_in(repo, "checkout", "-q", "main")
    git_in(repo, "merge", "-q", "--no-ff", "--no-edit", "other", PLAYHEAD_RUN=RUN)
    assert message(repo) == f"Merge branch 'other'\n\nPlayhead-Run: {RUN}"


def test_how_a_user_writes_other_trailers_does_not_matter(repo: Path) -> None:
    linking.install_hook(repo)
    git_in(repo, "config", "trailer.separators", "=")
    git_in(repo, "config", "trailer.ifMissing", "doNothing")
    commit(repo, "made", {"PLAYHEAD_RUN": RUN})
    assert message(repo) == f"made\n\nPlayhead-Run: {RUN}"


def test_a_hook_that_is_not_ours_is_left_alone(repo: Path) -> None:
    file = Path(linking.hook(repo).file)
    file.parent.mkdir(exist_ok=True)
    file.write_text("#!/bin/sh\n# somebody else's\n")
    assert linking.hook(repo).state == "other"
    for act in (linking.install_hook, linking.remove_hook):
        with pytest.raises(UsageError, match="left as it is"):
            act(repo)
    assert file.read_text() == "#!/bin/sh\n# somebody else's\n"
    # Our lines may be added to it by hand.
    whole = f"#!/bin/sh\nset -eu\n{linking.LINES}touch {repo}/after\n"
    file.write_text(whole)
    file.chmod(0o755)
    commit(repo, "made", {"PLAYHEAD_RUN": RUN})
    assert message(repo).endswith(f"Playhead-Run: {RUN}")
    commit(repo, "mine")
    assert message(repo) == "mine"
    assert (repo / "after").exists()
    # It is still somebody else's.
    assert linking.hook(repo).state == linking.install_hook(repo).state == "added"
    with pytest.raises(UsageError, match="left as it is"):
        linking.remove_hook(repo)
    assert file.read_text() == whole


def test_a_link_to_nothing_in_place_of_the_hook_is_left_alone(repo: Path) -> None:
    file = Path(linking.hook(repo).file)
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(repo / "gone")
    with pytest.raises(UsageError, match="left as it is"):
        linking.install_hook(repo)
    assert file.is_symlink()


def test_the_hook_is_taken_away_and_installing_twice_is_no_different(repo: Path) -> None:
    linking.install_hook(repo)
    file = Path(linking.install_hook(repo).file)
    assert os.access(file, os.X_OK)
    assert linking.remove_hook(repo).state == "none"
    assert linking.remove_hook(repo).state == "none"
    assert not file.exists()


def test_the_folder_that_git_is_told_to_look_into_is_used(repo: Path) -> None:
    git_in(repo, "config", "core.hooksPath", ".hooks")
    assert linking.install_hook(repo).file == str(repo / ".hooks" / "prepare-commit-msg")
    commit(repo, "made", {"PLAYHEAD_RUN": RUN})
    assert message(repo).endswith(RUN)


def test_hooks_of_all_repositories_are_named_as_such(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(f"[core]\nhooksPath = {tmp_path / 'hooks'}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    assert linking.install_hook(repo) == linking.Hook("installed", str(tmp_path / "hooks/prepare-commit-msg"), True)


def test_a_worktree_uses_the_hooks_of_its_repository(repo: Path, tmp_path: Path) -> None:
    git_in(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert linking.install_hook(tmp_path / "tree").file == str(repo / ".git/hooks/prepare-commit-msg")


def test_a_note_links_a_commit_and_adds_to_what_is_there(repo: Path) -> None:
    first = linking.link(RUN, "HEAD", repo)
    assert (first.added, first.commit) == (True, git_in(repo, "rev-parse", "HEAD"))
    assert linking.link(OTHER, "HEAD", repo).added
    assert not linking.link(RUN, "HEAD", repo).added
    assert git_in(repo, "notes", "--ref=playhead", "show") == f"Playhead-Run: {RUN}\n\nPlayhead-Run: {OTHER}"
    assert git_log.NOTES == "refs/notes/playhead"
    with pytest.raises(UsageError, match="not a commit"):
        linking.link(RUN, "nope", repo)


def test_outside_of_a_repository_there_is_nothing_to_link(tmp_path: Path) -> None:
    for act in (linking.hook, lambda folder: linking.link(RUN, "HEAD", folder)):
        with pytest.raises(UsageError, match="no git repository"):
            act(tmp_path)
