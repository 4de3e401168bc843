"""Commits, read from what git prints of a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.repositories import commit, git_in, make

from playhead.errors import BadImport
from playhead.ingest import git_log

RUN, OTHER = "run_01m7k9spd2eyx9twdc57j2zz2m", "run_01m7k9spy84v11wa8knt9afmv8"


def read(repo: Path, revisions: str = "HEAD") -> list[git_log.Commit]:
    command = ["git", *git_log.arguments(revisions, 100)]
    return git_log.read(subprocess.run(command, cwd=repo, capture_output=True, check=True).stdout)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "repo")


def test_a_commit_has_its_message_people_times_parents_and_files(repo: Path) -> None:
    first = commit(repo, "first", **{"a b": "one\ntwo\nthree\n", "ü": "x\n"})
    (repo / "a b").rename(repo / "moved")
    (repo / "ü").unlink()
    (repo / "image").write_bytes(b"\0\1\2")
    commit(repo, "second\n\nwith a body", moved="one\ntwo\nthree\nfour\n")
    newest, oldest = read(repo)
    assert (newest.subject, newest.message, newest.parents) == ("second", "second\n\nwith a body", [first])
    assert (newest.author, newest.committer) == ("Ada Löv", "Ada Löv")
    assert newest.committed == git_in(repo, "show", "-s", "--format=%cI")
    told = [(each.path, each.status, each.added, each.removed, each.before) for each in newest.changes]
    assert told == [("image", "A", None, None, None), ("moved", "R", 1, 0, "a b"), ("ü", "D", 0, 1, None)]
    assert [(each.path, each.added) for each in oldest.changes] == [("a b", 3), ("ü", 1)]
    event = newest.event("trailer")
    assert (event.commit, event.files, event.link) == (newest.sha, ["image", "moved", "ü"], "trailer")
    assert event.changes[1] == {"path": "moved", "status": "R", "added": 1, "removed": 0, "before": "a b"}


def test_a_merge_is_compared_with_its_first_parent_and_an_empty_commit_has_no_files(repo: Path) -> None:
    commit(repo, "first", a="x\n")
    git_in(repo, "checkout", "-q", "-b", "side")
    commit(repo, "side", b="x\n")
    git_in(repo, "checkout", "-q", "main")
    commit(repo, "empty")
    git_in(repo, "merge", "-q", "--no-ff", "side", "-m", "merge")
    merge, *rest = read(repo)
    assert (merge.subject, [each.path for each in merge.changes], len(merge.parents)) == ("merge", ["b"], 2)
    assert [each.changes for each in rest if each.subject == "empty"] == [[]]


def test_a_run_is_named_by_a_trailer_wherever_it_stands_or_by_a_note(repo: Path) -> None:
    commit(repo, f"squashed\n\n* one\n\nPlayhead-Run: {RUN}\n\n* two\n\nplayhead-run: {RUN}\n")
    commit(repo, f"noted\n\nPlayhead-Run: run_short\nsee Playhead-Run: {RUN}\n")
    git_in(repo, "notes", "--ref=playhead", "append", "-m", f"Playhead-Run: {RUN}")
    git_in(repo, "notes", "--ref=playhead", "append", "-m", f"Playhead-Run: {OTHER}")
    git_in(repo, "notes", "append", "-m", f"Playhead-Run: {RUN}")  # in another place
    commit(repo, "none")
    none, noted, squashed = read(repo)
    assert (none.runs, noted.runs, squashed.runs) == ({}, {RUN: "note", OTHER: "note"}, {RUN: "trailer"})


def test_lines_that_end_as_on_windows_name_a_run_too(repo: Path) -> None:
    message = f"crlf\r\n\r\nPlayhead-Run: {RUN}\r\n"
    git_in(repo, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message)
    assert read(repo)[0].runs == {RUN: "trailer"}


def test_a_name_that_is_no_text_is_read_without_loss(repo: Path) -> None:
    (Path(repo) / b"caf\xe9".decode("utf-8", "surrogateescape")).write_text("x\n")
    commit(repo, "latin")
    assert read(repo)[0].changes[0].path.encode("utf-8", "surrogateescape") == b"caf\xe9"


@pytest.mark.parametrize("answer", [b"what?\0", b":1 2 3 4 M\0a\0", b"a" * 40 + b"\0x\0", b"1\t2\tname\0"])
def test_what_is_no_list_of_commits_is_refused(answer: bytes) -> None:
    with pytest.raises(BadImport, match="no list of commits"):
        git_log.read(answer)
