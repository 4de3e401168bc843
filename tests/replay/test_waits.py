"""Threads that wait for each other go on as they did, whether they had to wait or what they waited for was there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.again import record

# Work of a length that no replay has again: who waits has to wait in one of them, and not in the other.
BURN = """
import concurrent.futures, hashlib, queue, threading, time
def burn(times):
    found = b"x"
    for _ in range(times % 3000):
        found = hashlib.sha256(found).digest()
"""
RACES = {
    "events": """
        jobs = queue.Queue()
        def work():
            while (job := jobs.get()) is not None:
                burn(job[0])
                job[1].set()
        thread = threading.Thread(target=work)
        thread.start()
        for k in range(40):
            event = threading.Event()
            jobs.put((k * 7919, event))
            burn(k * 104729)
            print(event.wait(0.001), end=" ")
            event.wait()
        jobs.put(None)
        thread.join()
    """,
    "futures": """
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for k in range(30):
                futures = [pool.submit(burn, k * factor) for factor in (7919, 104729, 1299709)]
                try:
                    futures[0].result(timeout=0.001)
                    print("in time", end=" ")
                except TimeoutError:
                    print("late", end=" ")
                print(len(concurrent.futures.wait(futures, timeout=0.002).done), futures[1].done(), end=" ")
                for future in futures:
                    future.result()
    """,
    "semaphores": """
        limit, log = threading.Semaphore(2), []
        def work(name):
            for k in range(5):
                if limit.acquire(timeout=0.002):
                    burn(k * 7919 * (name + 1))
                    limit.release()
                    log.append((name, k))
                else:
                    log.append((name, "late"))
        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in range(4):
            print([what for who, what in log if who == name])
    """,
    "conditions": """
        condition, items, log = threading.Condition(), [], []
        def consume(name):
            for _ in range(4):
                with condition:
                    log.append((name, items.pop(0) if condition.wait_for(lambda: items, timeout=10) else None))
        threads = [threading.Thread(target=consume, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for number in range(16):
            time.sleep(0.005)
            with condition:
                items.append(number)
                condition.notify_all()
        for thread in threads:
            thread.join()
        print(log)
    """,
    "a starting gun": """
        log = []
        for timeout in (5, None):
            go = threading.Event()
            threads = [threading.Thread(target=lambda n: (go.wait(timeout), log.append(n)), args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            time.sleep(0.02)
            go.set()
            for thread in threads:
                thread.join()
        print(log)
    """,
    "as_completed": """
        def nap(seconds):
            time.sleep(seconds)
            return seconds
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(nap, seconds) for seconds in (0.05, 0.1, 0.6)]
            try:
                for future in concurrent.futures.as_completed(futures, timeout=0.3):
                    print(future.result())
            except TimeoutError as problem:
                print(problem)
    """,
}


@pytest.mark.parametrize("program", RACES.values(), ids=RACES)
def test_each_goes_on_as_it_did(tmp_path: Path, program: str) -> None:
    recorded = record(tmp_path, BURN + "\n".join(line[8:] for line in program.splitlines()))
    for _ in range(2):
        recorded.faithful()


def test_threads_that_read_one_file(tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("be brief " * 5000)
    recorded = record(
        tmp_path,
        """
        import threading
        found = []
        threads = [threading.Thread(target=lambda: found.append(len(open("prompt.txt").read()))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(found)
        """,
    )
    for _ in range(3):
        recorded.faithful()


def test_a_worker_that_dies_holds_up_nobody(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import concurrent.futures, os, time
        if __name__ == "__main__":
            with concurrent.futures.ProcessPoolExecutor(1) as pool:
                future = pool.submit(os._exit, 3)
                print(type(future.exception()).__name__)
            with concurrent.futures.ProcessPoolExecutor(1) as pool:
                jobs = [pool.submit(time.sleep, 0.2) for _ in range(8)]
                print(jobs[-1].cancel())
            time.sleep(0.01)
            print("end")
        """,
    )
    assert recorded.output == "BrokenProcessPool\nTrue\nend\n"
    recorded.faithful()


def test_time_passes_for_one_that_sleeps_and_looks_at_the_clock_longer_than_it_did(tmp_path: Path) -> None:
    program = """
    import time
    end, times = time.monotonic() + 0.2, 0
    while time.monotonic() < end:
        times += 1
        time.sleep(0.05)
    print(times < 6)
    """
    recorded = record(tmp_path, program)
    assert recorded.output == "True\n"
    (tmp_path / "program.py").write_text("if True:\n" + program.replace("+ 0.2", "+ 60").replace("times < 6", "times"))
    assert 1190 <= int(recorded.replay().output) <= 1210


HEARTBEAT = """
import subprocess, threading, time
import playhead
playhead._limits.STUCK_S = 1.0
done = threading.Event()
def beat():
    while True:
        time.sleep(0.01)
def work():
    time.sleep(0.05)
    subprocess.run(["echo", "hello"], stdout=subprocess.DEVNULL)
    done.set()
threading.Thread(target=beat, daemon=True).start()
threading.Thread(target=work).start()
print(done.wait(TIMEOUT))
"""


def test_one_that_only_passes_its_time_keeps_no_replay_alive(tmp_path: Path) -> None:
    program = HEARTBEAT.replace("TIMEOUT", "1")
    recorded = record(tmp_path, program)
    assert recorded.output == "True\n"
    recorded.faithful()
    (tmp_path / "program.py").write_text(program.replace("done.set()", "pass"))
    assert recorded.replay().output == "False\n"


def test_nor_does_it_after_a_deviation(tmp_path: Path) -> None:
    program = HEARTBEAT.replace("TIMEOUT", "")
    recorded = record(tmp_path, program)
    recorded.faithful()
    (tmp_path / "program.py").write_text(program.replace("hello", "bye"))
    found = recorded.replay()
    assert found.exit_code == 1
    assert "does not come to an end after the deviation" in found.errors
    assert "[-hello-] {+bye+}" in found.first["text"]
