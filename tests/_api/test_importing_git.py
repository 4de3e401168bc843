from __future__ import annotations

from pathlib import Path

import pytest
from tests._api.conftest import record, record_child
from tests.repositories import commit, git_in, make

import playhead
from playhead import _limits
from playhead._api import linking
from playhead._api.importing import about
from playhead._api.importing_git import GitImported, import_git
from playhead._api.stream import stream
from playhead.errors import BadImport, UsageError
from playhead.store.files import FileStore
from playhead.store.index import Index


def run_import(store: FileStore, repo: Path, revisions: str = "HEAD", **options: object) -> GitImported:
    return import_git(revisions, repo, store, **options)  # type: ignore[arg-type]


def committed(store: FileStore, run: str) -> list[dict[str, object]]:
    return [event.data for event in playhead.load(run, store.root).events() if event.kind == "git.committed"]


def test_a_commit_is_added_to_the_run_it_names_and_to_those_started_from_it(store: FileStore, repo: Path) -> None:
    run = record(store)
    named = commit(repo, f"named\n\nPlayhead-Run: {run}", b="x\ny\n")
    noted = commit(repo, "noted")
    git_in(repo, "notes", "--ref=playhead", "append", "-m", f"Playhead-Run: {run}")
    later = record(store)
    found = run_import(store, repo)
    first = git_in(repo, "rev-parse", "HEAD~2")
    assert {(one.run, one.commit, one.link) for one in found.attached} == {
        (run, first, "started_from"), (run, named, "trailer"), (run, noted, "note"), (later, noted, "started_from"),
    }  # fmt: skip
    told = committed(store, run)
    assert [each["link"] for each in told] == ["started_from", "trailer", "note"]  # in order of time
    assert told[1]["changes"] == [{"path": "b", "status": "A", "added": 2, "removed": 0}]
    assert (told[1]["committer"], told[1]["message"]) == ("Ada Löv", f"named\n\nPlayhead-Run: {run}")
    for each in (run, later):
        verified = playhead.load(each, store.root).verify(deep=True)
        assert (verified.integrity.verdict, verified.completeness.verdict) == ("intact", "complete")
    again = run_import(store, repo)
    assert (again.attached, again.known) == ([], 4)
    assert len(committed(store, run)) == 3


def test_only_what_a_run_made_counts_as_written_by_it(store: FileStore, repo: Path) -> None:
    run = record(store)
    commit(repo, f"made\n\nPlayhead-Run: {run}", b="x\n")
    run_import(store, repo)
    with Index(store.root) as index:
        rows = index.query("SELECT run, target FROM effects WHERE what = 'file.committed'")[1]
    assert rows == [(run, "b")]


def test_a_commit_that_names_a_child_is_added_to_the_run_at_the_root(store: FileStore, repo: Path) -> None:
    root = record(store)
    named = commit(repo, f"named\n\nPlayhead-Run: {record_child(store, root)}")
    found = run_import(store, repo, "HEAD~1..HEAD")
    assert [(one.run, one.commit, one.link) for one in found.attached] == [(root, named, "trailer")]
    assert found.not_here == []


def test_a_commit_that_a_run_recorded_itself_is_known(store: FileStore, repo: Path) -> None:
    with playhead.record("maker", store=store, capture=False) as maker:
        sha = commit(repo, f"made\n\nPlayhead-Run: {maker.id}")
    found = run_import(store, repo, "HEAD~1..HEAD")
    assert (found.attached, found.known, found.unlinked) == ([], 1, 0)
    assert [each["commit"] for each in committed(store, str(maker.id))] == [sha]


def test_a_commit_that_a_run_made_belongs_to_it_also_where_it_names_none(store: FileStore, repo: Path) -> None:
    with playhead.record("maker", store=store, capture=False):
        commit(repo, "made")
    found = run_import(store, repo, "HEAD~1..HEAD", make_run=True)
    assert (found.attached, found.known, found.unlinked, found.made) == ([], 1, 0, None)


def test_commits_of_no_run_become_one_run_where_that_is_wanted(store: FileStore, repo: Path) -> None:
    second = commit(repo, "second", b="x\n")
    assert run_import(store, repo).unlinked == 2
    assert list(store.runs()) == []
    found = run_import(store, repo, "main", make_run=True)
    assert found.made is not None
    run = playhead.load(found.made, store.root)
    assert (run.name, run.status) == ("git main", "ok")
    told = committed(store, found.made)
    assert [each["link"] for each in told] == ["range", "range"]
    assert told[1]["commit"] == second
    assert run_import(store, repo, "main", make_run=True).made is None
    third = commit(repo, "third")
    newer = run_import(store, repo, "main", make_run=True)
    assert [each["commit"] for each in committed(store, str(newer.made))] == [third]
    with playhead.record("later", store=store, capture=False):
        pass
    assert playhead.load("@last", store.root).name == "later"


def test_runs_that_are_elsewhere_and_those_still_running_are_said(store: FileStore, repo: Path) -> None:
    elsewhere = "run_01m7k9spd2eyx9twdc57j2zz2m"
    commit(repo, f"x\n\nPlayhead-Run: {elsewhere}")
    with playhead.record("open", store=store, capture=False) as run:
        commit(repo, f"y\n\nPlayhead-Run: {run.id}")
        found = run_import(store, repo, "HEAD~2..HEAD")
    assert (found.not_here, found.running, found.attached) == ([elsewhere], [run.id], [])


