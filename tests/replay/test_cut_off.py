"""A program that was cut off goes on: nothing of its files, its tools and its threads is done twice, or lost."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.replay.again import playhead
from tests.replay.going_on import PLAINLY, answered, lines, told
from tests.replay.test_promises import recorded, written

from playhead.testing import ScriptedProvider


def resumed(folder: Path, *options: str) -> None:
    found = answered(folder, "resume", "@last", *options)
    assert (found["exit_code"], found["deviations"]) == (0, []), found


# Files that are open.


def test_a_database_that_tools_write_to_is_left_as_it_is(tmp_path: Path) -> None:
    body = """
import sqlite3
db = sqlite3.connect("x.db")
@playhead.tool(effects=["write"])
def add(n):
    db.execute("create table if not exists t (x)")
    db.execute("insert into t values (?)", (n,))
    db.commit()
for n in range(2):
    add(n)
dies()
"""
    recorded(tmp_path, body, dies=True)
    found = answered(tmp_path, "resume", "@last")
    assert "x.db is open in the program" in found["deviations"][0]["text"]
    with sqlite3.connect(tmp_path / "x.db") as database:
        assert database.execute("select x from t").fetchall() == [(0,), (1,)]


def test_what_tools_wrote_to_the_log_of_the_program_stays(tmp_path: Path) -> None:
    body = """
import logging, subprocess
logging.basicConfig(filename="log", format="%(message)s", level="INFO")
report = open("report", "w", buffering=1)
@playhead.tool(effects=["write"])
def act(n):
    logging.info(f"tool {n}")
    report.write(f"tool {n}\\n")
for n in range(3):
    logging.info(f"round {n}")
    act(n)
    subprocess.run(["sh", "-c", f"echo shell {n} >> log"])
    if n == 1:
        dies()
"""
    recorded(tmp_path, body, dies=True)
    resumed(tmp_path)
    assert lines(tmp_path, "log") == [f"{what} {n}" for n in range(3) for what in ("round", "tool", "shell")]
    assert lines(tmp_path, "report") == [f"tool {n}" for n in range(3)]


def test_it_goes_on_in_a_folder_that_it_made(tmp_path: Path) -> None:
    body = """
import subprocess
os.makedirs("out", exist_ok=True)
os.chdir("out")
look(1)
if os.path.exists("../die"):
    os.kill(os.getpid(), 9)
wrote("own", "x")
subprocess.run(["sh", "-c", "echo y > others"])
"""
    recorded(tmp_path, body, dies=True)
    resumed(tmp_path)
    assert (lines(tmp_path / "out", "own"), lines(tmp_path / "out", "others")) == (["x"], ["y"])


def test_a_file_whose_folder_is_gone_is_made_again(tmp_path: Path) -> None:
    body = """
first, log = open("sub/x", "a", buffering=1), open("log", "a", buffering=1)
first.write("before\\n")
log.write("before\\n")
look(1)
dies()
first.write("after\\n")
log.write("after\\n")
"""
    (tmp_path / "sub").mkdir()
    recorded(tmp_path, body, dies=True)
    (tmp_path / "sub" / "x").unlink()
    (tmp_path / "sub").rmdir()
    resumed(tmp_path)
    assert lines(tmp_path, "log") == lines(tmp_path / "sub", "x") == ["before", "after"]


def test_a_log_that_was_there_before_has_every_line_once(tmp_path: Path) -> None:
    body = """
log = open("log", "a", buffering=1)
log.write("head\\n")
look(1)
log.write("middle\\n")
look(2)
dies()
log.write("last\\n")
"""
    (tmp_path / "log").write_text("before\n")
    recorded(tmp_path, body, dies=True)
    resumed(tmp_path)
    assert lines(tmp_path, "log") == ["before", "head", "middle", "last"]


def test_a_log_that_the_main_lane_opened_last_keeps_what_tools_wrote(tmp_path: Path) -> None:
    body = """
import asyncio, logging
logging.basicConfig(filename="log", format="%(message)s", level="INFO")
@playhead.tool(effects=["write"])
async def act(n):
    logging.info(f"tool {n}")
async def work(n):
    await act(n)
    logging.info(f"task {n}")
    await asyncio.sleep(0.2)
    if n == 2:
        dies()
    await act(n + 10)
async def main():
    await asyncio.gather(*(work(n) for n in range(3)))
