from __future__ import annotations

import json
from typing import Any

import pytest
from tests.ingest.actions import SETUP, TESTS, jobs_json, lines, logs_zip, zipped

from playhead.errors import BadImport
from playhead.ingest import actions_jobs, actions_log

SHA = "a" * 40


def told(document: Any) -> actions_jobs.Told:
    return actions_jobs.read(json.dumps(document).encode())


def test_what_github_says_counts_before_what_the_log_tells() -> None:
    found = told(jobs_json(SHA))
    assert (found.commit, found.ci["run_id"], found.ci["attempt"], found.ci["workflow"]) == (SHA, "99123", "2", "CI")
    build, lint, deploy = actions_jobs.apply(actions_log.read(logs_zip(), "x"), found).jobs
    assert (build.name, build.result, build.result_from) == ("build / call", "failure", "api")
    assert [(step.number, step.name, step.result, bool(step.log)) for step in build.steps] == [
        (1, "Set up job", "success", True), (2, "Run pytest", "failure", True), (3, "Upload", "skipped", False),
        (10, "Complete job", "success", True),
    ]  # fmt: skip
    assert (lint.result, deploy.name, deploy.result, deploy.log) == ("success", "deploy", "skipped", "")
    event = actions_log.events(actions_log.Logs([build]), found.ci)[0]
    assert event.ci == {**found.ci, "url": "https://github.com/o/r/actions/runs/99123/job/1"}


def test_the_form_of_gh_is_read_too() -> None:
    steps = [{"name": "Run pytest", "number": 4, "conclusion": "success", "startedAt": "2026-01-02T03:01:00Z"}]
    job = {
        "name": "test",
        "databaseId": 5,
        "conclusion": "success",
        "completedAt": "2026-01-02T03:09:00Z",
        "steps": steps,
    }
    found = told({"databaseId": 77, "headSha": SHA, "attempt": 1, "jobs": [job]})
    assert (found.ci["run_id"], found.commit) == ("77", SHA)
    # The log of one job does not say whose it is; its steps are found by their names.
    (only,) = actions_jobs.apply(actions_log.read((SETUP + TESTS).encode(), "download"), found).jobs
    assert (only.name, only.result, only.finished) == ("test", "success", "2026-01-02T03:09:00Z")
    assert [(step.number, step.result, step.started) for step in only.steps] == [(4, "success", "2026-01-02T03:01:00Z")]


def test_a_long_name_is_found_by_what_its_file_has_of_it() -> None:
    name = "a" * 80 + " (😅, x / y)" + "b" * 40
    logs = actions_log.Logs([actions_log.Job(name="a" * 80 + " (😅, x  y"), actions_log.Job(name="other")])
    found = told({"jobs": [{"name": name, "conclusion": "success"}, {"name": "other", "conclusion": "failure"}]})
    assert [(job.name, job.result) for job in actions_jobs.apply(logs, found).jobs] == [
        (name, "success"), ("other", "failure"),
    ]  # fmt: skip


def test_jobs_of_one_name_are_told_apart_as_their_files_are() -> None:
    bad, good = lines(0, "##[error]Process completed with exit code 2."), lines(1, "fine")
    logs = actions_log.read(zipped({"1_build (1).txt": good, "0_build.txt": bad}), "x")
    said = [("build", "failure"), ("build (1)", "skipped"), ("build", "success"), ("build", "cancelled")]
    found = told({"jobs": [{"name": name, "conclusion": word} for name, word in said]})
    by_name = {job.name: (job.result, job.log) for job in actions_jobs.apply(logs, found).jobs}
    assert {name: result for name, (result, _) in by_name.items()} == {
        "build": "failure", "build (1)": "skipped", "build (2)": "success", "build (3)": "cancelled",
    }  # fmt: skip
    del found.jobs[1]
    by_name = {job.name: (job.result, job.log) for job in actions_jobs.apply(logs, found).jobs}
    assert {name: result for name, (result, _) in by_name.items()} == {
        "build": "failure", "build (1)": "success", "build (2)": "cancelled",
    }  # fmt: skip
    assert ("exit code 2" in by_name["build"][1], "fine" in by_name["build (1)"][1]) == (True, True)


def test_another_attempt_of_a_job_has_its_name() -> None:
    jobs = [{"name": "build", "conclusion": word, "run_attempt": n} for n, word in ((1, "failure"), (2, "success"))]
    logs = actions_log.Logs([])
    assert [job.name for job in actions_jobs.apply(logs, told({"jobs": jobs})).jobs] == ["build", "build"]


def test_the_log_of_one_job_is_not_taken_for_that_of_another() -> None:
    found = told({"jobs": [{"name": "lint", "conclusion": "success"}]})
    for data in (
        zipped({"0_test.txt": TESTS}),
        "".join(f"test\tRun\t{line}\n" for line in TESTS.splitlines()).encode(),
    ):
        jobs = actions_jobs.apply(actions_log.read(data, "lint"), found).jobs
        assert {job.name: (job.result, job.result_from) for job in jobs} == {
            "test": ("failure", "log"), "lint": ("success", "api"),
        }  # fmt: skip


@pytest.mark.parametrize("document", [[], {"jobs": []}, [{"jobs": []}]])
def test_a_list_without_jobs_is_refused(document: Any) -> None:
    with pytest.raises(BadImport, match="there is no job in it"):
        told(document)


def test_a_conclusion_that_is_no_word_is_refused() -> None:
    for job in ({"name": "a", "conclusion": 7}, {"name": "b", "steps": [{"name": "a", "conclusion": False}]}):
        with pytest.raises(BadImport, match="the conclusion of 'a' is no word"):
            told({"jobs": [job]})


@pytest.mark.parametrize("document", [{}, 5, {"jobs": 5}, {"jobs": [5]}, [{"jobs": []}, 5], None])
def test_what_is_no_list_of_jobs_is_refused(document: Any) -> None:
    with pytest.raises(BadImport, match="no list of jobs"):
        told(document)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(BadImport, match="no JSON"):
        actions_jobs.read(b"{")


def test_fields_of_the_wrong_form_are_passed_over() -> None:
    found = told({"jobs": [{"name": 5, "conclusion": None, "steps": [5, {"number": "x", "name": None}], "run_id": []}]})
    (job,) = found.jobs
    assert (job.name, job.result, [(step.name, step.number) for step in job.steps]) == (
        "5",
        "unknown",
        [("(no name)", None)],
    )
