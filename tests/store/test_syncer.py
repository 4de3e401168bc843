"""The thread that brings lines to the disk: soon, and unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import playhead
from playhead.store.disk import Disk
from playhead.store.files import FileStore


def test_a_program_does_not_see_the_thread(tmp_path: Path) -> None:
    with playhead.record("x", store=tmp_path / "store"):
        playhead.note("a")
        assert [thread.name for thread in threading.enumerate() if "playhead" in thread.name] == []


def test_a_fork_finds_no_other_thread_and_everything_on_the_disk(tmp_path: Path) -> None:
    program = (
        "import os, playhead\n"
        "with playhead.record('x'):\n"
        "    playhead.note('a')\n"
        "    def threads(): return len(os.listdir('/proc/self/task'))\n"
        "    os.register_at_fork(after_in_parent=lambda: print(threads()))\n"
        "    child = os.fork()\n"
        "    if child == 0: playhead.note('child'); os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "    playhead.note('b')\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")


def test_lines_reach_the_disk_after_a_fork_too(tmp_path: Path) -> None:
    flushed = threading.Semaphore(0)

    class Noticed(Disk):
        def sync(self, descriptor: int) -> None:
            super().sync(descriptor)
            flushed.release()

    with playhead.record("x", store=FileStore(tmp_path / "store", disk=Noticed())):
        playhead.note("a")
        assert flushed.acquire(timeout=10)
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        while flushed.acquire(blocking=False):
            pass
        playhead.note("b")
        assert flushed.acquire(timeout=10)
