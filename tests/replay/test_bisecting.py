"""The answers that make the difference between two runs are found, with nothing asked live."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.replay.again import playhead
from tests.replay.going_on import answered, lines

# Fifty answers, all of them different in each run; it fails if any of some is broken.
PROGRAM = """
import json, random, sys
import playhead

@playhead.tool
def price(number):
    with open("asked.txt", "a") as file:
        file.write(f"{number}\\n")
    return {"price": random.SystemRandom().randrange(10**9), "ok": number not in json.load(open("broken.json"))}

got = [price(number) for number in range(50)]
print("got", len(got))
sys.exit(any(not one["ok"] for one in got) * 3)
"""

# The answer decides what is asked next.
LEADING = """
import sys
import playhead

@playhead.tool
def choose():
    return open("choice").read()

@playhead.tool
def follow(choice):
    return f"{choice}{open('choice').read()}"

first = choose()
found = [follow(f"{first} {n}") for n in range(3)]
print(found)
sys.exit("bad" in found[-1])
"""


def recorded(folder: Path) -> str:
    done = playhead(folder, "record", "--quiet", "--", sys.executable, "program.py")
    assert done.returncode in (0, 1, 3), done.stderr
    return str(json.loads(playhead(folder, "ls", "--json").stdout)[0]["id"])


@pytest.mark.parametrize("broken", [[17], [22, 25]])
def test_a_planted_cause_is_found_among_fifty(tmp_path: Path, broken: list[int]) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "broken.json").write_text("[]")
    good = recorded(tmp_path)
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    bad = recorded(tmp_path)
    asked = lines(tmp_path, "asked.txt")
    found = answered(tmp_path, "bisect", good, bad)
    assert found["verdict"] == "found"
    assert found["candidates"] == 50
    events = [json.loads(line) for line in playhead(tmp_path, "show", bad, "--raw").stdout.splitlines()]
    called = {event["span"]: event["data"]["input"]["number"] for event in events if event["kind"] == "tool.called"}
    spans = {event["seq"]: event["span"] for event in events}
    assert [called[spans[one["seq"]]] for one in found["cause"]] == broken
    assert all(change["path"] for one in found["cause"] for change in one["changes"])
    assert found["live_calls"] == 0
    assert lines(tmp_path, "asked.txt") == asked  # no tool has run
    assert not found["unresolved"]
    assert len(json.loads(playhead(tmp_path, "ls", "--json").stdout)) == 2  # the replays are not kept


def test_where_no_tape_can_answer_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LEADING)
    (tmp_path / "choice").write_text("good")
    good = recorded(tmp_path)
    (tmp_path / "choice").write_text("bad")
    bad = recorded(tmp_path)
    found = answered(tmp_path, "bisect", good, bad)
    # With the first answer of the good run everything else is asked as that run asked it, and its tape answers.
    assert found["verdict"] == "found"
    assert [one["name"] for one in found["cause"]] == ["choose"]
    assert "are they swapped?" in playhead(tmp_path, "bisect", bad, good).stderr
    program = LEADING.replace("range(3)", "range(4)")
    (tmp_path / "program.py").write_text(program)
    lost = answered(tmp_path, "bisect", good, bad, "--", sys.executable, "program.py")
    assert lost["verdict"] == "not_found"
    assert "does not end badly" in lost["text"]
    assert "not on the tape" in lost["unresolved"][0]["why"]


def test_a_check_says_what_is_good(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LEADING.replace('sys.exit("bad" in found[-1])', ""))
    (tmp_path / "choice").write_text("good")
    good = recorded(tmp_path)
    (tmp_path / "choice").write_text("bad")
    bad = recorded(tmp_path)
    refused = playhead(tmp_path, "bisect", good, bad, "--by", "exit")
    assert refused.returncode == 2
    assert "the same exit code" in refused.stderr
    for options in (("--check", "grep -q good"), ("--by", "output"), ()):
        done = playhead(tmp_path, "bisect", good, bad, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 answer of 1 that differ" in done.stdout
        assert "tool choose" in done.stdout
    unsure = answered(tmp_path, "bisect", good, bad, "--check", "sh -c 'exit 125'")
    assert unsure["verdict"] == "not_found"
    assert "125" in unsure["text"]


def test_two_runs_are_needed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LEADING)
    (tmp_path / "choice").write_text("good")
    run = recorded(tmp_path)
    assert "the same one" in playhead(tmp_path, "bisect", run, run).stderr
    again = recorded(tmp_path)
    same = playhead(tmp_path, "bisect", run, again)
    assert same.returncode == 2
    assert "cannot be told apart" in same.stderr
