from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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
