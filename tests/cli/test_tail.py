from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import playhead

LIVE = """
import playhead, sys
with playhead.record("live") as run:
    print("ready", flush=True)
    for line in sys.stdin:
        playhead.note(line.strip())
        print("noted", flush=True)
"""


def start_live() -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", LIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def start_tail(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "playhead", "tail", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def note(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "noted\n"


def test_events_are_told_as_they_arrive_until_the_run_ends(store, sample):
    live = start_live()
    tail = start_tail()
    assert tail.stdout is not None
    assert "run live" in tail.stdout.readline()
    note(live, "first")
    assert "note first" in tail.stdout.readline()
    assert tail.poll() is None
    note(live, "second")
    assert "note second" in tail.stdout.readline()
    live.communicate()
    out, err = tail.communicate(timeout=20)
    assert "run finished" in out
    assert tail.returncode == 0
    assert "ok after" in err


def test_a_killed_writer_is_noticed_and_could_not_be_told(store):
    live = start_live()
    tail = start_tail("--json")
    assert tail.stdout is not None
    assert json.loads(tail.stdout.readline())["kind"] == "run.started"
    time.sleep(0.3)
    assert tail.poll() is None
    os.kill(live.pid, signal.SIGKILL)
    live.communicate()
    out, err = tail.communicate(timeout=20)
    assert out == ""
    assert tail.returncode == 3
    assert "crashed: its writer is gone" in err


def test_json_lines_are_the_exact_lines(shell, sample, store):
    timeline = (store / "runs" / sample / "timeline.jsonl").read_text()
    said = shell("tail", sample, "--json", "-n", "-1")
    assert said.code == 0
    assert said.out == timeline
    assert said.err == ""
    assert shell("tail", sample, "--json", "-n", "2").out == "".join(timeline.splitlines(keepends=True)[-2:])


def test_the_last_events_of_a_finished_run_are_shown_and_no_more(ask, sample):
    said = ask("tail", "-n", "3")
    assert said.code == 0
    assert len(said.out.splitlines()) == 3
    assert said.out.splitlines()[-1].split()[-2:] == ["run", "finished"]
    assert ask("tail", "-n", "0").out == ""
    assert ask("tail", "-n", "-2").code == 2


def test_each_event_tells_what_was_known_when_it_happened(ask, sample):
    lines = ask("tail", "-n", "-1").out.splitlines()
    opened = next(line for line in lines if "▸ tool read_file" in line)
    closed = next(line for line in lines if "✓ tool read_file" in line)
    assert 'path="src/login.py"' in opened
    assert "→" not in opened
    assert '→ "def normalise' in closed
    assert lines.index(closed) == lines.index(opened) + 1


def test_without_following_a_live_run_is_left_alone(ask, store):
    live = start_live()
    said = ask("tail", "--no-follow")
    assert said.code == 0
    assert "running" in said.err
    live.communicate()


def test_a_run_that_ended_in_an_error_says_so(ask, store):
    try:
        with playhead.record("failing", store=store):
            raise RuntimeError("out of luck")
    except RuntimeError:
        pass
    said = ask("tail")
    assert said.code == 0
    assert "✗ run finished" in said.out
    assert "RuntimeError: out of luck" in said.out


def test_an_empty_store_has_nothing_to_follow(ask, store):
    assert ask("tail").code == 2


def test_the_end_of_an_altered_run_is_told_with_a_warning(ask, sample, store):
    assert "altered" not in ask("tail", sample, "--no-follow").err
    timeline = store / "runs" / sample / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b"boo", b"foo"))
    for more in ((), ("--json",)):
        said = ask("tail", sample, "--no-follow", *more)
        assert said.code == 0
        assert said.err.count("this record was altered: event 12 (line 13 of timeline.jsonl)") == 1
