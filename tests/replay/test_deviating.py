"""Hold what a reader of a deviation is told, with real programs that are recorded and replayed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import warm
from tests.replay.again import ASKING, record

import playhead
from playhead.testing import ScriptedProvider

AGENT = """
import os
import httpx

def ask(text, day="2025-11-14"):
    messages = [{"role": "system", "content": f"You are careful.\\nToday is {day}."}, {"role": "user", "content": text}]
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    return httpx.post(url, json={"model": "gpt-5", "messages": messages}).json()["choices"][0]["message"]["content"]

print(ask("one"))
print(ask("two"))
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """Record the agent in a folder of its own, and let the provider go."""
    (tmp_path / "agent.py").write_text(AGENT)
    with ScriptedProvider(lambda request: f"answer to {request.prompt[-3:]}") as provider:
        done = _playhead(tmp_path, "record", "--", sys.executable, "agent.py", OPENAI_BASE_URL=provider.base_url)
        assert done.returncode == 0, done.stderr
        (tmp_path / "url").write_text(provider.base_url)
        yield tmp_path


def _playhead(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PLAYHEAD_GIT": "0", "PLAYHEAD_DIR": str(folder / ".playhead"), **variables}
    return warm.playhead(folder, *arguments, variables=environment)


def replayed(project: Path, agent: str) -> dict[str, Any]:
    """Replay the recording with another version of the agent, and return the report."""
    (project / "agent.py").write_text(agent)
    url = (project / "url").read_text()
    done = _playhead(project, "replay", "@last", "--mode", "exact", "--json", OPENAI_BASE_URL=url)
    report: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{\n") :])
    return report


def test_a_changed_prompt_is_named_at_its_event_with_the_changed_words(project: Path) -> None:
    report = replayed(project, AGENT.replace('ask("two")', 'ask("two", "2026-11-15")'))
    first = report["fidelity"]["first"]
    assert (report["fidelity"]["verdict"], report["fidelity"]["count"]) == ("deviated", 1)
    assert first["type"] == "changed"
    assert first["changes"][0]["path"] == "/messages/0/content"
    assert first["changes"][0]["words"] == "line 2: Today is [-2025-11-14-] {+2026-11-15+}."
    assert first["cause"].startswith("a date in /messages/0/content")
    lines = (project / ".playhead" / "runs" / report["origin"]["run"] / "timeline.jsonl").read_text().splitlines()
    recorded = json.loads(lines[first["seq"]])
    assert recorded["kind"] == "model.invoked"
    assert recorded["data"]["request"]["messages"][-1]["content"] == "two"


def test_a_question_asked_once_more_is_counted(project: Path) -> None:
    first = replayed(project, AGENT + 'print(ask("one"))\n')["fidelity"]["first"]
    assert (first["type"], first["recorded_times"], first["asked_times"]) == ("repeated", 1, 2)
    assert first["text"].startswith("model gpt-5 was asked a second time, recorded once")


def test_a_question_that_is_gone_is_named_by_its_words_with_the_cause_and_what_came_before(project: Path) -> None:
    report = replayed(project, AGENT.replace('print(ask("two"))', ""))
    first = report["fidelity"]["first"]
    assert first["type"] == "removed"
    assert first["text"].startswith('model gpt-5 "two" was recorded and never asked (recorded event ')
    assert "the code has changed since it was recorded: " in first["cause"]
    assert "agent.py" in first["cause"]
    assert first["where"] == "agent.py:8"
    (output,) = (one for one in report["deviations"] if one["type"] == "output")
    assert "the first that is missing: answer to two" in output["text"]
    assert "the line before it was printed at agent.py:10" in output["text"]


def test_what_a_rule_calls_volatile_makes_no_difference_and_is_counted(project: Path) -> None:
    (project / "playhead.toml").write_text("[normalise]\ntoday = { pattern = '\\d{4}-\\d{2}-\\d{2}' }\n")
    report = replayed(project, AGENT.replace("2025-11-14", "2026-11-15"))
    assert report["fidelity"]["verdict"] == "faithful"
    assert (report["surface"]["taped"], report["surface"]["normalised"]) == (2, 2)
    same = replayed(project, AGENT)
    assert (same["fidelity"]["verdict"], same["surface"]["normalised"]) == ("faithful", 0)
    other = replayed(project, AGENT.replace('ask("two")', 'ask("two point five")'))
    assert other["fidelity"]["first"]["type"] == "changed"


def test_a_normaliser_that_the_program_registers_while_it_runs_counts(project: Path) -> None:
    rule = 'import playhead\nplayhead.normaliser("today", pattern=r"\\d{4}-\\d\\d-\\d\\d")\n'
    report = replayed(project, rule + AGENT.replace("2025-11-14", "2026-11-15"))
    assert (report["fidelity"]["verdict"], report["surface"]["normalised"]) == ("faithful", 2)


def test_what_another_thread_asks_now_is_named_as_moved(tmp_path: Path) -> None:
    program = ASKING + (
        "import threading\n"
        "for question in sys.argv[2:]:\n"
        "    thread = threading.Thread(target=ask, args=(question,))\n"
        "    thread.start()\n"
        "    thread.join()\n"
    )
    recorded = record(tmp_path, program, "left", "right", answers=["a", "b"])
    address = next(iter(playhead.load(recorded.run, tmp_path / ".playhead").events())).data["entrypoint"]["argv"][2]
    found = recorded.report(program=[sys.executable, "program.py", address, "right", "left"])
    assert [(one["type"], one["lane"]) for one in found["deviations"]] == [("moved", "0.2"), ("moved", "0.1")]
    first = found["fidelity"]["first"]["text"]
    assert "was asked in lane 0.2, recorded in lane 0.1" in first
    assert "left" in first
    assert "asks less" not in first


@pytest.mark.parametrize("in_thread", [False, True])
def test_the_programs_traceback_has_its_own_lines_and_the_report_the_rest(project: Path, in_thread: bool) -> None:
    changed = AGENT.replace('print(ask("two"))', 'print(ask("two", "2026-11-15"))')
    if in_thread:
        last = 'print(ask("two", "2026-11-15"))'
        started = f"import threading\nt = threading.Thread(target=lambda: {last})\nt.start()\nt.join()"
        changed = changed.replace(last, started)
    (project / "agent.py").write_text(changed)
    url = (project / "url").read_text()
    done = _playhead(project, "replay", "@last", "--mode", "exact", OPENAI_BASE_URL=url)
    program, _, report = done.stderr.partition("playhead: run_")
    assert "agent.py" in program
    assert "site-packages" not in program
    assert program.rstrip().splitlines()[-1].startswith("playhead.errors.DeviationError: model gpt-5 was asked")
    assert "Today is [-2025-11-14-] {+2026-11-15+}." in report


def test_a_check_of_the_agents_own_that_is_gone_is_a_deviation_under_a_policy_too(tmp_path: Path) -> None:
    program = 'import playhead\nwith playhead.record("agent"):\n    {}\n    print("done")\n'
    allowed = '[capabilities."repo.write"]\nallow = ["*"]\n[capabilities."process.exec"]\nallow = ["*"]\n'
    (tmp_path / "playhead.policy.toml").write_text(allowed)
    recorded = record(tmp_path, program.format('playhead.check("repo.write", resource="a.py")'))
    recorded.faithful()
    (tmp_path / "program.py").write_text(program.format("pass"))
    assert recorded.report()["fidelity"]["verdict"] == "deviated"
