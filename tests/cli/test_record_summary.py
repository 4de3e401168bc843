from __future__ import annotations

import sys
from pathlib import Path

import pytest

from playhead.views.summary import Summary

if sys.platform == "win32":
    pytest.skip("programs are not recorded there", allow_module_level=True)

from playhead.capture.launch import Launched
from playhead.cli.commands.record import _lines

WRITING = """
import os, subprocess
os.mkdir("out")
for name in ("a", "b", "c"):
    open(f"out/{name}", "w").close()
os.rename("out/a", "out/z")
os.remove("out/b")
subprocess.run(["true"])
os.environ["MOOD"] = "fine"
"""


def told(**facts: object) -> list[str]:
    launched = Launched("run_x", Path("/store/runs/run_x"), 0, 0, 0)
    lost = facts.pop("lost", 0)
    return _lines(launched, Summary(name="n", ended="ok", **facts), lost, {}, "run_x")  # type: ignore[arg-type]


def test_effects_are_said_in_words_and_how_often(shell, store, tmp_path):
    (tmp_path / "writing.py").write_text(WRITING)
    said = shell("record", "--", sys.executable, "writing.py").err.splitlines()
    at = next(number for number, line in enumerate(said) if line.startswith("  effects: "))
    assert said[at] == "  effects: 1× directory created, 1× file deleted, 1× file renamed,"
    assert said[at + 1] == "           3× file written, 1× process started, 1× variable changed"


def test_a_connection_is_not_said_to_be_one():
    assert "  effects: 2× connection attempted" in told(effects={"socket.connected": 2})


def test_what_was_not_seen_and_what_was_lost_are_told_apart():
    lines = told(not_captured=["socket host:1 at agent:3"], gaps={"disk_full": 2, "sync_failed": 0}, lost=2)
    unseen, lost = (
        lines.index("  not captured: socket host:1 at agent:3"),
        lines.index("  LOST, though it was seen: 2× disk_full"),
    )
    assert "not seen; the rest is on record" in lines[unseen + 1]
    assert "not played back" in lines[lost + 1]
    assert not [line for line in lines if "playhead replay" in line]


def test_events_that_could_not_even_be_noted_are_counted():
    assert "  LOST, though it was seen: 3 events" in told(lost=3)


def test_nothing_is_said_of_what_did_not_happen():
    lines = told()
    assert not [line for line in lines if "effects" in line or "captured" in line or "LOST" in line]


def test_what_a_policy_denied_is_said():
    denied = [{"capability": "fs.write", "resource": "elsewhere.md", "enforced": True, "times": 1}]
    assert "  policy: 1 denied: fs.write elsewhere.md" in told(denied=denied)
    assert "  policy: 2 would be denied: net.connect a.b" in told(
        denied=[{"capability": "net.connect", "resource": "a.b", "enforced": False, "times": 2}]
    )
