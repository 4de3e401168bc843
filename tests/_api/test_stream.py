from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests._api.conftest import record, record_child
from tests.repositories import commit, git_in, make

import playhead
from playhead._api import importing
from playhead._api.importing_git import import_git
from playhead._api.stream import Stream, stream
from playhead.capture.record import Record
from playhead.errors import UsageError
from playhead.store.files import FileStore


def told(found: Stream) -> list[str]:
    """Return what stands in a stream, in a word each."""
    words = {"run": "name", "commit": "subject", "ci": "job"}
    return [entry[words[entry["type"]]] for entry in found.entries]


def report(store: FileStore, job: str, finished: str, **about: Any) -> None:
    found = importing.About(**about)
    event = importing.CiReported(job=job, result="success", finished=finished)
    step = importing.CiReported(job=job, step="a step", result="success", finished=finished)
    importing.attach(store, found, [event, step], "by-hand")


def test_runs_commits_and_results_are_one_stream_with_their_links(store: FileStore, repo: Path) -> None:
    with playhead.record("maker", store=store, capture=False) as maker:
        sha = commit(repo, "made", b="x\n")
    report(store, "tests", "2222-01-02T03:04:05Z", commit=sha)
    found = stream(store, repo)
    assert told(found) == ["tests", "made", "maker", "first"]
    ci, made, run, first = found.entries
    assert (found.repository, found.problem) == (str(repo), None)
    assert (ci["commit"], ci["runs"], ci["result"]) == (sha, [maker.id], "success")
    assert (made["commit"], made["runs"]) == (sha, [{"run": maker.id, "link": None}])
    assert (made["files"], made["added"], made["removed"], made["author"]) == (1, 1, 0, "Ada Löv")
    assert (run["run"], run["commit"], run["status"], run["branch"]) == (maker.id, first["commit"], "ok", "main")
    assert [entry["time"] for entry in found.entries] == sorted((e["time"] for e in found.entries), reverse=True)