asyncio.run(main())
"""
    recorded(tmp_path, body, dies=True)
    before = [line for line in lines(tmp_path, "log") if line.startswith(("tool", "task"))]
    found = answered(tmp_path, "resume", "@last", "--in-flight", "retry")
    assert (found["exit_code"], found["deviations"]) == (0, [])
    after = [line for line in lines(tmp_path, "log") if line.startswith(("tool", "task"))]
    assert after[: len(before)] == before
    assert sorted(set(after)) == sorted({*before, "tool 10", "tool 11", "tool 12"})
    assert len(after) == len(set(after))


# What was written last.


def test_what_was_read_before_the_last_write_is_read_as_it_was(tmp_path: Path) -> None:
    body = """
import json
look(1)
state = json.load(open("state"))
state.append("one")
with open("state", "w") as file:
    json.dump(state, file)
dies()
look(2)
"""
    (tmp_path / "state").write_text("[]")
    recorded(tmp_path, body, dies=True)
    resumed(tmp_path)
    assert json.loads((tmp_path / "state").read_text()) == ["one"]


@pytest.mark.parametrize(
    ("write", "read"),
    [
        ('f = open("n", "r+"); n = int(f.read()); f.seek(0); f.write(str(n + 1)); f.close()', "2"),
        ('import sqlite3; d = sqlite3.connect("n"); d.execute("create table t (x)"); d.commit(); d.close()', None),
    ],
    ids=["in place", "database"],
)
def test_what_cannot_be_undone_is_asked_about(tmp_path: Path, write: str, read: str | None) -> None:
    (tmp_path / "n").write_text("1" if read else "")
    recorded(tmp_path, f"look(1)\n{write}\ndies()\nlook(2)\n", dies=True)
    refused = playhead(tmp_path, "resume", "@last")
    assert refused.returncode == 2
    assert "opened for writing) is the last that is known" in refused.stderr
    assert "=retry" in refused.stderr
    if read is not None:
        assert (tmp_path / "n").read_text() == read
    (tmp_path / "n").write_text("1" if read else "")
    resumed(tmp_path, "--in-flight", "retry")


def test_a_thread_that_had_just_opened_a_file_writes_it(tmp_path: Path) -> None:
    body = """
def one():
    look(1)
    with open("out", "a") as file:
        time.sleep(0.6)
        file.write("one\\n")
def two():
    time.sleep(0.3)
    look(2)
    dies()