def test_of_many_commits_the_newest_are_looked_at(
    store: FileStore, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repo, "second")
    found = run_import(store, repo, limit=1)
    assert (found.commits, found.older) == (1, True)
    assert not run_import(store, repo, limit=2).older
    monkeypatch.setattr(_limits, "IMPORT_FILE_BYTES_MAX", 20)
    with pytest.raises(BadImport, match="git printed more than 20 bytes"):
        run_import(store, repo)


@pytest.mark.parametrize("revisions", ["nope", "--output=evil", "HEAD~9..HEAD"])
def test_what_is_no_range_is_a_usage_error(store: FileStore, repo: Path, revisions: str) -> None:
    with pytest.raises(UsageError, match="git cannot list"):
        run_import(store, repo, revisions)
    assert not (repo / "evil").exists()


def test_a_folder_without_a_repository_is_a_usage_error(store: FileStore, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no git repository"):
        run_import(store, tmp_path)


def test_a_damaged_run_does_not_keep_the_others_from_theirs(store: FileStore, repo: Path) -> None:
    damaged, whole = record(store), record(store)
    timeline = store.folder(damaged) / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b'"run.finished"', b'"run.finisheD"'))
    found = run_import(store, repo)
    assert [one.run for one in found.attached] == [whole]
    assert "is damaged" in found.problems[damaged]


def test_a_repository_without_a_working_tree_is_read_too(store: FileStore, repo: Path, tmp_path: Path) -> None:
    sha, bare = commit(repo, "first"), tmp_path / "bare.git"
    git_in(tmp_path, "clone", "-q", "--bare", str(repo), str(bare))
    for name in ("name", "email"):
        git_in(bare, "config", f"user.{name}", "ada@example.org")
    found = import_git("HEAD", bare, store, make_run=True)
    assert (found.repository, found.commits, found.attached[-1].commit) == (str(bare), 2, sha)
    assert sha in [entry["commit"] for entry in stream(store, bare).entries]
    assert linking.link(str(found.made), sha, bare).added
    assert about(run=None, commit=sha[:10], ci_run=None, repo=bare, store=store).commit == sha
    assert about(run=None, commit=None, ci_run=None, repo=bare, store=store, environ={}).commit is None


def test_a_partial_clone_is_read_as_far_as_it_goes(store: FileStore, repo: Path, tmp_path: Path) -> None:
    commit(repo, "first", first="one\n")
    sha = commit(repo, "second", first="two\n")
    git_in(repo, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git_in(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", repo.as_uri(), str(clone))
    found = run_import(store, clone, make_run=True)
    assert (found.partial, found.attached[-1].commit) == (True, sha)
    assert committed(store, str(found.made))[-1]["changes"] == [{"path": "first", "status": "M"}]
    (entry,) = [entry for entry in stream(store, clone).entries if entry["commit"] == sha]
    assert (entry["files"], entry["added"], entry["removed"]) == (1, None, None)
    assert run_import(store, repo).partial is False
    assert about(run=None, commit="HEAD", ci_run=None, repo=clone, store=store).commit == sha
    for name in ("name", "email"):
        git_in(clone, "config", f"user.{name}", "ada@example.org")
    assert linking.link(str(found.made), "HEAD", clone).added


def test_git_is_quoted_with_what_it_died_of_and_not_with_a_warning(store: FileStore, repo: Path) -> None:
    commit(repo, "first", file="one")
    blob = git_in(repo, "rev-parse", "HEAD:file")
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(UsageError, match=f"fatal: unable to read {blob}"):
        run_import(store, repo)


def test_a_time_that_a_commit_does_not_have_is_none(store: FileStore, repo: Path) -> None:
    tree = git_in(repo, "mktree", "--missing")
    raw = f"tree {tree}\nauthor A <a> 1 +0000\ncommitter <>\n\nodd\n"
    (repo / "raw").write_text(raw)
    sha = git_in(repo, "hash-object", "-t", "commit", "-w", "--literally", "raw")
    made = run_import(store, repo, sha, make_run=True).made
    (only,) = committed(store, str(made))
    assert (only["authored"], only.get("committed")) == ("1970-01-01T00:00:01+00:00", None)


def test_a_repository_without_a_commit_has_none(tmp_path: Path, store: FileStore) -> None:
    found = run_import(store, make(tmp_path / "new"))
    assert (found.commits, found.attached) == (0, [])


def test_the_commit_at_which_a_shallow_clone_ends_is_not_said_to_have_made_every_file(
    store: FileStore, repo: Path, tmp_path: Path
) -> None:
    run = record(store)
    named = commit(repo, f"named\n\nPlayhead-Run: {run}", b="x\n")
    later = commit(repo, f"later\n\nPlayhead-Run: {run}", c="y\n")
    git_in(repo, "clone", "-q", "--depth", "2", repo.as_uri(), str(tmp_path / "shallow"))
    found = run_import(store, tmp_path / "shallow")
    assert (found.commits, found.shallow) == (2, [named])
    ended, whole = committed(store, run)
    assert (ended["commit"], ended["shallow"], ended.get("files"), ended.get("parents")) == (named, True, None, None)
    assert (whole["commit"], whole.get("shallow"), whole["files"], whole["parents"]) == (later, None, ["c"], [named])
    with Index(store.root) as index:
        assert index.query("SELECT target FROM effects WHERE what = 'file.committed'")[1] == [("c",)]
