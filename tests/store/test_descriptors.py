"""A recorder lives in a program that was not made for it: files that the program closes, numbers that it uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import playhead
from playhead import _limits
from playhead.store.files import FileStore


def test_a_program_gets_the_numbers_for_its_files_that_it_gets_without_a_recorder(tmp_path: Path) -> None:
    program = "import os, sys, playhead\n%sprint(os.open('/dev/null', os.O_RDONLY))"
    plain = subprocess.check_output([sys.executable, "-c", program % ""])
    inside = subprocess.check_output([sys.executable, "-c", program % "run = playhead.record('x').__enter__(); "])
    assert plain == inside


@pytest.mark.parametrize("reused", [False, True])
def test_a_program_that_closes_every_file_is_recorded_on_and_its_own_files_are_left_alone(
    tmp_path: Path, reused: bool
) -> None:
    with playhead.record("daemon", store=tmp_path / "store") as run:
        playhead.note("before")
        ours = [int(name) for name in os.listdir("/proc/self/fd") if int(name) >= _limits.DESCRIPTOR_MIN]
        mine = []
        for number in ours:
            os.close(number)
            if reused:
                file = os.open(tmp_path / f"mine-{number}", os.O_RDWR | os.O_CREAT)
                os.dup2(file, number)
                os.close(file)
                mine.append(number)
        playhead.note("after")
    assert all(os.fstat(number).st_size == 0 for number in mine), "nothing was written there"
    for number in mine:
        os.close(number)  # still open: it is the program's
    (found,) = FileStore(tmp_path / "store").runs()
    loaded = playhead.load(found, store=tmp_path / "store")
    assert found == run.id
    assert [event.data["text"] for event in loaded.events() if event.kind == "note.added"] == ["before", "after"]
    assert loaded.verify(deep=True).level == "self-consistent"


def test_where_no_high_numbers_are_allowed_low_ones_are_used(tmp_path: Path) -> None:
    program = (
        "import playhead, resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "with playhead.record('x') as run: playhead.note('fits')\n"
        "print(playhead.load(run.id).verify().level)"
    )
    assert subprocess.check_output([sys.executable, "-c", program]) == b"self-consistent\n"