threads = [threading.Thread(target=each) for each in (one, two)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
    recorded(tmp_path, body, dies=True)
    resumed(tmp_path)
    assert lines(tmp_path, "out") == ["one"]


# Threads and tasks.


def test_what_was_done_beside_a_call_that_failed_stays_done(tmp_path: Path) -> None:
    body = """
from concurrent.futures import ThreadPoolExecutor
@playhead.tool(effects=["read"])
def slow():
    time.sleep(0.6)
    if os.path.exists("die"):
        raise TimeoutError("late")
    return "fine"
def second():
    time.sleep(0.2)
    wrote("log", "second")
    return book(1)
with ThreadPoolExecutor(2) as pool:
    first, other = pool.submit(slow), pool.submit(second)
    print(other.result())
print(first.result())
"""
    recorded(tmp_path, body, dies=True)
    resumed(tmp_path)
    assert (lines(tmp_path, "booked"), lines(tmp_path, "log")) == (["1"], ["second"])


PARALLEL = """
import asyncio, uuid
session = uuid.uuid4().hex
async def work(n):
    await asyncio.sleep(0.05 * n)
    book(f"{session} {n}")
    if n == 1:
        dies()
async def main():
    await asyncio.gather(*(work(n) for n in range(3)))
asyncio.run(main())
"""


def test_a_lane_that_causes_nothing_itself_is_told_by_the_tape(tmp_path: Path) -> None:
    recorded(tmp_path, PARALLEL, dies=True)
    resumed(tmp_path)
    assert len(lines(tmp_path, "booked")) == 3
    assert len({line.split()[0] for line in lines(tmp_path, "booked")}) == 1


def test_changed_code_is_not_let_out_before_the_last_event(tmp_path: Path) -> None:
    recorded(tmp_path, PARALLEL, dies=True)
    written(tmp_path, PARALLEL.replace("async def main():", "async def main():\n    book(99)"))
    assert answered(tmp_path, "resume", "@last")["deviations"]
    assert len(lines(tmp_path, "booked")) == 2
    body = 'look(1)\nwrote("out", "line")\nplayhead.note("done")\ndies()\nlook(2)\n'
    for added, deviates in (('playhead.note("new")', False), ("book(7)", True)):
        recorded(tmp_path, body, dies=True)
        (tmp_path / "booked").unlink(missing_ok=True)
        written(tmp_path, body.replace("look(1)", f"look(1)\n{added}"))
        assert bool(answered(tmp_path, "resume", "@last")["deviations"]) is deviates
        assert lines(tmp_path, "out") == ["line"]
        assert not lines(tmp_path, "booked")
        (tmp_path / "out").unlink()


def test_a_file_whose_name_is_not_on_the_tape_is_known_by_its_place(tmp_path: Path) -> None:
    recorded(tmp_path, "look(1)\nopen(f'{id(look)}', 'w').close()\ndies()\nbook(2)\n", dies=True)
    resumed(tmp_path)
    assert lines(tmp_path, "booked") == ["2"]


# Again and again.


LANES = """
import asyncio
def first():
    book(1)
thread = threading.Thread(target=first)
thread.start()
thread.join()
os.makedirs("made", exist_ok=True)
async def work(n):
    await asyncio.sleep(0.05)
    book(f"{n} a")
    playhead.note("half")
    book(f"{n} b")
async def main():
    await asyncio.gather(work(2), work(3))
asyncio.run(main())
dies()
book(4)
"""


def test_one_that_is_cut_off_while_it_is_told_by_the_tape_has_done_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, LANES, dies=True)
    run = answered(tmp_path, "show", "@last")["run"]["id"]
    written(tmp_path, LANES.replace('playhead.note("half")', "os.kill(os.getpid(), 9)"))
    cut = playhead(tmp_path, "resume", run)
    assert f"nothing was done: `playhead resume {run}`" in cut.stderr, cut.stderr
    written(tmp_path, LANES)
    again = answered(tmp_path, "resume", run)
    assert (again["exit_code"], again["deviations"]) == (0, [])
    assert sorted(lines(tmp_path, "booked")) == sorted(["1", "2 a", "3 a", "2 b", "3 b", "4"])


def test_one_that_is_cut_off_when_only_some_of_it_went_on_is_not_guessed_about(tmp_path: Path) -> None:
    body = """
import asyncio
@playhead.tool(effects=["read"])
async def fetch():
    if os.path.exists("die"):
        await asyncio.sleep(5)
    raise ConnectionError("down")
async def first():
    await fetch()
async def second():
    for n in range(2):
        await asyncio.sleep(0.2)
        book(n)
    dies()
async def main():
    await asyncio.gather(first(), second())
asyncio.run(main())
"""
    recorded(tmp_path, body, dies=True)
    run = answered(tmp_path, "resume", "@last")["run"]
    refused = playhead(tmp_path, "resume", run)
    assert refused.returncode == 2
    assert "neither it nor" in refused.stderr
    assert lines(tmp_path, "booked") == ["0", "1"]


def test_what_was_not_made_for_is_raised_again_in_the_next_one(tmp_path: Path) -> None:
    body = """
import subprocess
def run():
    subprocess.run(["sh", "-c", "echo x >> out; test ! -e die || kill -9 $PPID"])
try:
    run()
except playhead.InFlight:
    print("in flight")
book(1)
if os.path.exists("again"):
    os.kill(os.getpid(), 9)
book(2)
"""
    recorded(tmp_path, body, dies=True)
    (tmp_path / "again").touch()
    second = answered(tmp_path, "resume", "@last", "--in-flight", "fail")["run"]
    (tmp_path / "again").unlink()
    third = playhead(tmp_path, "resume", second)
    assert (third.returncode, third.stdout) == (0, "in flight\n")
    assert (lines(tmp_path, "out"), lines(tmp_path, "booked")) == (["x"], ["1", "2"])


