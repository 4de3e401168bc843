from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from playhead._api.reading import load
from playhead.cli.commands.demo import flip_byte
from playhead.store.files import FileStore

pytest.importorskip("openai")


def test_the_demo_records_shows_plays_back_verifies_and_catches_tampering(shell, store):
    said = shell("demo", env={"OPENAI_API_KEY": ""})
    assert (said.code, said.err) == (0, "")
    run, replay = FileStore(store).runs()
    line = next(line for line in said.out.splitlines() if "of the copy" in line).split()[1]
    for told in (
        f"recorded {run}",
        "step build_context",  # the timeline
        "from_replay True",
        "intact",
        "complete",
        f"edited: event {line} (line {int(line) + 1} of timeline.jsonl) was edited",
        "faithful over the recorded surface: 12 of 12 calls answered from the tape, 0 live calls",
        "What to try next",
        "playhead record -- python your_agent.py",
    ):
        assert told in said.out
    assert load(replay, store).events().__next__().data["origin"]["run"] == run
    after = said.out.partition("What to try next\n")[2].splitlines()
    assert len({line.index("playhead") - len(line.rpartition("playhead")[0].rpartition(" ")[2]) for line in after}) == 1


def test_only_complete_runs_are_left_no_copy_and_it_speaks_with_nobody_outside_this_machine(shell, store, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    # Every connection that is not to the loopback fails in the demo's process.
    (tmp_path / "sitecustomize.py").write_text(
        "import socket\n"
        "real = socket.socket.connect\n"
        "def connect(self, address):\n"
        "    assert address[0] in ('127.0.0.1', '::1', 'localhost'), address\n"
        "    return real(self, address)\n"
        "socket.socket.connect = connect\n"
    )
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    said = shell("demo", "--json", env={"TMPDIR": str(scratch), "PYTHONPATH": path})
    assert said.code == 0
    document = said.json
    assert list(scratch.iterdir()) == []
    assert list(FileStore(store).runs()) == [document["run"], document["replay"]["run"]]
    assert document["replay"]["fidelity"]["verdict"] == "faithful"
    run = load(document["run"], store)
    assert run.readiness().replayable
    assert run.verify().completeness.verdict == "complete"
    assert document["playback"]["payload"] == run.playback(plain=True).payload
    assert document["playback"]["payload"]["fixed"] is True
    assert document["verify"]["integrity"]["verdict"] == "intact"
    tampered = document["tampered"]
    assert tampered["verify"]["integrity"] == {
        "verdict": "broken",
        "at": tampered["line"],
        "reason": "edited",
        "message": f"event {tampered['line']} was edited: its bytes do not match its hash",
    }


def test_the_demo_goes_to_the_store_that_was_named_also_inside_a_recorded_program(shell, store, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    said = shell("demo", "--json", "--store", str(elsewhere), env={"PLAYHEAD_RUN": "run_" + "0" * 26})
    assert said.code == 0
    assert list(FileStore(elsewhere).runs()) == [said.json["run"], said.json["replay"]["run"]]
    assert not store.exists()


def test_without_openai_it_says_what_to_install(ask, store, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    said = ask("demo")
    assert said.code == 2
    assert "pip install openai" in said.err
    assert not store.exists()


def test_disabled_it_says_so(ask, store, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_DISABLED", "1")
    assert ask("demo").code == 2


def test_one_flipped_bit_changes_one_character_of_the_line_that_is_named():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "timeline")
        before = b'{"a":"one"}\n' * 9
        path.write_bytes(before)
        flip = flip_byte(path)
        after = path.read_bytes()
    changed = [at for at in range(len(before)) if before[at] != after[at]]
    assert len(changed) == 1
    assert before[: changed[0]].count(b"\n") == flip.line == 4
    assert (before[changed[0]], after[changed[0]]) == (flip.was, flip.became)
