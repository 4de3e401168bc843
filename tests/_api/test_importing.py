from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests._api.conftest import record, record_child
from tests.ingest.actions import jobs_json, lines, logs_zip, zipped
from tests.repositories import commit, git_in

import playhead
from playhead import _limits
from playhead._api import importing, importing_git, linking
from playhead._api.importing import Imported
from playhead._api.stream import stream
from playhead.capture.record import Record
from playhead.errors import BadImport, UsageError
from playhead.ingest import actions_jobs
from playhead.store.files import FileStore

XML = b"""<testsuite name="unit" timestamp="2026-01-02T03:04:05Z"><testcase classname="t" name="ok"/>
<testcase classname="t" name="bad"><failure message="no">trace</failure></testcase></testsuite>"""
GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "77", "GITHUB_JOB": "tests"}


def junit(store: FileStore, data: bytes = XML, *, environ: dict[str, str] | None = None, **named: Any) -> Imported:
    options = {"run": None, "commit": None, "ci_run": None, "repo": None, **named}
    attach_only = options.pop("attach_only", False)
    found = importing.about(**options, store=store, environ=environ or {})
    return importing.import_junit([("out/report.xml", data)], found, store, attach_only=attach_only)[0]


def reports(store: FileStore, run: str) -> list[dict[str, Any]]:
    return [event.data for event in playhead.load(run, store.root).events() if event.kind == "ci.reported"]


def test_results_go_to_the_run_that_made_the_commit_and_the_chain_stays_whole(store: FileStore, repo: Path) -> None:
    started_from = record(store)
    with playhead.record("maker", store=store, capture=False) as maker:
        sha = commit(repo, "made by the run", b="x\n")
    assert maker.id is not None
    (placed,) = junit(store).runs
    assert (placed.run, placed.link, placed.made, placed.added) == (maker.id, "committed", False, 2)
    whole, bad = reports(store, maker.id)
    assert (whole["result"], whole["counts"], whole["commit"]) == ("failure", {"failed": 1, "passed": 1}, sha)
    assert (bad["test"]["text"], bad["link"], "dirty" in bad) == ("trace", "committed", False)
    run = playhead.load(maker.id, store.root)
    assert run.artifact("report.xml") == XML
    verified = run.verify(deep=True)
    assert (verified.integrity.verdict, verified.completeness.verdict) == ("intact", "complete")
    assert run.readiness().replayable
    assert reports(store, started_from) == []


def test_the_same_results_are_added_once_and_others_are(store: FileStore) -> None:
    run = record(store)
    assert [(one.added, one.known) for one in junit(store).runs] == [(2, 0)]
    before = len(list(playhead.load(run, store.root).events()))
    assert [(one.added, one.known) for one in junit(store).runs] == [(0, 2)]
    assert len(list(playhead.load(run, store.root).events())) == before
    (again,) = junit(store, XML.replace(b'"no"', b'"other"')).runs
    assert (again.run, again.added, again.known) == (run, 2, 0)


def test_the_run_of_ci_counts_before_the_commit(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)
    in_ci = record(store)
    for name in GITHUB:
        monkeypatch.delenv(name)
    record(store)  # started from the same commit
    (placed,) = junit(store, environ=GITHUB).runs
    assert (placed.run, placed.link) == (in_ci, "ci_run")
    told = reports(store, in_ci)[0]
    assert (told["job"], told["ci"]["run_id"], told["ci"]["provider"]) == ("tests", "77", "github-actions")
    assert [one.run for one in junit(store, ci_run="77").runs] == [in_ci]


def test_results_of_a_pull_request_go_to_the_run_that_made_its_head(store: FileStore, repo: Path) -> None:
    git_in(repo, "checkout", "-q", "-b", "request")
    with playhead.record("maker", store=store, capture=False) as maker:
        head = commit(repo, "made")
    git_in(repo, "checkout", "-q", "--detach", "main")
    git_in(repo, "merge", "-q", "--no-ff", "--no-edit", "request")
    event = repo / ".playhead" / "event.json"
    event.write_text(json.dumps({"pull_request": {"head": {"sha": head}}}))
    named = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(event)}
    (placed,) = junit(store, environ={**GITHUB, **named, "GITHUB_SHA": git_in(repo, "rev-parse", "HEAD")}).runs
    assert (placed.run, placed.link, reports(store, placed.run)[0]["commit"]) == (maker.id, "committed", head)