def test_a_resume_that_did_nothing_does_not_count(tmp_path: Path) -> None:
    body = "look(0)\nbook(1)\nplayhead.note('two')\ndies()\nbook(3)\n"
    recorded(tmp_path, body, dies=True)
    run = answered(tmp_path, "show", "@last")["run"]["id"]
    written(tmp_path, body.replace("look(0)", "look(5)"))
    deviated = answered(tmp_path, "resume", run)
    assert deviated["deviations"]
    refused = playhead(tmp_path, "resume", deviated["run"])
    assert refused.returncode == 2
    assert f"playhead resume {run}" in refused.stderr
    written(tmp_path, body)
    resumed_run = answered(tmp_path, "resume", run)
    assert resumed_run["exit_code"] == 0
    assert lines(tmp_path, "booked") == ["1", "3"]
    assert "was resumed before" in playhead(tmp_path, "resume", run).stderr


def test_one_that_is_cut_off_again_counts_what_it_did(tmp_path: Path) -> None:
    recorded(
        tmp_path,
        "book(1)\nplayhead.note('left_tape', data={'left_tape': 1})\ndies()\nbook(2)\nbook(3)\nos.kill(os.getpid(), 9)\n",
        dies=True,
    )
    found = answered(tmp_path, "resume", "@last")
    assert (found["surface"]["taped"], found["live_calls"]) == (1, 2)


@pytest.mark.parametrize(
    "body",
    [
        "def attempt(n):\n    charge(n)\n",
        "@playhead.tool(effects=['write'])\ndef checkout():\n    charge(0)\ndef attempt(n):\n    charge(n) if n else checkout()\n",
    ],
    ids=["itself", "inside"],
)
def test_what_is_irreversible_is_done_once_however_it_is_tried(tmp_path: Path, body: str) -> None:
    charge = "@playhead.tool(effects=['irreversible'])\ndef charge(n):\n    wrote('paid', n)\n    dies()\n"
    trying = """
for n in range(3):
    try:
        attempt(n)
        break
    except playhead.InFlight:
        playhead.note("in flight")
        if os.path.exists("again"):
            os.kill(os.getpid(), 9)
"""
    recorded(tmp_path, charge + body + trying, dies=True)
    (tmp_path / "again").touch()
    again = answered(tmp_path, "resume", "@last", "--in-flight", "fail")["run"]
    (tmp_path / "again").unlink()
    stopped = answered(tmp_path, "resume", again)
    assert "irreversible" in stopped["deviations"][0]["text"]
    assert len(lines(tmp_path, "paid")) == 1


def test_a_rule_for_one_call_holds_for_one_that_only_reads_too(tmp_path: Path) -> None:
    body = "@playhead.tool(effects=['read'])\ndef slow():\n    dies()\n    return 1\nprint(slow())\n"
    recorded(tmp_path, body, dies=True)
    at = next(one["seq"] for one in _events(tmp_path) if one["kind"] == "tool.called")
    found = playhead(tmp_path, "resume", "@last", "--in-flight", f"{at}=skip", "--answer", "5")
    assert found.stdout == "5\n"


def test_a_tool_that_says_it_reads_and_had_written_is_asked_about(tmp_path: Path) -> None:
    body = "@playhead.tool(effects=['read'])\ndef slow():\n    wrote('log', 1)\n    dies()\nslow()\n"
    recorded(tmp_path, body, dies=True)
    assert "may have been done" in playhead(tmp_path, "resume", "@last").stderr


def _events(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in playhead(folder, "show", "@last", "--raw").stdout.splitlines()]


# Tools that run in a replay.


@pytest.mark.parametrize("sort", ["", "async "])
def test_what_takes_items_out_of_a_live_tool_stays_on_the_tape(tmp_path: Path, sort: str) -> None:
    body = f"""
import asyncio
@playhead.tool(effects=["write"])
{sort}def items(said):
    for n in range(2):
        wrote("tool", f"{{said}} {{n}}")
        yield n
async def main():
    said = ask("q")
    {sort}for n in items(said):
        wrote("agent", n)
        book(n)
asyncio.run(main())
"""
    with ScriptedProvider(told) as first:
        recorded(tmp_path, PLAINLY + body, first.base_url)
    for name in ("tool", "agent", "booked"):
        (tmp_path / name).unlink()
    with ScriptedProvider(lambda request: "another") as second:
        options = ("--mode", "model", "--unknown", "live", "--base-url", second.base_url)
        found = answered(tmp_path, "replay", "@last", *options)
    assert found["live_calls"] == 2
    assert lines(tmp_path, "tool") == ["another 0", "another 1"]
    assert not lines(tmp_path, "agent") + lines(tmp_path, "booked")
