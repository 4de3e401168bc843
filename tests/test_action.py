from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import playhead

ROOT = Path(__file__).parent.parent
AGENT = """
import sys, playhead

@playhead.tool
def save(text):
    open("out.txt", "w").write(text)

with playhead.record("agent") as run:
    save(sys.argv[1])
    run.output = sys.argv[1]
"""


def act(folder: Path, command: str, **given: str) -> tuple[int, dict[str, str], str]:
    """Run what the action runs, and return its exit code, its outputs and what it said."""
    outputs, summary = folder / "outputs", folder / "summary"
    for file in (outputs, summary):
        file.write_text("")
    blank = dict.fromkeys(("BASELINE", "FAIL_ON", "IGNORE", "POLICY"), "")
    environment = {
        **os.environ, **blank, "COMMAND": command, "FAIL_ON_DIFF": "false", "PYTHON": sys.executable, "OUT": str(folder / "kept"),
        "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary), **given,
    }  # fmt: skip
    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / "action")],
        env=environment,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    found = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    return done.returncode, found, done.stdout + done.stderr + summary.read_text()


def test_the_action_records_audits_compares_and_reports(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    code, found, told = act(tmp_path, f"{sys.executable} agent.py one")
    assert code == 0, told
    assert Path(found["report"]).read_text().startswith("<!doctype html>")
    assert "## Playhead" in told
    sarif: dict[str, Any] = json.loads(Path(found["sarif"]).read_text())
    assert sarif["version"] == "2.1.0"
    baseline = tmp_path / "baseline.cassette"
    os.rename(found["cassette"], baseline)
    assert playhead.load(baseline).id == found["run"]
    code, found, told = act(
        tmp_path, f"{sys.executable} agent.py two", BASELINE=str(baseline), FAIL_ON="undeclared", FAIL_ON_DIFF="true"
    )
    assert code == 1
    assert "::error::the audit found something of: undeclared" in told
    assert "::error::the run differs from the baseline" in told
    assert "### Differences: the final output differs" in told


SHELL = ("bash", "-e", "-o", "pipefail", "-c")
CHILD = "import playhead; playhead.record('child').__enter__().output"
PARENT = f"""
import subprocess, sys, playhead
with playhead.record("parent"):
    open("out.txt", "w").write("x")
    subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
"""


def test_what_is_audited_is_what_was_recorded_and_not_the_last_python_that_it_started(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PARENT)
    found: dict[str, str] = {}
    for _ in range(2):  # in the same job, into the same folder
        before = found.get("run")
        code, found, told = act(tmp_path, f"{sys.executable} agent.py", FAIL_ON="write")
        assert (code, "::error::the audit found something of: write" in told) == (1, True), told
        assert found["run"] != before
        assert playhead.load(found["cassette"]).id == found["run"]
        assert playhead.load(found["run"], tmp_path / ".playhead").events().__next__().data.get("origin") is None
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == [
        "audit.sarif", "report.html", "report.md", "run.cassette",
    ]  # fmt: skip


def test_where_nothing_is_recorded_an_older_run_is_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    assert act(tmp_path, f"{sys.executable} agent.py one")[0] == 0
    code, found, told = act(tmp_path, f"{sys.executable} agent.py one", PLAYHEAD_DISABLED="1")
    assert (code, found, "::error::nothing was recorded" in told) == (1, {}, True), told


@pytest.mark.parametrize("given", [{"BASELINE": "nowhere.cassette"}, {"BASELINE": "agent.py"}])
def test_what_cannot_be_compared_fails_and_the_run_is_reported(tmp_path: Path, given: dict[str, str]) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    act(tmp_path, f"{sys.executable} agent.py one")
    code, found, told = act(tmp_path, f"{sys.executable} agent.py one", **given)
    assert (code, "::error::the run could not be compared with the baseline" in told) == (1, True), told
    assert Path(found["report"]).exists()
    assert found["run"] in (tmp_path / "kept" / "report.md").read_text()


def test_what_is_ignored_is_no_difference_in_the_report_either(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import playhead\nwith playhead.record('agent') as run: run.output = {'at': open('at.txt').read()}"
    )
    baseline, told = "", ""
    for at in ("one", "two"):
        (tmp_path / "at.txt").write_text(at)
        given = {"BASELINE": baseline, "FAIL_ON_DIFF": "true", "IGNORE": "/nothing\n\n/output/at\n"}
        code, found, told = act(tmp_path, f"{sys.executable} agent.py", **given)
        assert code == 0, told
        baseline = found["run"]
    assert "### Differences: no difference" in told


def test_a_baseline_by_name_is_the_run_before_and_not_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    for last, word in ((1, "one"), (0, "one"), (1, "two")):  # there is none before the first
        code, _, told = act(tmp_path, f"{sys.executable} agent.py {word}", BASELINE="@last", FAIL_ON_DIFF="true",
                            IGNORE="/input/*")  # fmt: skip
        assert code == last, told
    assert "::error::the run differs from the baseline" in told


def test_the_cassette_that_the_last_one_left_is_a_baseline_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    for last, word in ((0, "one"), (1, "two")):
        there = str(tmp_path / "kept" / "run.cassette") if last else ""
        code, found, told = act(tmp_path, f"{sys.executable} agent.py {word}", BASELINE=there, FAIL_ON_DIFF="true")
        assert code == last, told
        assert playhead.load(found["cassette"]).id == found["run"]


def test_an_empty_command_is_no_success(tmp_path: Path) -> None:
    code, found, told = act(tmp_path, " \n")
    assert (code, found, "::error::there is no command to record" in told) == (1, {}, True), told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"FAIL_ON": "deny, nonsense"}, "::error::fail-on: no rule is called 'nonsense' There are write, delete,"),
        ({"IGNORE": "/output/at\noutput/time\n"}, "no JSON pointer such as /output/time: output/time"),
        ({"IGNORE": "/"}, "::error::ignore has a line that is no JSON pointer"),
        ({"FAIL_ON_DIFF": "yes"}, "::error::fail-on-diff is neither true nor false: yes"),
        ({"COMMENT": ""}, "::error::comment is neither true nor false:"),
    ],
)
def test_what_is_mistyped_is_told_before_the_command_runs(tmp_path: Path, given: dict[str, str], said: str) -> None:
    code, found, told = act(tmp_path, "touch ran", **given)
    assert (code, found, said in " ".join(told.split())) == (1, {}, True), told
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("said", "code"), [("True", 1), ("true \n", 1), ("FALSE", 0)])
def test_true_is_true_however_it_is_written(tmp_path: Path, said: str, code: int) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    baseline = ""
    for last, word in ((0, "one"), (code, "two")):
        found = act(tmp_path, f"{sys.executable} agent.py {word}", BASELINE=baseline, FAIL_ON_DIFF=said, COMMENT=said)
        assert found[0] == last, found[2]
        assert found[1]["comment"] == ("true" if code else "false")
        baseline = found[1]["run"]