def test_a_repository_in_a_folder_whose_name_is_no_text_has_its_runs(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = make(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")))
    monkeypatch.chdir(odd)
    record(store, "inside")
    assert told(stream(store, odd)) == ["inside"]


def test_a_link_in_a_message_or_a_note_shows_without_an_import(store: FileStore, repo: Path) -> None:
    run = record(store)
    commit(repo, f"second\n\nPlayhead-Run: {run}")
    assert stream(store, repo).entries[0]["runs"] == [{"run": run, "link": "trailer"}]
    import_git("HEAD", repo, store)
    assert stream(store, repo).entries[0]["runs"] == [{"run": run, "link": "trailer"}]


def test_a_commit_of_a_child_is_told_to_be_of_the_run_at_the_root(store: FileStore, repo: Path) -> None:
    root = record(store)
    commit(repo, f"second\n\nPlayhead-Run: {record_child(store, root)}")
    assert stream(store, repo).entries[0]["runs"] == [{"run": root, "link": "trailer"}]


def test_what_belongs_to_another_repository_is_not_in_it(
    store: FileStore, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(store, "here")
    other = make(tmp_path / "other")
    commit(other, "there")
    monkeypatch.chdir(other)
    record(store, "there too")
    report(store, "of there", "2026-01-02T03:04:05Z", commit=git_in(other, "rev-parse", "HEAD"))
    assert told(stream(store, repo)) == ["here", "first"]
    assert set(told(stream(store))) == {"there too", "there", "of there"}
    monkeypatch.chdir(tmp_path)
    assert set(told(stream(store))) == {"here", "there too", "of there"}  # all of the store, outside of any


def test_a_run_that_was_started_elsewhere_is_in_it_with_what_it_made_here(
    store: FileStore, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = record(store, "elsewhere")
    other = make(tmp_path / "other")
    for folder, name in ((repo, "here"), (other, "there")):
        commit(folder, f"{name}\n\nPlayhead-Run: {run}")
    store.root.rename(tmp_path / "store")
    store = FileStore(tmp_path / "store")
    assert told(stream(store, repo)) == ["here", "elsewhere", "first"]  # the message says so
    for folder in (repo, other):
        import_git("HEAD", folder, store)
    git_in(repo, "checkout", "-q", "--detach", "HEAD~1")
    report(store, "tests", "2222-01-02T03:04:05Z", run=run)
    assert told(stream(store, repo)) == ["tests", "here", "elsewhere", "first"]  # the run says so


def test_how_many_are_wanted_does_not_change_which_belong_here(
    store: FileStore, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git_in(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    commit(repo, "second")
    commit(repo, "third")
    monkeypatch.chdir(tmp_path / "tree")
    record(store, "in the tree")
    whole = told(stream(store, repo))
    assert whole[0] == "in the tree"
    assert [told(stream(store, repo, limit=n)) for n in (1, 2, 3)] == [whole[:n] for n in (1, 2, 3)]


def test_a_clone_of_the_same_origin_has_the_runs_too(store: FileStore, repo: Path, tmp_path: Path) -> None:
    git_in(repo, "remote", "add", "origin", "https://ada:secret@x.test/repo.git")
    record(store, "here")
    git_in(tmp_path, "clone", "-q", str(repo), "clone")
    git_in(tmp_path / "clone", "remote", "set-url", "origin", "https://x.test/repo.git")
    git_in(tmp_path / "clone", "checkout", "-q", "--orphan", "new")
    commit(tmp_path / "clone", "unrelated")
    assert set(told(stream(store, tmp_path / "clone"))) == {"here", "unrelated"}


def test_runs_without_a_word_on_git_count_where_the_store_lies_in_the_repository(
    store: FileStore, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYHEAD_GIT", "0")
    record(store, "silent")
    assert "silent" in told(stream(store, repo))
    shutil.move(store.root, tmp_path / "elsewhere")
    assert "silent" not in told(stream(FileStore(tmp_path / "elsewhere"), repo))


def test_parts_of_other_runs_replays_and_imports_are_no_entries(store: FileStore, repo: Path) -> None:
    for mode in ("child", "exact", "step", "import", "fork"):
        with Record(mode, store=store, origin={"run": "run_x", "mode": mode}, capture=False) as run:
            run.record("ci.reported", {"job": f"ci of {mode}", "result": "success"})
    assert set(told(stream(store, repo))) == {"fork", "ci of fork", "ci of import", "first"}


def test_a_step_stands_alone_only_where_nothing_tells_of_its_job(store: FileStore, repo: Path) -> None:
    with playhead.record("agent", store=store, capture=False) as run:
        run.record("ci.reported", {"job": "build", "step": "compile", "result": "failure"})
        run.record("ci.reported", {"job": "lint", "step": "ruff"})
        run.record("ci.reported", {"job": "lint", "result": 5, "counts": "many"})
    steps = {(entry["job"], entry["step"]) for entry in stream(store, repo).entries if entry["type"] == "ci"}
    assert steps == {("build", "compile"), ("lint", None)}


def test_commits_that_only_runs_know_of_are_there_too(
    store: FileStore, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with playhead.record("maker", store=store, capture=False):
        commit(repo, "thrown away")
    git_in(repo, "reset", "-q", "--hard", "HEAD~1")
    assert "thrown away" in told(stream(store, repo))
    import_git("HEAD", repo, store, make_run=True)
    monkeypatch.chdir(tmp_path)
    found = stream(store)
    assert told(found) == ["thrown away", "maker", "first"]
    assert found.entries[0]["files"] is None
    assert found.entries[2]["runs"] == [{"run": found.entries[1]["run"], "link": "started_from"}]


def test_a_commit_that_git_does_not_have_any_more_keeps_its_lines_and_its_place(store: FileStore, repo: Path) -> None:
    at = {f"GIT_{role}_DATE": "2031-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    run = record(store)
    commit(repo, "kept", at)
    commit(repo, f"dropped\n\nPlayhead-Run: {run}", at, b="1\n2\n3\n")
    import_git("HEAD", repo, store)
    git_in(repo, "reset", "-q", "--hard", "HEAD~1")
    dropped, kept, *_ = stream(store, repo).entries
    assert (dropped["subject"], dropped["files"], dropped["added"], dropped["removed"]) == ("dropped", 1, 3, 0)
    assert kept["subject"] == "kept"


def test_commits_of_one_second_are_the_newest_first_outside_of_the_repository_too(
    store: FileStore, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = {f"GIT_{role}_DATE": "2031-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    for name in ("second", "third", "fourth"):
        commit(repo, name, at)
    import_git("HEAD", repo, store, make_run=True)
    inside = told(stream(store, repo))
    monkeypatch.chdir(tmp_path)
    assert told(stream(store)) == inside == ["fourth", "third", "second", "first"]


def test_only_what_happened_since_and_at_most_so_many(store: FileStore, repo: Path) -> None:
    old = {f"GIT_{role}_DATE": "2001-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    commit(repo, "old", old)
    run = record(store)
    report(store, "late", "2222-01-02T03:04:05Z", run=run)
    assert set(told(stream(store, repo))) == {"late", "agent", "first", "old"}
    assert set(told(stream(store, repo, since_us=1_000_000_000_000_000))) == {"late", "agent", "first"}
    assert told(stream(store, repo, limit=1)) == ["late"]


def test_where_git_does_not_answer_what_runs_recorded_is_shown(
    store: FileStore, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with playhead.record("maker", store=store, capture=False):
        commit(repo, "made")
    monkeypatch.setenv("PATH", "")
    found = stream(store, repo)
    assert found.problem is not None
    assert "git could not be started" in found.problem
    assert told(found) == ["made", "maker"]


def test_a_folder_without_a_repository_that_was_named_is_a_usage_error(store: FileStore, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no git repository"):
        stream(store, tmp_path)