def test_runs_of_ci_with_the_same_number_are_told_apart(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    gitlab = {"GITLAB_CI": "true", "CI_PIPELINE_ID": GITHUB["GITHUB_RUN_ID"]}
    jenkins = [{"JENKINS_URL": "x", "BUILD_NUMBER": "12", "BUILD_TAG": f"jenkins-{job}-12"} for job in "ab"]
    made = [junit(store, environ=environ).runs[0] for environ in (GITHUB, gitlab, *jenkins)]
    assert [one.made for one in made] == [True] * 4
    again = [junit(store, environ=environ).runs[0] for environ in (GITHUB, gitlab, *jenkins)]
    assert [(one.run, one.added) for one in again] == [(one.run, 0) for one in made]


def test_a_run_that_is_named_counts_before_all_else(store: FileStore) -> None:
    run = record(store)
    record(store)
    (placed,) = junit(store, run=run).runs
    assert (placed.run, placed.link) == (run, "named")
    with pytest.raises(UsageError, match="is not in"):
        junit(FileStore(store.root.parent / "other"), run=str(store.folder(run)))


def test_a_commit_that_names_a_run_belongs_to_it_without_an_import_of_commits(store: FileStore, repo: Path) -> None:
    run = record(store)
    commit(repo, f"later\n\nPlayhead-Run: {run}")
    assert [(one.run, one.link) for one in junit(store).runs] == [(run, "trailer")]
    assert [one.run for one in junit(store, commit="HEAD").runs] == [run]


def test_a_commit_that_names_a_child_belongs_to_the_run_at_the_root(store: FileStore, repo: Path) -> None:
    root = record(store)
    grandchild = record_child(store, record_child(store, root))
    record(store)
    commit(repo, f"later\n\nPlayhead-Run: {grandchild}")
    assert [(one.run, one.link) for one in junit(store).runs] == [(root, "trailer")]
    orphan = record_child(store, "run_of_another_store")
    commit(repo, f"later still\n\nPlayhead-Run: {orphan}")
    assert [one.made for one in junit(store).runs] == [True]


def test_the_link_says_how_a_run_and_a_commit_belong_together(store: FileStore, repo: Path) -> None:
    noted = record(store)
    with playhead.record("maker", store=store, capture=False) as maker:
        sha = commit(repo, "made by the run")
    assert linking.link(noted, sha, repo).added
    links = {noted: "note", str(maker.id): "committed"}
    assert {one.run: one.link for one in junit(store).runs} == links
    importing_git.import_git("HEAD", repo, store)  # now the run itself has it, too
    other = XML.replace(b'"no"', b'"other"')
    assert {one.run: one.link for one in junit(store, other).runs} == links
    assert [told["link"] for told in reports(store, noted)] == ["note"] * 4


def test_where_no_run_matches_one_is_made_and_found_again(store: FileStore, repo: Path) -> None:
    (placed,) = junit(store).runs
    assert (placed.made, placed.added, placed.link) == (True, 2, None)
    run = playhead.load(placed.run, store.root)
    assert (run.name, run.status) == ("ci", "error")
    started = next(iter(run.events())).data
    assert started["origin"] == {"mode": "import", "source": "junit"}
    assert started["git"]["commit"] == git_in(repo, "rev-parse", "HEAD")
    assert run.verify(deep=True).completeness.verdict == "complete"
    (again,) = junit(store).runs
    assert (again.run, again.made, again.added, again.known) == (placed.run, False, 0, 2)
    (other,) = junit(store, XML.replace(b"unit", b"more")).runs
    assert (other.run, other.made, other.added) == (placed.run, False, 2)


def test_a_run_whose_import_was_killed_is_finished_by_the_next(
    store: FileStore, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    # Both of a run that is made, and of one that was reopened, since more was imported.
    for xml in (XML, XML.replace(b'"no"', b'"other"')):
        with monkeypatch.context() as patched:
            patched.setattr("playhead._api.importing.finish", killed)
            with pytest.raises(Killed):
                junit(store, xml)
        (placed,) = junit(store, xml).runs
        run = playhead.load(placed.run, store.root)
        assert (placed.made, placed.added, placed.known, run.status) == (False, 0, 2, "error")
        verified = run.verify(deep=True)
        assert (verified.integrity.verdict, verified.completeness.verdict) == ("intact", "complete")
        lines = len(list(run.lines()))
        assert [(one.added, one.known) for one in junit(store, xml).runs] == [(0, 2)]
        assert len(list(playhead.load(placed.run, store.root).lines())) == lines


def test_without_commit_and_ci_the_results_themselves_tell_which_run_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore(tmp_path / ".playhead")
    (first,) = junit(store).runs
    (again,) = junit(store).runs
    (other,) = junit(store, XML.replace(b"unit", b"more")).runs
    assert (again.run, again.added) == (first.run, 0)
    assert other.made
    assert other.run != first.run


def test_attach_only_makes_no_run(store: FileStore) -> None:
    assert junit(store, attach_only=True).runs == []
    assert list(store.runs()) == []


def test_of_many_runs_the_newest_get_it_and_the_rest_is_counted(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_limits, "IMPORT_RUNS_MAX", 2)
    runs = [record(store) for _ in range(3)]
    imported = junit(store)
    assert sorted(one.run for one in imported.runs) == runs[1:]
    assert ({one.link for one in imported.runs}, imported.left_out) == ({"started_from"}, 1)


def test_a_test_that_names_a_run_is_added_to_that_run_alone(store: FileStore, repo: Path) -> None:
    about_it = record(store)
    commit(repo, "second", b="x\n")
    xml = XML.replace(
        b'name="ok"/>',
        f'name="ok"><properties><property name="playhead.run_id" value="{about_it}"/>'
        f'<property name="x" value="run_123"/></properties></testcase>'.encode(),
    )
    made, by_name = junit(store, xml).runs
    assert (made.made, by_name.run, by_name.link, by_name.added) == (True, about_it, "property", 1)
    (told,) = reports(store, about_it)
    assert (told["test"]["name"], told["result"]) == ("ok", "success")
    assert [one.added for one in junit(store, xml).runs] == [0, 0]


def test_changes_that_are_in_no_commit_are_said(store: FileStore, repo: Path) -> None:
    run = record(store)
    (repo / "a.py").write_text("changed\n")
    junit(store)
    assert {told["dirty"] for told in reports(store, run)} == {True}


def test_replays_and_children_get_nothing(store: FileStore) -> None:
    with Record("again", store=store, origin={"run": "run_x", "mode": "exact"}, capture=False) as replay:
        pass
    (placed,) = junit(store).runs
    assert placed.made
    assert placed.run != replay.id


def test_secrets_are_redacted_in_results_logs_and_files(store: FileStore) -> None:
    run = record(store)
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    junit(store, XML.replace(b"trace", f"token {secret}".encode()))
    log = zipped({"0_build.txt": lines(0, f"using {secret}")})
    found = importing.about(run=run, commit=None, ci_run=None, repo=None, store=store)
    importing.import_actions_log("logs.zip", log, found, store)
    assert importing.import_actions_log("logs.zip", log, found, store)[0].runs[0].added == 0
    assert len(reports(store, run)) == 3
    kept = [path for path in store.root.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert kept == []


def test_text_that_is_no_text_is_kept_and_known_again(store: FileStore) -> None:
    run = record(store)
    log = zipped({"0_b.txt": lines(0, "x").encode() + b"\xff\xfe not utf-8 \x00\n" + b"y" * 100_000})
    found = importing.about(run=run, commit=None, ci_run=None, repo=None, store=store)
    (first,) = importing.import_actions_log("l.zip", log, found, store)[0].runs
    (again,) = importing.import_actions_log("l.zip", log, found, store)[0].runs
    assert (first.added, again.added, again.known) == (1, 0, 1)
    assert playhead.verify(playhead.load(run, store.root)).integrity.verdict == "intact"


def test_logs_go_by_what_github_says_of_them(store: FileStore, repo: Path) -> None:
    with playhead.record("maker", store=store, capture=False) as maker:
        sha = commit(repo, "made", b="x\n")
    assert maker.id is not None
    told = actions_jobs.read(json.dumps(jobs_json(sha)).encode())
    found = importing.about(run=None, commit=None, ci_run=None, repo=None, store=store, told=told)
    imported, _ = importing.import_actions_log("logs.zip", logs_zip(), found, store, told=told)
    assert [(one.run, one.link, one.added) for one in imported.runs] == [(maker.id, "committed", 7)]
    job, setup, tests, *_ = reports(store, maker.id)
    assert (job["job"], job["result"], job["started"]) == ("build / call", "failure", "2026-01-02T03:00:00Z")
    assert (job["ci"]["run_id"], job["ci"]["attempt"], job["commit"]) == ("99123", "2", sha)
    assert (setup["result_from"], tests["step"], tests["number"]) == ("api", "Run pytest", 2)
    assert "##[error]Process completed" in tests["log"]


def test_nothing_is_guessed_for_a_log(store: FileStore) -> None:
    run = record(store)
    found = importing.about(run=None, commit=None, ci_run=None, repo=None, store=store)
    (placed,) = importing.import_actions_log("logs.zip", logs_zip(), found, store)[0].runs
    assert placed.made
    assert reports(store, run) == []


def test_of_several_files_none_is_imported_where_one_is_bad(store: FileStore) -> None:
    run = record(store)
    found = importing.about(run=run, commit=None, ci_run=None, repo=None, store=store)
    with pytest.raises(BadImport, match=r"b\.xml is not imported: it is no XML"):
        importing.import_junit([("a.xml", XML), ("b.xml", b"no")], found, store)
    assert reports(store, run) == []


@pytest.mark.parametrize("sha", ["nope", "HEAD..HEAD", "--all"])
def test_what_is_no_commit_is_a_usage_error(store: FileStore, sha: str) -> None:
    with pytest.raises(UsageError, match="not a commit"):
        junit(store, commit=sha)


def test_a_commit_that_was_not_fetched_is_taken_in_full(store: FileStore) -> None:
    (placed,) = junit(store, commit="b" * 40).runs
    assert reports(store, placed.run)[0]["commit"] == "b" * 40


def test_a_damaged_run_does_not_keep_the_others_from_theirs(store: FileStore) -> None:
    damaged, whole = record(store), record(store)
    timeline = store.folder(damaged) / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b'"run.finished"', b'"run.finisheD"'))
    by_run = {one.run: one for one in junit(store).runs}
    assert (by_run[whole].added, by_run[whole].problem) == (2, None)
    assert (by_run[damaged].added, "is damaged" in str(by_run[damaged].problem)) == (0, True)


@pytest.mark.parametrize(
    ("conclusions", "status", "result"),
    [
        (["success", "skipped"], "ok", "success"),
        (["success", "timed_out"], "error", "failure"),
        (["success", "cancelled"], "cancelled", "cancelled"),
        (["success", "never heard of"], "error", "unknown"),
        (["skipped"], "ok", "skipped"),
    ],
)
def test_a_run_that_is_made_says_what_all_jobs_come_to(
    store: FileStore, conclusions: list[str], status: str, result: str
) -> None:
    jobs = [{"name": f"job {n}", "conclusion": word} for n, word in enumerate(conclusions)]
    told = actions_jobs.read(json.dumps({"databaseId": 5, "jobs": jobs}).encode())
    log = zipped({f"{n}_job {n}.txt": lines(n, "x") for n in range(len(jobs))})
    found = importing.about(run=None, commit=None, ci_run=None, repo=None, store=store, told=told)
    (placed,) = importing.import_actions_log("logs.zip", log, found, store, told=told)[0].runs
    run = playhead.load("ci:5", store.root)
    assert (run.id, run.status) == (placed.run, status)
    assert [event.data["output"]["result"] for event in run.events() if event.kind == "run.finished"] == [result]


def test_a_run_that_is_made_of_results_ends_as_the_last_of_them_say(store: FileStore) -> None:
    def told(**jobs: str) -> str:
        said = json.dumps({"databaseId": 5, "jobs": [{"name": n, "conclusion": word} for n, word in jobs.items()]})
        github, log = actions_jobs.read(said.encode()), zipped({f"0_{n}.txt": lines(0, "x") for n in jobs})
        found = importing.about(run=None, commit=None, ci_run=None, repo=None, store=store, told=github)
        importing.import_actions_log("logs.zip", log, found, store, told=github)
        run = playhead.load("ci:5", store.root)
        verified = run.verify(deep=True)
        assert (verified.integrity.verdict, verified.completeness.verdict) == ("intact", "complete")
        error = [event.data.get("error") for event in run.events() if event.kind == "run.finished"][-1]
        return f"{run.status}: {error['message']}" if error else str(run.status)

    assert told(build="never heard of") == "error: what was imported does not say how it ended"
    assert told(build="success") == "ok"
    assert told(lint="timed_out") == "error: lint: timed_out"
    assert told(lint="success") == "ok"
    assert told(lint="success") == "ok"
    # Each file of tests counts, whichever came first.
    junit(store, ci_run="5")
    assert playhead.load("ci:5", store.root).status == "error"
    assert told(lint="success", build="cancelled").startswith("error: ")


def test_the_error_of_a_run_that_is_made_is_that_of_a_job_that_failed(store: FileStore) -> None:
    failed = {"name": "step", "conclusion": "failure", "number": 1}
    jobs = [{"name": "build", "conclusion": "success", "steps": [failed]}, {"name": "lint", "conclusion": "timed_out"}]
    told = actions_jobs.read(json.dumps({"databaseId": 5, "jobs": jobs}).encode())
    log = zipped({"0_build.txt": lines(0, "##[error]exit code 1"), "1_lint.txt": lines(0, "x")})
    found = importing.about(run=None, commit=None, ci_run=None, repo=None, store=store, told=told)
    importing.import_actions_log("logs.zip", log, found, store, told=told)
    last = [event for event in playhead.load("ci:5", store.root).events() if event.kind == "run.finished"][-1]
    assert last.data["error"] == {"type": "CiFailed", "message": "lint: timed_out"}


def test_a_job_that_failed_is_not_hidden_by_another_of_its_name(store: FileStore, repo: Path) -> None:
    jobs = [{"name": "build", "conclusion": word} for word in ("failure", "success")]
    told = actions_jobs.read(json.dumps({"databaseId": 5, "jobs": jobs, "headSha": "b" * 40}).encode())
    log = zipped({"0_build.txt": lines(0, "x"), "1_build (1).txt": lines(1, "y")})
    found = importing.about(run=None, commit=None, ci_run=None, repo=repo, store=store, told=told)
    importing.import_actions_log("logs.zip", log, found, store, told=told)
    assert playhead.load("ci:5", store.root).status == "error"
    said = {entry["job"]: entry["result"] for entry in stream(store, repo).entries if entry["type"] == "ci"}
    assert said == {"build": "failure", "build (1)": "success"}


def test_results_of_another_repository_are_not_said_to_be_of_this_one(store: FileStore, repo: Path) -> None:
    (placed,) = junit(store, commit="b" * 40).runs
    assert next(iter(playhead.load(placed.run, store.root).events())).data["git"] == {"commit": "b" * 40}
    (placed,) = junit(store, commit="c" * 40, repo=repo).runs
    assert next(iter(playhead.load(placed.run, store.root).events())).data["git"]["root"] == str(repo)


def test_imports_of_the_same_results_at_the_same_moment_add_them_once(store: FileStore) -> None:
    start = threading.Barrier(4)

    def at_once(_: int) -> Imported:
        start.wait()
        return junit(store, ci_run="4711")

    with ThreadPoolExecutor(4) as pool:
        imports = list(pool.map(at_once, range(4)))
    placed = [one for imported in imports for one in imported.runs]
    assert len({one.run for one in placed}) == 1
    assert sorted((one.made, bool(one.added)) for one in placed) == [(False, False)] * 3 + [(True, True)]


@pytest.mark.parametrize("named", [{"commit": ""}, {"run": " "}, {"ci_run": ""}])
def test_an_empty_name_is_refused_and_does_not_mean_none(store: FileStore, repo: Path, named: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="names nothing"):
        junit(store, repo=repo, **named)


def test_several_commits_are_not_taken_for_the_newest_of_them(store: FileStore, repo: Path) -> None:
    commit(repo, "another")
    with pytest.raises(UsageError, match="not a commit, but a range"):
        junit(store, repo=repo, commit="HEAD~1..HEAD")
