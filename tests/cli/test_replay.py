from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

import playhead
from playhead.cli.replay_text import lines


def test_the_recorded_outcome_is_a_document_on_stdout(shell, sample):
    said = shell("replay", "@last")
    assert said.code == 0
    assert said.json == {
        "status": "ok",
        "from_replay": True,
        "original_run_id": sample,
        "payload": {"fixed": True, "issue": 1842},
        "metadata": {},
        "error": None,
        "waived": [],
    }
    assert list(said.json)[:6] == ["status", "from_replay", "original_run_id", "payload", "metadata", "error"]
    assert "nothing is executed" in said.err
    silent = shell("replay", "@last", "--json")
    assert silent.json == said.json
    assert silent.err == ""


def test_the_request_must_be_the_recorded_one(shell, sample, tmp_path):
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    right.write_text(json.dumps({"intent": "fix-login", "payload": {"issue": 1842}, "id": "another", "time": "now"}))
    wrong.write_text(json.dumps({"intent": "fix-login", "payload": {"issue": 1843}}))
    said = shell("replay", "@last", "--verify-envelope", str(right))
    assert said.code == 0
    assert said.err.startswith("Envelope hash matches. Playing back")
    for force in ((), ("--force",)):
        refused = shell("replay", "@last", "--verify-envelope", str(wrong), "--json", *force)
        assert refused.code == 1
        assert refused.json["error"]["code"] == "envelope_mismatch"
    piped = shell("replay", "@last", "--verify-envelope", "-", input=right.read_bytes())
    assert piped.code == 0


def test_an_envelope_that_is_none_is_a_usage_error(ask, sample, tmp_path):
    bad = tmp_path / "bad.json"
    for content in ("{", "[]", '{"payload": 1}', '{"intent": "x", "surprise": 1}'):
        bad.write_text(content)
        assert ask("replay", "@last", "--verify-envelope", str(bad)).code == 2
    assert ask("replay", "@last", "--verify-envelope", str(tmp_path / "none.json")).code == 2


def test_a_killed_run_is_refused_with_reasons_and_forced_with_a_warning(shell, store):
    code = (
        "import playhead, os, signal\n"
        "with playhead.record('doomed'):\n"
        "    with playhead.step('done'): pass\n"
        "    with playhead.step('dying'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    refused = shell("replay", "@last", "--json")
    assert refused.code == 1
    assert refused.json["error"]["code"] == "not_replayable"
    assert "execution_incomplete" in refused.json["error"]["detail"]["reasons"]
    assert "dying" in shell("replay", "@last").err
    forced = shell("replay", "@last", "--force")
    assert forced.code == 0
    assert forced.err.startswith("WARNING: ")
    assert "execution_incomplete" in forced.err
    assert forced.json["status"] == "partial"
    assert forced.json["waived"] == ["execution_incomplete"]


def test_an_altered_run_is_refused(ask, sample, store):
    timeline = store / "runs" / sample / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b"src/login.py", b"src/logon.py", 1))
    said = ask("replay", sample, "--json")
    assert said.code == 1
    assert "integrity_broken" in said.json["error"]["detail"]["reasons"]


def test_a_recorded_error_is_played_back_as_one(ask, store):
    with pytest.raises(RuntimeError), playhead.record("failing", store=store):
        raise RuntimeError("out of luck")
    said = ask("replay", "@last")
    assert said.code == 0
    assert said.json["status"] == "error"
    assert said.json["error"]["message"] == "out of luck"


def test_values_stay_in_their_json_form(ask, store):
    with playhead.record("bytes", store=store) as run:
        run.output = {"data": b"\x00\x01", "pair": (1, 2)}
    assert ask("replay", "@last").json["payload"] == {"data": {"$bytes": "AAE="}, "pair": {"$tuple": [1, 2]}}


@pytest.mark.parametrize(("mode", "told"), [("step", "which step?"), ("fork", "a fork needs an event")])
def test_a_mode_says_what_it_needs(ask, sample, mode, told):
    said = ask("replay", "@last", "--mode", mode)
    assert said.code == 2
    assert told in said.err


def test_playback_writes_nothing_but_the_index(shell, sample, store):
    def files() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in store.rglob("*")
            if path.is_file() and not path.name.startswith("playhead.db")
        }

    before = files()
    assert shell("replay", sample).code == 0
    assert files() == before
    assert os.listdir(store.parent) == [".playhead"]


REPORT: dict[str, Any] = {
    "run": "run_b", "origin": {"run": "run_a"}, "mode": "exact", "live_calls": 0, "blocked": [], "cost_saved": None,
    "integrity": {"verdict": "intact"}, "completeness": {"verdict": "complete"}, "isolation": "hooks", "folder": "",
    "fidelity": {"verdict": "faithful", "claim": "faithful over the recorded surface", "first": None, "count": 0},
    "waived": [], "deviations": [],
    "surface": {
        "taped": 1, "calls": 1, "not_captured": [], "written": [], "code_changed": [], "stalls": [], "drift": [],
        "normalised": 0, "not_compared": [],
    },
}  # fmt: skip


def test_a_report_says_how_many_questions_matched_only_after_normalising():
    assert not any("normalis" in line for line in lines(REPORT))
    told = lines({**REPORT, "surface": {**REPORT["surface"], "normalised": 2}})
    assert any("2 questions matched only after normalising" in line for line in told)


def test_a_report_counts_what_was_answered_from_elsewhere_and_names_the_first():
    drift = [{"source": f"os.environ {'x' * 300}", "where": f"agent.py:{n}", "count": 2} for n in range(9)]
    (told,) = [
        line for line in lines({**REPORT, "surface": {**REPORT["surface"], "drift": drift}}) if "elsewhere" in line
    ]
    assert told.startswith("  answered from elsewhere: 18 questions: os.environ ")
    assert told.endswith("and 7 more (--json)")
    assert len(told) < 350
