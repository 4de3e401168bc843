"""The whole way: a recorded run commits, CI reports, both are imported twice, and one stream tells of all of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ingest.actions import jobs_json, logs_zip
from tests.repositories import commit, git_in, make

import playhead
from playhead.cli.main import main

XML = '<testsuite name="pytest"><testcase name="ok"/><testcase name="bad"><failure message="1 == 2"/></testcase></testsuite>'


@pytest.fixture
def repo(tmp_path: Path, with_git: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "GITLAB_", "CI_")) or name == "CI":
            monkeypatch.delenv(name)
    folder = make(tmp_path / "project")
    commit(folder, "Begin", **{"login.py": "old\n", ".gitignore": ".playhead\n"})
    monkeypatch.chdir(folder)
    return folder


def test_runs_commits_and_ci_become_one_stream_and_every_run_stays_whole(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "git", "--hook", "install"]) == 0
    with playhead.record("fix-login", capture=False) as run:
        sha = commit(repo, "Fix the login", {"PLAYHEAD_RUN": str(run.id)}, **{"login.py": "new\n"})
        run.output = "fixed"
    assert git_in(repo, "log", "-1", "--format=%(trailers:key=Playhead-Run,valueonly)") == run.id
    rebased = commit(repo, f"Fix it again\n\nPlayhead-Run: {run.id}")

    (repo / "report.xml").write_text(XML)
    (repo / "logs.zip").write_bytes(logs_zip())
    (repo / "jobs.json").write_text(json.dumps(jobs_json(sha)))
    imports = (
        ["import", "git"],
        ["import", "junit", "report.xml", "--commit", sha],
        ["import", "actions-log", "logs.zip", "--jobs", "jobs.json"],
    )
    for arguments in imports:
        assert main(arguments) == 0
    before = [event.hash for event in playhead.load(str(run.id)).events()]
    for arguments in imports:
        assert main(arguments) == 0
    assert [event.hash for event in playhead.load(str(run.id)).events()] == before  # nothing twice

    capsys.readouterr()
    assert main(["log", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    times = [entry["time"] for entry in entries]  # of what says no time of its own, that of the import
    assert times == sorted(times, reverse=True)
    assert [(e["type"], e.get("job") or e.get("subject") or e["name"]) for e in entries] == [
        ("ci", "deploy"), ("ci", "pytest"), ("commit", "Fix it again"), ("commit", "Fix the login"),
        ("run", "fix-login"), ("commit", "Begin"), ("ci", "build / call"), ("ci", "lint"),
    ]  # fmt: skip
    by_sha = {entry["commit"]: entry for entry in entries if entry["type"] == "commit"}
    assert by_sha[sha]["runs"] == [{"run": run.id, "link": "trailer"}]
    assert by_sha[rebased]["runs"] == [{"run": run.id, "link": "trailer"}]
    assert {entry["commit"] for entry in entries if entry["type"] == "ci"} == {sha}
    assert {run_id for entry in entries if entry["type"] == "ci" for run_id in entry["runs"]} == {run.id}

    assert main(["verify", "--all", "--deep"]) == 0
    verified = playhead.load(str(run.id)).verify(deep=True)
    assert (verified.integrity.verdict, verified.completeness.verdict) == ("intact", "complete")
    assert playhead.load(str(run.id)).playback().payload == "fixed"
