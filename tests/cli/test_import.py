from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.actions import jobs_json, logs_zip
from tests.repositories import commit, git_in, make

from playhead._api import linking
from playhead.cli.main import parser_of

Ask = Callable[..., Any]
XML = (
    '<testsuite name="unit"><testcase classname="t" name="bad"><failure message="no \x1b[31m"/></testcase></testsuite>'
)


@pytest.fixture
def report(tmp_path: Path) -> str:
    (tmp_path / "report.xml").write_text(XML.replace("\x1b", "&#9;"))
    return "report.xml"


def test_junit_says_what_failed_and_where_it_was_recorded(sample: str, report: str, ask: Ask) -> None:
    said = ask("import", "junit", report, "--run", sample)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "1 test: 1 failed",
        "  failed  t::bad: no  [31m",
        f"recorded in {sample}: as you said",
    ]
    again = ask("import", "junit", report, "--run", sample, "--json")
    assert again.json["runs"] == [
        {"run": sample, "link": "named", "made": False, "added": 0, "known": 2, "problem": None}
    ]
    assert (again.json["tests"], again.json["counts"], again.json["result"]) == (1, {"failed": 1}, "failure")
    assert "✗ ci unit t::bad · failure" in ask("show", sample).out


def test_a_run_that_only_a_note_names_is_not_said_to_have_made_the_commit(
    sample: str, report: str, tmp_path: Path, ask: Ask
) -> None:
    repo = make(tmp_path / "repo")
    sha = commit(repo, "later")
    ask("log", "--link", sample, sha, "--repo", str(repo))
    said = ask("import", "junit", report, "--commit", sha, "--repo", str(repo))
    assert said.out.splitlines()[-1] == f"recorded in {sample}, for commit {sha[:10]} (a note names this run)"


def test_options_may_stand_before_the_command_too(sample: str, report: str, ask: Ask, store: Path) -> None:
    said = ask("--store", str(store), "--json", "import", "junit", report, "--run", sample)
    assert said.json["runs"][0]["run"] == sample


def test_a_run_is_made_unless_none_is_wanted(store: Path, report: str, ask: Ask, monkeypatch: Any) -> None:
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    said = ask("import", "junit", report, "--attach-only")
    assert (said.code, said.out.splitlines()[-1]) == (1, "no run belongs to it, so nothing was recorded")
    said = ask("import", "junit", report)
    assert (said.code, "recorded in a new run run_" in said.out) == (0, True)


def test_logs_are_told_by_job(sample: str, tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "logs.zip").write_bytes(logs_zip())
    (tmp_path / "jobs.json").write_text(json.dumps(jobs_json("a" * 40)))
    said = ask("import", "actions-log", "logs.zip", "--run", sample)
    assert said.out.splitlines()[:3] == [
        "build  call: failure (read off the log), 3 steps",
        "lint: unknown (read off the log), 0 steps",
        "no logs: readme.md",
    ]
    told = ask("import", "actions-log", "logs.zip", "--jobs", "jobs.json", "--json").json
    assert (told["commit"], told["ci_run"], told["runs"][0]["made"]) == ("a" * 40, "99123", True)
    assert [(job["job"], job["result"], job["result_from"]) for job in told["jobs"]] == [
        ("build / call", "failure", "api"), ("lint", "success", "api"), ("deploy", "skipped", "api"),
    ]  # fmt: skip
    assert ask("show", "ci:99123", "--json").code == 0  # by the id that CI gave it


