"""The thread that brings lines to the disk: soon, and unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from tests.store.children import events, only_run, run_child, texts

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


def test_threads_that_fork_at_once_all_go_on() -> None:
    """One of them waits until the kernel has forgotten the thread while the others come to wait for it too."""
    run_child(
        "import os, threading, time, playhead\n"
        "real = os.path.exists\n"
        "def slowly(path):\n"
        "    time.sleep(0.1)\n"
        "    return real(path)\n"
        "def fork(place):\n"
        "    for _ in range(5):\n"
        "        playhead.note('a')\n"
        "        together.wait()\n"
        "        time.sleep(0.03 * place)\n"
        "        child = os.fork()\n"
        "        if child == 0: os._exit(0)\n"
        "        os.waitpid(child, 0)\n"
        "together = threading.Barrier(3)\n"
        "with playhead.record('x', store='store'):\n"
        "    os.path.exists = slowly\n"
        "    threads = [threading.Thread(target=fork, args=(place,)) for place in range(3)]\n"
        "    for thread in threads: thread.start()\n"
        "    for thread in threads: thread.join()\n",
        timeout=60,
    )
    assert len(texts(events(*only_run(Path("store"))))) == 15


def test_a_fork_in_a_handler_that_interrupted_a_write_does_not_wait_for_the_thread_that_waits_for_the_write() -> None:
    """The thread wants to write as well, and cannot before the handler has returned."""
    done = run_child(
        "import os, signal, time, threading, playhead\n"
        "from playhead.store import syncer\n"
        "from playhead.store.disk import Disk\n"
        "from playhead.store.files import FileStore\n"
        "class Interrupted(Disk):\n"
        "    at = 0\n"
        "    def lock(self, descriptor, operation):\n"
        "        super().lock(descriptor, operation)\n"
        "        if self.at == 1:\n"
        "            self.at = 2\n"
        "            signal.raise_signal(signal.SIGUSR1)\n"
        "def handler(number, frame):\n"
        "    began.set()\n"
        "    reached.wait()\n"
        "    child = os.fork()\n"
        "    if child == 0: os._exit(0)\n"
        "    print(os.waitpid(child, 0)[1])\n"
        "began, reached, written = threading.Event(), threading.Event(), threading.Event()\n"
        "def chore():\n"
        "    began.wait()\n"
        "    reached.set()\n"
        "    run.record('note.added', {'text': 'by the thread'})\n"
        "    written.set()\n"
        "signal.signal(signal.SIGUSR1, handler)\n"
        "disk = Interrupted()\n"
        "with playhead.record('x', store=FileStore('store', disk=disk)) as run:\n"
        "    syncer._chore, syncer._due = chore, time.monotonic()\n"
        "    syncer._written()\n"
        "    disk.at = 1\n"
        "    playhead.note('a')\n"
        "    written.wait()\n",
        timeout=60,
    )
    assert done.stdout == "0\n"
    assert sorted(texts(events(*only_run(Path("store"))))) == ["a", "by the thread"]


def test_the_thread_gets_none_of_the_signals_that_the_program_blocks_in_its_own() -> None:
    done = run_child(
        "import os, signal, playhead\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('handled'))\n"
        "with playhead.record('x', store='store'):\n"
        "    playhead.note('a')\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    playhead.note('b')\n"
        "    print('blocked')\n"
        "    print(signal.sigpending() == {signal.SIGUSR1})\n"
        "    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])\n"
    )
    assert done.stdout == "blocked\nTrue\nhandled\n"
