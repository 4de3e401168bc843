"""Every event whose call returned survives SIGKILL, and the next writer goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.store.children import command, environment, events, judge, texts

from playhead._ids import new_run_id
from playhead.store import presence
from playhead.store.disk import Disk
from playhead.store.files import FileStore

# One process that forks a victim per line it reads: starting Python 200 times would measure Python.
NURSERY = """
import os, sys, threading
import playhead, playhead.capture.record, playhead.capture.redact
out = int(sys.argv[1])

def work(run, name, lock):
    number = 0
    while True:
        size = (7, 300, 3000, 40_000)[number % 4]
        run.record("note.added", {"text": f"{name} {number}", "pad": str(number % 9) * size})
        if name == 0 and number % 5 == 0:
            playhead.context_pack({"pack": number})
            playhead.artifact("logs/a.txt", str(number))
        with lock:
            os.write(out, b"%d %d\\n" % (name, number))
        number += 1

for line in sys.stdin:
    threads = int(line)
    pid = os.fork()
    if pid:
        os.write(out, b"pid %d\\n" % pid)
        os.waitpid(pid, 0)
        os.write(out, b"dead\\n")
        continue
    with playhead.record("victim", store="store") as run:
        os.write(out, b"run %s\\n" % run.id.encode())
        lock = threading.Lock()
        for name in range(1, threads):
            threading.Thread(target=work, args=(run, name, lock), daemon=True).start()
        work(run, 0, lock)
"""


def kill_many(count: int, seed: int) -> None:
    made = random.Random(seed)
    reading, writing = os.pipe()
    nursery = subprocess.Popen(
        command(NURSERY, writing), env=environment(), stdin=subprocess.PIPE, pass_fds=[writing], text=True, bufsize=1
    )
    os.close(writing)
    assert nursery.stdin is not None
    store = FileStore("store")
    acked_in_all = 0
    with os.fdopen(reading, "r") as said, nursery:
        try:
            for _ in range(count):
                nursery.stdin.write(f"{made.choice([1, 1, 3])}\n")
                victim, run = 0, ""
                while not (victim and run):
                    what, value = said.readline().split()
                    if what == "pid":
                        victim = int(value)
                    else:
                        run = value
                time.sleep(made.random() ** 2 * 0.06)
                os.kill(victim, signal.SIGKILL)
                acked = []
                while (line := said.readline().strip()) != "dead":
                    acked.append(line)
                acked_in_all += len(acked)
                check_victim(store, run, acked)
        finally:
            nursery.kill()
    assert acked_in_all > count


def check_victim(store: FileStore, run: str, acked: list[str]) -> None:
    found = judge(store, run)
    assert found.integrity.verdict == "intact"
    assert found.completeness.verdict == "unfinished"
    assert found.missing == []
    assert not presence.is_held(store.folder(run))
    said = texts(events(store, run))
    assert set(acked) <= set(said), "an event whose call returned is gone"
    for name in {text.split()[0] for text in said}:
        own = [int(text.split()[1]) for text in said if text.split()[0] == name]
        assert own == list(range(len(own))), "what a thread recorded is there in order, with nothing left out"
    writer = store.ledger(run)
    writer.append("note.added", b'{"text":"next writer"}')
    writer.close()
    assert judge(store, run).integrity.verdict == "intact"
    assert texts(events(store, run))[-1] == "next writer"


def test_fifteen_random_kills_lose_nothing_that_was_acknowledged() -> None:
    kill_many(15, seed=1)


@pytest.mark.hard
def test_two_hundred_random_kills_lose_nothing_that_was_acknowledged() -> None:
    kill_many(200, seed=2)


def test_a_killed_run_says_what_was_in_flight(tmp_path: Path) -> None:
    program = """
import os, signal, playhead
with playhead.record("victim", store="store"):
    with playhead.step("plan"):
        with playhead.model_call(provider="openai", model="gpt-5", request={"q": 1}):
            os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(command(program), env=environment(), check=False)
    assert done.returncode == -signal.SIGKILL
    store = FileStore("store")
    (run,) = store.runs()
    *before, last = events(store, run)
    assert [event.kind for event in before] == ["run.started", "step.started", "model.invoked"]
    assert (last.data["what"], last.data["detail"]) == ("process.signalled", {"signal": 9})
    assert judge(store, run).completeness.verdict == "unfinished"


def test_a_blob_whose_writer_was_killed_half_way_is_whole_when_it_is_stored_again(tmp_path: Path) -> None:
    class Dying(Disk):
        def write(self, descriptor: int, data: bytes) -> int:
            os.write(descriptor, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
            return 0

    data = b"a large value" * 5000
    FileStore(tmp_path).ledger(new_run_id(), create=True).close()
    child = os.fork()
    if child == 0:
        FileStore(tmp_path, disk=Dying()).put_blob(data)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    store = FileStore(tmp_path)
    digest = store.put_blob(data)
    assert store.blob(digest) == data
    assert [path.name for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == [digest]
