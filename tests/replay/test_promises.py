"""What must never happen when a program leaves its tape: something done twice, something done too early, a guess."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.replay.again import playhead
from tests.replay.going_on import PLAINLY, answered, lines, told

from playhead.testing import ScriptedProvider

TOOLS = """
import os, sys, threading, time
import playhead

def dies():
    if os.path.exists("die"):
        os.kill(os.getpid(), 9)

def wrote(name, what):
    with open(name, "a") as file:
        file.write(f"{what}\\n")

@playhead.tool(effects=["write"])
def book(number):
    wrote("booked", number)
    return number

@playhead.tool(effects=["irreversible"])
def pay(number):
    wrote("paid", number)
    return number

@playhead.tool(effects=["read"])
def look(number):
    return number
"""


def written(folder: Path, body: str) -> None:
    (folder / "program.py").write_text(TOOLS + body)


def recorded(folder: Path, body: str, *arguments: str, dies: bool = False) -> None:
    written(folder, body)
    if dies:
        (folder / "die").touch()
    playhead(folder, "record", "--quiet", "--", sys.executable, "program.py", *arguments)
    (folder / "die").unlink(missing_ok=True)


def test_an_agent_with_steps_goes_on_where_it_was(tmp_path: Path) -> None:
    body = """
@playhead.agent("payer")
def run():
    for number in range(3):
        with playhead.step(f"turn {number}"):
            look(number)
            if number == 2:
                dies()
            pay(number)

run()
"""
    recorded(tmp_path, body, dies=True)
    found = answered(tmp_path, "resume", "@last")
    assert lines(tmp_path, "paid") == ["0", "1", "2"]
    assert found["live_calls"] == 1
    forked = answered(tmp_path, "fork", "@last", "--at", "look#2", "--live", "tool", "--set", "output=7")
    assert forked["deviations"][0]["type"] == "irreversible"
    assert lines(tmp_path, "paid") == ["0", "1", "2"]


@pytest.mark.parametrize("how", ["resume", "fork"])
@pytest.mark.parametrize(
    "changed",
    [
        'with playhead.step("s"): look(0)\nbook(1)\nbook(2)\nlook(1)\nbook(3)',
        'threading.Thread(target=book, args=(99,)).start()\ntime.sleep(0.2)\nbook(1)\nbook(2)\nwith playhead.step("s"): look(1)',
        'book(7)\nbook(1)\nbook(2)\nwith playhead.step("s"): look(1)',
    ],
    ids=["another step first", "a new thread", "a new call"],
)
def test_nothing_goes_live_before_the_event_because_the_code_has_changed(
    tmp_path: Path, how: str, changed: str
) -> None:
    recorded(tmp_path, 'book(1)\nbook(2)\nwith playhead.step("s"):\n    look(1)\n    dies()\n    book(3)', dies=True)
    written(tmp_path, changed)
    options = ("resume", "@last") if how == "resume" else ("fork", "@last", "--at", "look", "--live", "all")
    found = answered(tmp_path, *options)
    assert not set(lines(tmp_path, "booked")) - {"1", "2", "3"}, found
    assert lines(tmp_path, "booked")[:2] == ["1", "2"]
    assert lines(tmp_path, "booked").count("1") == lines(tmp_path, "booked").count("2") == 1


def test_while_one_tool_runs_live_no_other_part_of_the_program_does_anything(tmp_path: Path) -> None:
    body = """
def beside():
    for number in range(3):
        wrote(f"beside-{number}", "x")
        time.sleep(0.05)
    book(7)

@playhead.tool
def slow(said):
    wrote("slowly", said)
    time.sleep(0.5)

thread = threading.Thread(target=beside)
thread.start()
slow(ask("a"))
thread.join()
"""
    with ScriptedProvider(told) as first:
        recorded(tmp_path, PLAINLY + body, first.base_url)
    for path in tmp_path.glob("beside-*"):
        path.unlink()
    with ScriptedProvider(lambda request: "another") as second:
        options = ("--mode", "model", "--unknown", "live", "--base-url", second.base_url)
        found = answered(tmp_path, "replay", "@last", *options)
    assert lines(tmp_path, "slowly") == ["re a", "another"]
    assert not list(tmp_path.glob("beside-*"))
    assert lines(tmp_path, "booked") == ["7"]
    assert found["live_calls"] == 2


def test_what_was_done_inside_of_a_tool_counts(tmp_path: Path) -> None:
    body = """
