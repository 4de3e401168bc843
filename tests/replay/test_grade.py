"""A recording is graded by its own replay: each source is reproduced, or named."""

from __future__ import annotations

import json
from pathlib import Path

from tests.replay.again import ASKING, playhead, record


def test_every_source_of_a_program_is_reproduced(tmp_path: Path) -> None:
    recorded = record(
        tmp_path, ASKING + "import time, random, uuid\nprint(ask(f'{time.time()} {random.random()} {uuid.uuid4()}'))", answers=["yes"]
    )  # fmt: skip
    done = playhead(tmp_path, "grade", recorded.run, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "reproduced"
    verdicts = {row["source"]: row["verdict"] for row in found["sources"]}
    assert {"model calls", "clock", "random", "uuid"} <= set(verdicts)
    assert set(verdicts.values()) == {"reproduced"}


UNSEEN = """
import ctypes, os
# Past everything that can be watched: the C library itself is asked.
class Moment(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
now = Moment()
ctypes.CDLL(None).clock_gettime(0, ctypes.byref(now))
print(now.s, now.ns)
"""


def test_a_recording_whose_own_replay_differs_is_not_replayable(tmp_path: Path) -> None:
    recorded = record(tmp_path, UNSEEN)
    done = playhead(tmp_path, "grade", recorded.run)
    assert done.returncode == 1, done.stdout
    assert "differs" in done.stdout
    assert "stdout differs: line 1" in done.stdout
    assert "printed at program.py:8" in done.stdout
    refused = playhead(tmp_path, "replay", recorded.run, "--mode", "exact")
    assert refused.returncode == 1
    assert "self_replay_differs" in refused.stderr


def test_results_that_were_imported_later_are_no_part_of_what_the_program_did(tmp_path: Path) -> None:
    recorded = record(tmp_path, "print('done')")
    (tmp_path / "results.xml").write_text('<testsuite name="all"><testcase name="one"/></testsuite>')
    assert playhead(tmp_path, "import", "junit", "results.xml", "--run", recorded.run).returncode == 0
    recorded.faithful()
    assert playhead(tmp_path, "grade", recorded.run).returncode == 0


HIDDEN = """
import os, sys
class Moment(__import__("ctypes").Structure):
    _fields_ = [("s", __import__("ctypes").c_long), ("ns", __import__("ctypes").c_long)]
def unseen():
    now = Moment()
    __import__("ctypes").CDLL(None).clock_gettime(0, __import__("ctypes").byref(now))
    return now.ns
print("begin")
"""


def test_what_a_library_or_the_system_printed_is_named_by_the_last_line_that_is_known(tmp_path: Path) -> None:
    recorded = record(tmp_path, HIDDEN + "sys.stdout.flush()\nos.write(1, str(unseen()).encode())")
    done = playhead(tmp_path, "grade", recorded.run, "--json")
    (found,) = json.loads(done.stdout)["differences"]
    assert "the line before it was printed at program.py:9" in found["text"]
    assert "recorded in event" in found["text"]
    assert found["where"] == "program.py:9"


def test_a_line_without_an_end_and_a_file_that_was_written_are_named_by_their_line(tmp_path: Path) -> None:
    written = "open(f'{unseen()}.txt', 'w').close()\n"
    recorded = record(tmp_path, HIDDEN + f"{written}print(unseen(), file=sys.stderr, end='')")
    done = playhead(tmp_path, "grade", recorded.run)
    assert "was not recorded (at program.py:10)" in done.stdout
    assert "printed at program.py:11" in done.stdout


def test_record_grades_at_once_where_it_is_asked_to(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time\nprint(time.time())")
    import sys

    done = playhead(tmp_path, "record", "--grade", "--", sys.executable, "program.py")
    assert done.returncode == 0
    assert "reproduced: a replay of this run is the same, over the recorded surface" in done.stderr
