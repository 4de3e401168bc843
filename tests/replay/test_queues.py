"""Whichever of several threads was given an item of a queue is given it again, and who came too late does so again."""

from __future__ import annotations

import queue
import sys
from pathlib import Path

import pytest
from tests.replay.again import ASKING, record

import playhead

_TIMES = 2  # each replays twice
POOL = """
import queue, random, sys, threading, time
jobs, results = queue.{kind}(), queue.{kind}()
def work(name):
    while (job := jobs.get()) is not None:
        time.sleep(random.random() * 0.01)
        results.put((job, name))
threads = [threading.Thread(target=work, args=(name,){options}) for name in range(4)]
for thread in threads:
    thread.start()
for job in range(12):
    jobs.put(job)
print([results.get() for _ in range(12)])
"""
END = """
for thread in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("kind", ["Queue", "LifoQueue", "SimpleQueue"])
def test_each_worker_is_given_the_jobs_that_it_had(tmp_path: Path, kind: str) -> None:
    recorded = record(tmp_path, POOL.format(kind=kind, options="") + END)
    for _ in range(_TIMES):
        recorded.faithful()


def test_workers_that_were_killed_while_they_waited_take_nobody_elses_job(tmp_path: Path) -> None:
    recorded = record(tmp_path, POOL.format(kind="Queue", options=", daemon=True"))
    for _ in range(_TIMES):
        recorded.faithful()


WORKERS = ASKING + (
    "import queue, threading\n"
    "jobs, results = queue.PriorityQueue(), queue.Queue(2)\n"
    "def work():\n"
    "    while (job := jobs.get()) < 100:\n"
    '        results.put((job, ask(f"job {job}")))\n'
    "threads = [threading.Thread(target=work) for _ in range(int(sys.argv[2]))]\n"
    "for thread in threads:\n"
    "    thread.start()\n"
    "for job in range(8):\n"
    "    jobs.put(job)\n"
    "print([results.get() for _ in range(8)])\n"
    "for thread in threads:\n"
    "    jobs.put(100)\n"
    "for thread in threads:\n"
    "    thread.join()\n"
)


def test_workers_that_ask_a_model_ask_the_same_again(tmp_path: Path) -> None:
    recorded = record(tmp_path, WORKERS, "4", answers=list("abcdefgh"))
    for _ in range(_TIMES):
        recorded.faithful()


def test_fewer_workers_than_recorded_do_all_the_jobs(tmp_path: Path) -> None:
    recorded = record(tmp_path, WORKERS, "6", answers=list("abcdefgh"))
    recorded.faithful()
    entry = next(iter(playhead.load(recorded.run, tmp_path / ".playhead").events())).data["entrypoint"]
    found = recorded.report(program=[sys.executable, "program.py", str(entry["argv"][2]), "2"])
    assert found["exit_code"] == 0, found
    assert found["surface"]["taped"] == 8


RACES = {
    "several drain it": """
        import queue, random, threading, time
        jobs, did = queue.Queue(), queue.SimpleQueue()
        for job in range(20):
            jobs.put_nowait(job)
        def drain(name):
            while True:
                try:
                    job = jobs.get_nowait()
                except queue.Empty:
                    break
                time.sleep(random.random() * 0.005)
                did.put_nowait((name, job))
        threads = [threading.Thread(target=drain, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print([did.get_nowait() for _ in range(did.qsize())])
    """,
    "some come too late": """
        import queue, random, threading, time
        jobs, did = queue.Queue(), queue.Queue()
        def take(name):
            for _ in range(10):
                try:
                    did.put((name, jobs.get(timeout=0.004)))
                except queue.Empty:
                    did.put((name, "nothing"))
        threads = [threading.Thread(target=take, args=(name,)) for name in range(3)]
        for thread in threads:
            thread.start()
        for job in range(15):
            time.sleep(random.random() * 0.004)
            jobs.put(job)
        for thread in threads:
            thread.join()
        print([did.get() for _ in range(30)])
    """,
    "there is no room": """
        import queue, random, threading, time
        jobs, did = queue.Queue(2), []
        def offer(name):
            for number in range(8):
                try:
                    jobs.put((name, number), timeout=0.003)
                    did.append((name, number))
                except queue.Full:
                    did.append((name, "full"))
        threads = [threading.Thread(target=offer, args=(name,)) for name in range(3)]
        for thread in threads:
            thread.start()
        got = []
        while any(thread.is_alive() for thread in threads):
            try:
                got.append(jobs.get_nowait())
            except queue.Empty:
                pass
            time.sleep(random.random() * 0.004)
        print(got, sorted(did, key=str))
    """,
    "a condition of the program's own": """
        import random, threading, time
        items, did, changed = [], [], threading.Condition()
        def work(name):
            while True:
                with changed:
                    while not items:
                        changed.wait()
                    job = items.pop(0)
                    if job is None:
                        return
                    did.append((name, job))
                time.sleep(random.random() * 0.005)
                with changed:
                    did.append((name, "done"))
                    changed.notify_all()
        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)  # all of them wait now: who comes first to a lock is nobody's knowledge
        for job in range(12):
            with changed:
                items.append(job)
                changed.notify_all()
        with changed:
            changed.wait_for(lambda: len(did) == 24)
            items.extend([None] * 4)
            changed.notify_all()
        for thread in threads:
            thread.join()
        print(did)
    """,
    "a loop polls": """
        import asyncio, queue, random, threading, time
        jobs = queue.Queue()
        def work():
            for job in range(6):
                time.sleep(random.random() * 0.004)
                jobs.put(job)
        async def main():
            got = []
            thread = threading.Thread(target=work)
            thread.start()
            while len([job for job in got if job is not None]) < 6:
                try:
                    got.append(jobs.get_nowait())
                except queue.Empty:
                    got.append(None)
                await asyncio.sleep(0.002)
            thread.join()
            print(got)
        asyncio.run(main())
    """,
}


@pytest.mark.parametrize("program", RACES.values(), ids=RACES)
def test_a_race_for_a_queue_ends_as_it_did(tmp_path: Path, program: str) -> None:
    recorded = record(tmp_path, program)
    for _ in range(_TIMES):
        recorded.faithful()


@pytest.mark.skipif(not hasattr(queue, "ShutDown"), reason="queues are shut down from Python 3.13 on")
def test_a_queue_that_was_shut_down_is_again(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import queue, threading, time
        jobs, others, log = queue.Queue(), queue.Queue(), []
        def work():
            try:
                while True:
                    log.append(jobs.get())
            except queue.ShutDown:
                log.append("shut down")
            try:
                others.get(timeout=0.05)
            except queue.Empty:
                log.append("empty")
        thread = threading.Thread(target=work)
        thread.start()
        for job in range(3):
            jobs.put(job)
            time.sleep(0.01)
        jobs.shutdown()
        thread.join()
        print(log)
        """,
    )
    assert recorded.output == "[0, 1, 2, 'shut down', 'empty']\n"
    for _ in range(_TIMES):
        recorded.faithful()