def test_rules_and_severities_may_have_spaces_between_them(tmp_path: Path) -> None:
    code, _, told = act(tmp_path, "touch ran", FAIL_ON="deny, high", IGNORE="/output/at\n\n")
    assert (code, (tmp_path / "ran").exists()) == (0, True), told


@pytest.mark.parametrize("name", ["json.py", "playhead.py"])
def test_modules_of_the_repository_are_not_taken_for_those_of_playhead(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("raise SystemExit('not this one')")
    code, found, told = act(tmp_path, "true")
    assert (code, "run" in found) == (0, True), told


def test_every_input_of_the_action_is_documented() -> None:
    text = (ROOT / "action.yml").read_text()
    inputs = [
        line.strip(" :")
        for line in text.partition("inputs:")[2].partition("outputs:")[0].splitlines()
        if line.startswith("  ") and not line.startswith("   ")
    ]
    page = (ROOT / "docs" / "guides" / "report.md").read_text()
    assert inputs
    assert [name for name in inputs if f"`{name}`" not in page] == []


GH = """#!{python}
import json, os, pathlib, sys
kept = pathlib.Path(os.environ["COMMENTS"])
if kept.name == "none":
    sys.exit("GraphQL: Resource not accessible by integration")
comments, said = json.loads(kept.read_text()), sys.argv[1:]
match said[:2]:
    case ["pr", "view"]:
        assert "env.MARK" in said[said.index("--jq") + 1] and "viewerDidAuthor" in said[said.index("--jq") + 1]
        mine = [one for one in comments if one["mine"] and one["body"].startswith(os.environ["MARK"])]
        print(f"https://github.com/o/r/pull/7#issuecomment-{{mine[-1]['id']}}" if mine else "")
    case ["pr", "comment"]:
        body = pathlib.Path(said[said.index("--body-file") + 1]).read_text()
        comments.append({{"id": 100 + len(comments), "mine": True, "body": body}})
    case ["api", _]:
        (one,) = [one for one in comments if f"repos/o/r/issues/comments/{{one['id']}}" in said]
        one["body"] = pathlib.Path(said[-1].removeprefix("body=@")).read_text()
kept.write_text(json.dumps(comments))
"""


def comment(folder: Path, comments: str, name: str, report: str) -> str:
    (folder / "gh").write_text(GH.format(python=sys.executable))
    (folder / "gh").chmod(0o755)
    (folder / "report.md").write_text(report)
    environment = {
        **os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "COMMENTS": str(folder / comments), "NUMBER": "7",
        "GITHUB_REPOSITORY": "o/r", "NAME": name, "REPORT": str(folder / "report.md"),
    }  # fmt: skip
    script = ["bash", str(ROOT / "scripts" / "action-comment")]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_comment_replaces_that_of_the_same_name_and_no_other(tmp_path: Path) -> None:
    others = [
        {"id": 1, "mine": True, "body": "what another workflow posts with the same token"},
        {"id": 2, "mine": False, "body": "<!-- playhead: a -->\nsomebody's"},
    ]
    (tmp_path / "comments").write_text(json.dumps(others))
    for name, report in (("a", "first"), ("b", "other"), ("a", "second")):
        comment(tmp_path, "comments", name, report)
    found = json.loads((tmp_path / "comments").read_text())
    assert found[:2] == others
    assert [one["body"] for one in found[2:]] == ["<!-- playhead: a -->\nsecond", "<!-- playhead: b -->\nother"]


def test_whoever_may_not_comment_is_told_and_does_not_fail(tmp_path: Path) -> None:
    assert "::warning::the report could not be posted" in comment(tmp_path, "none", "a", "text")


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("exit 1", "::error::Playhead needs Python 3.11 or newer"),
        ('[ "$1" = -c ] || exit 1', "::error::pip could not install Playhead"),
        ('[ "$1" = -c ] || echo "$@"', "-P -m pip install --quiet /the/action[prices]"),
    ],
)
def test_a_python_that_takes_no_playhead_is_told(tmp_path: Path, python: str, said: str) -> None:
    fake = tmp_path / "a python"
    fake.write_text(f"#!/bin/sh\n{python}\n")
    fake.chmod(0o755)
    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / "action-install")],
        env={**os.environ, "PYTHON": str(fake), "WANTED": "", "GITHUB_ACTION_PATH": "/the/action"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(said)
    assert done.returncode == ("::error::" in said)


def test_no_input_of_the_action_is_put_into_a_line_for_the_shell() -> None:
    runs = [line for line in (ROOT / "action.yml").read_text().splitlines() if line.startswith("      run:")]
    assert len(runs) == 3
    assert [line for line in runs if "${{" in line] == []


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("env agent=1 X", ["env", "agent=1", "X"]),
        ("\n  env agent=1 X \n\n", ["env", "agent=1", "X"]),
        ("printf '%s' \"it's\" 'a b'", [*SHELL, "printf '%s' \"it's\" 'a b'"]),  # of the shell itself
        ("env printf \"it's\" 'a b'", ["env", "printf", "it's", "a b"]),
        ("A=1 env", [*SHELL, "A=1 env"]),
        ("env | cat", [*SHELL, "env | cat"]),
        ("env \n env", [*SHELL, "env \n env"]),
        ("env $HOME", [*SHELL, "env $HOME"]),
        ("env 'open", [*SHELL, "env 'open"]),
    ],
)
def test_a_plain_command_is_recorded_as_by_hand(tmp_path: Path, command: str, argv: list[str]) -> None:
    act(tmp_path, command)
    started = next(iter(playhead.load("@last", store=tmp_path / ".playhead").events())).data
    assert started["entrypoint"]["argv"] == argv


@pytest.mark.parametrize("command", ["false\ntouch after", "false | true\ntouch after"])
def test_a_line_that_fails_ends_the_command(tmp_path: Path, command: str) -> None:
    code, _, told = act(tmp_path, command)
    assert (code, "::error::the command ended with exit code 1" in told) == (1, True), told
    assert not (tmp_path / "after").exists()


def test_a_run_that_was_recorded_by_hand_is_a_baseline(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import sys; print(sys.argv[1])")
    recorded = [sys.executable, "-P", "-m", "playhead", "record", "--quiet", "--", sys.executable, "agent.py", "one"]
    subprocess.run(recorded, cwd=tmp_path, check=True, capture_output=True)
    command = f"{sys.executable} agent.py"
    for word, code in (("one", 0), ("two", 1)):
        found = act(tmp_path, f"{command} {word}", BASELINE="@last", FAIL_ON_DIFF="true")
        assert found[0] == code, found[2]
