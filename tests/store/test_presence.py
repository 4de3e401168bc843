from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from playhead.store import presence

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="runs are not held on Windows")

HOLDER = """
import sys, time
from playhead.store import presence
presence.hold(sys.argv[1])
print("held", flush=True)
time.sleep(60)
"""


def start_holder(run_dir: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(run_dir)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_run_is_held_until_its_last_holder_lets_go(tmp_path: Path) -> None:
    assert not presence.is_held(tmp_path)
    first, second = presence.hold(tmp_path), presence.hold(tmp_path)
    assert presence.is_held(tmp_path)
    os.close(first)
    assert presence.is_held(tmp_path)
    os.close(second)
    assert not presence.is_held(tmp_path)


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    process = start_holder(tmp_path)
    try:
        assert presence.is_held(tmp_path)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not presence.is_held(tmp_path)


def test_a_program_that_the_holder_started_does_not_keep_the_run(tmp_path: Path) -> None:
    fd = presence.hold(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        os.close(fd)
        assert not presence.is_held(tmp_path)
    finally:
        child.communicate(b"\n")


def test_a_directory_that_is_not_there_is_held_by_nobody(tmp_path: Path) -> None:
    assert not presence.is_held(tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        presence.hold(tmp_path / "gone")


def test_probes_never_keep_a_writer_from_holding(tmp_path: Path) -> None:
    stop = threading.Event()

    def probe() -> None:
        while not stop.is_set():
            presence.is_held(tmp_path)

    threads = [threading.Thread(target=probe) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            os.close(presence.hold(tmp_path))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