def test_commits_are_imported_and_the_hook_installed(store: Path, tmp_path: Path, ask: Ask) -> None:
    make(tmp_path)
    sha = commit(tmp_path, "first", **{".gitignore": ".playhead\n"})
    assert ask("import", "git", "--hook", "status").out.endswith("is not there: commits name no runs\n")
    assert ask("import", "git", "--hook", "install", "--json").json["state"] == "installed"
    assert ask("import", "git", "--hook", "print").out == linking.LINES
    assert ask("import", "git", "--hook", "remove", "--json").json["state"] == "none"
    said = ask("import", "git")
    assert said.out.splitlines() == [
        "1 commit of HEAD",
        "1 commit of no run (`--make-run` makes a run)",
    ]
    told = ask("import", "git", "HEAD", "--make-run", "--json").json
    assert (told["commits"], told["attached"]) == (1, [{"run": told["made"], "commit": sha, "link": "range"}])
    assert git_in(tmp_path, "status", "--porcelain") == ""
    before = ["1 commit of HEAD", "1 commit of no run, recorded before"]
    for more in ((), ("--make-run",)):
        assert ask("import", "git", *more).out.splitlines() == before
    commit(tmp_path, "second", a="x\n")
    told = ask("import", "git", "--json").json
    assert (told["unlinked"], told["new"]) == (2, 1)
    assert ask("import", "git").out.splitlines()[1:] == [
        "1 commit of no run (`--make-run` makes a run)",
        "1 commit of no run, recorded before",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        ((), 2, "WHAT"),
        (("svn",), 2, "invalid choice"),
        (("junit",), 2, "FILE"),
        (("junit", "nothere.xml"), 2, "cannot read nothere.xml"),
        (("junit", "."), 2, "cannot read"),
        (("junit", "bad.xml"), 3, "bad.xml is not imported: it is no XML"),
        (("junit", "report.xml", "--run", "nope"), 2, "no run answers"),
        (("junit", "report.xml", "--repo", "/nowhere"), 2, "no git repository"),
        (("junit", "report.xml", "--commit", "abc"), 2, "not a commit"),
        (("actions-log", "bad.xml"), 3, "no log of GitHub Actions"),
        (("actions-log", "report.xml", "--jobs", "bad.xml"), 3, "bad.xml is not imported: it is no JSON"),
        (("git", "--limit", "0"), 2, "--limit"),
        (("git",), 2, "no git repository"),
        (("git", "--hook", "now"), 2, "invalid choice"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_one_line_with_the_right_code(
    store: Path, report: str, ask: Ask, arguments: tuple[str, ...], code: int, why: str
) -> None:
    Path("bad.xml").write_text("<no")
    said = ask("import", *arguments)
    assert (said.code, said.out) == (code, "")
    assert why in said.err
    assert "Traceback" not in said.err
    if arguments:
        assert ask("import", *arguments, "--json").json["error"]["message"]
    assert not (store / "runs").exists()


def test_nothing_is_imported_where_recording_is_switched_off(
    store: Path, report: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYHEAD_DISABLED", "1")
    assert ask("import", "junit", report).code == 2


def test_a_file_may_come_from_stdin(sample: str, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").write_text('<testsuite name="piped"><testcase name="a"/></testsuite>')
    with (tmp_path / "in").open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert ask("import", "junit", "-", "--run", sample).out.startswith("1 test: 1 passed")


@pytest.mark.parametrize("what", ["git", "junit", "actions-log"])
def test_each_part_has_help_of_its_own(what: str, ask: Ask) -> None:
    said = ask("import", what, "--help")
    assert said.code == 0
    assert f"usage: playhead import {what}" in said.out
    assert "--json" in said.out
    assert parser_of("import").epilog


def test_below_a_folder_with_runs_it_is_said_that_those_are_elsewhere(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAYHEAD_DIR", raising=False)
    (tmp_path / ".playhead" / "runs").mkdir(parents=True)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    Path("x.xml").write_text('<testsuite name="s"><testcase name="a"/></testsuite>')
    told = f"playhead: there are no runs here yet. There are runs in {tmp_path}/.playhead: add `--store {tmp_path}/.playhead`."
    assert ask("log").err.startswith(told)
    assert ask("import", "junit", "x.xml").err.startswith(told)
    assert "there are no runs" not in ask("import", "junit", "x.xml").err


def test_a_test_that_vanished_or_was_skipped_is_a_deviation_and_what_it_took_none(
    record: Any, store: Path, tmp_path: Path, ask: Ask
) -> None:
    def reported(name: str, took: float, tests: dict[str, str]) -> None:
        cases = "".join(
            f'<testcase classname="t" name="{one}" time="{took}">{end}</testcase>' for one, end in tests.items()
        )
        (tmp_path / "report.xml").write_text(f'<testsuite name="unit">{cases}</testsuite>')
        record(store, name)
        assert ask("import", "junit", "report.xml", "--run", name).code == 0

    passed = {f"test_{number:03}": "" for number in range(500)}  # so many are written as a blob
    reported("same", 0.1, passed)
    reported("later", 0.2, dict(reversed(passed.items())))
    reported("less", 0.1, {one: end for one, end in passed.items() if one != "test_007"})
    reported("skipped", 0.1, {**passed, "test_008": "<skipped/>"})

    def found(right: str) -> list[tuple[str, Any, Any]]:
        deviations = ask("diff", "same", right, "--only", "ci", "--json").json["deviations"]
        changes = [change for one in deviations for change in one["changes"]]
        return [(one["path"], one.get("left"), one.get("right")) for one in changes]

    assert found("later") == []
    assert found("less") == [("/counts/passed", 500, 499), ("/tests/t::test_007", "passed", None)]
    assert found("skipped") == [
        ("/counts/passed", 500, 499), ("/counts/skipped", None, 1), ("/tests/t::test_008", "passed", "skipped"),
    ]  # fmt: skip