@playhead.tool(effects=["read"])
def research():
    book(1)
    dies()

@playhead.tool(effects=["write"])
def checkout():
    pay(5)
    dies()

{}()
"""
    recorded(tmp_path, body.format("research"), dies=True)
    assert "may have been done" in playhead(tmp_path, "resume", "@last").stderr
    assert lines(tmp_path, "booked") == ["1"]
    recorded(tmp_path, body.format("checkout"), dies=True)
    assert "irreversible" in playhead(tmp_path, "resume", "@last", "--in-flight", "retry").stderr
    assert lines(tmp_path, "paid") == ["5"]
    again = body.replace("{}()", "try:\n    checkout()\nexcept Exception:\n    checkout()")
    recorded(tmp_path, again, dies=True)
    assert answered(tmp_path, "resume", "@last", "--in-flight", "fail")["deviations"][0]["type"] == "irreversible"
    assert lines(tmp_path, "paid") == ["5", "5"]  # one of each recording


def test_an_irreversible_call_is_not_made_by_an_agent_that_tries_again(tmp_path: Path) -> None:
    body = """
@playhead.tool("charge", effects=["irreversible"])
def charge(number):
    wrote("paid", number)
    dies()
    return number

for _ in range(3):
    try:
        charge(1)
        break
    except Exception as error:
        print(type(error).__name__)
"""
    recorded(tmp_path, body, dies=True)
    found = answered(tmp_path, "resume", "@last", "--in-flight", "fail")
    assert lines(tmp_path, "paid") == ["1"]
    assert found["deviations"][0]["type"] == "irreversible"


def test_a_file_is_touched_only_by_a_program_that_goes_on(tmp_path: Path) -> None:
    recorded(tmp_path, 'look(1)\nwrote("out", "line")\ndies()\nlook(2)', dies=True)
    assert lines(tmp_path, "out") == ["line"]
    (tmp_path / "program.py").rename(tmp_path / "gone.py")
    assert playhead(tmp_path, "resume", "@last").returncode == 2
    assert lines(tmp_path, "out") == ["line"]
    written(tmp_path, 'look(5)\nwrote("out", "line")\nlook(2)')
    assert answered(tmp_path, "resume", "@last")["deviations"]
    assert lines(tmp_path, "out") == ["line"]
    written(tmp_path, 'look(1)\nwrote("out", "line")\nlook(2)')
    assert not answered(tmp_path, "resume", "@last", "--again")["deviations"]
    assert lines(tmp_path, "out") == ["line"]


def test_a_slow_write_and_one_that_is_shorter_the_second_time(tmp_path: Path) -> None:
    body = """
look(1)
with open("slow", "a") as file:
    time.sleep(1.5)
    file.write("line\\n")
dies()
look(2)
"""
    recorded(tmp_path, body, dies=True)
    assert answered(tmp_path, "resume", "@last")["exit_code"] == 0
    assert lines(tmp_path, "slow") == ["line"]
    recorded(
        tmp_path,
        'file = open("w", "w")\nlook(1)\nfile.write("long, from the first time\\n" if os.path.exists("die") else "short\\n")\n'
        "file.flush()\ndies()\nlook(2)\nfile.close()",
        dies=True,
    )
    assert answered(tmp_path, "resume", "@last")["exit_code"] == 0
    assert lines(tmp_path, "w") == ["short"]


def test_a_call_that_failed_and_was_handled_is_not_where_it_goes_on(tmp_path: Path) -> None:
    body = """
@playhead.tool(effects=["read"])
def fails():
    raise TimeoutError("late")

try:
    fails()
except TimeoutError:
    wrote("handled", "x")
    playhead.note("handled")
if os.path.exists("die"):
    raise ValueError("its own")
print("went on")
"""
    recorded(tmp_path, body, dies=True)
    done = playhead(tmp_path, "resume", "@last")
    assert done.stdout == "went on\n", done.stderr
    assert lines(tmp_path, "handled") == ["x"]


def test_what_a_pool_of_processes_did_is_not_what_holds_an_open_file_back(tmp_path: Path) -> None:
    body = """
import multiprocessing
if __name__ == "__main__":
    log = open("log", "a")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(look, range(2)))
    playhead.note("done")
    dies()
    log.write("end\\n")
    log.close()
"""
    recorded(tmp_path, body, dies=True)
    found = answered(tmp_path, "resume", "@last")
    assert found["exit_code"] == 0, found
    assert lines(tmp_path, "log") == ["end"]


def test_an_open_database_stops_it(tmp_path: Path) -> None:
    body = """
import sqlite3
database = sqlite3.connect("own.db")
database.execute("create table t (x)")
look(1)
dies()
look(2)
"""
    recorded(tmp_path, body, dies=True)
    found = answered(tmp_path, "resume", "@last")
    assert "own.db is open" in found["deviations"][0]["text"]


def test_a_step_that_is_live_lets_nothing_else_out(tmp_path: Path) -> None:
    body = """
wrote("loaded", "x")

@playhead.step
def plan(number, /, more=1):
    return book(number) + more

if __name__ == "__main__":
    print(plan(3, more=2))
"""
    recorded(tmp_path, body)
    found = answered(tmp_path, "replay", "@last", "--mode", "step", "--step", "plan", "--live")
    assert (found["how"], found["live_calls"]) == ("alone", 1), found
    assert lines(tmp_path, "loaded") == ["x"]
    assert lines(tmp_path, "booked") == ["3", "3"]
    recorded(tmp_path, body.replace('wrote("loaded", "x")', "look(9)"))
    again = answered(tmp_path, "replay", "@last", "--mode", "step", "--step", "plan")
    assert (again["how"], again["fidelity"]["verdict"]) == ("up_to", "faithful"), again


def test_a_run_that_was_stopped_is_never_the_same_and_what_was_refused_is_no_answer(tmp_path: Path) -> None:
    body = "print(book(look(1)))\nraise ValueError('too many')"
    recorded(tmp_path, body)
    stopped = answered(tmp_path, "fork", "@last", "--at", "look", "--set", "output=5")
    assert not stopped["outcome"]["same"]
    assert stopped["outcome"]["differences"][0]["what"] == "stopped"
    found = answered(tmp_path, "fork", stopped["run"], "--at", "look", "--unknown", "live")
    assert found["live_calls"] == 1
    assert lines(tmp_path, "booked") == ["1", "5"]


def test_bisection_does_not_guess(tmp_path: Path) -> None:
    body = """
import socket
@playhead.tool
def choose():
    return open("choice").read()
if choose() == "good":
    try:
        socket.create_connection(("127.0.0.1", 9), timeout=1)
    except OSError:
        pass
    sys.exit(0)
sys.exit(1)
"""
    (tmp_path / "choice").write_text("good")
    recorded(tmp_path, body)
    (tmp_path / "choice").write_text("bad")
    recorded(tmp_path, body)
    found = answered(tmp_path, "bisect", "@last~1", "@last")
    assert found["verdict"] == "not_found", found
    assert "no tape has" in json.dumps(found["unresolved"])


def test_objects_are_given_by_their_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
import dataclasses
@dataclasses.dataclass
class Doc:
    title: str
    body: str = "b"

@playhead.step
def shorten(doc):
    return doc.title[:3] + doc.body

if __name__ == "__main__":
    print(shorten(Doc("a title")))
"""
    recorded(tmp_path, body)
    options = ("--mode", "step", "--step", "shorten", "--input", "-")
    found: Any = answered(tmp_path, "replay", "@last", *options, stdin='{"doc": {"title": "other"}}')
    assert found["replayed"]["output"] == "othb"
