"""Who had in time what he waited for, and is not given it by changed code, is told so when nobody else can move."""

from __future__ import annotations

from pathlib import Path

from tests.replay.again import record

# Each waits for at most ten seconds for what a thread gives.
THREADS = """
import concurrent.futures, queue, threading, time
import playhead
playhead._limits.IN_VAIN_S = 0.2
GIVES = True
never = threading.Event()

def soon(give):
    def work():
        time.sleep(0.02)
        give() if GIVES else never.wait()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread

def event():
    one = threading.Event()
    soon(one.set)
    return one.wait(10)

def join():
    thread = soon(lambda: None)
    thread.join(10)
    return not thread.is_alive()

def condition():
    one, given = threading.Condition(), []
    def give():
        with one:
            given.append(1)
            one.notify_all()
    with one:
        soon(give)
        return bool(one.wait_for(lambda: given, 10))

def semaphore():
    one = threading.Semaphore(0)
    soon(one.release)
    return one.acquire(timeout=10)

def barrier():
    one = threading.Barrier(2)
    soon(one.wait)
    try:
        return one.wait(10) in (0, 1)
    except threading.BrokenBarrierError:
        return False

def result():
    one = concurrent.futures.Future()
    soon(lambda: one.set_result(True))
    try:
        return one.result(10)
    except TimeoutError:
        return False

def futures():
    one = concurrent.futures.Future()
    soon(lambda: one.set_result(True))
    return len(concurrent.futures.wait([one], 10).done) == 1

def looks():
    one = threading.Event()
    soon(one.set)
    for _ in range(20):
        if one.is_set():
            return True
        time.sleep(0.01)
    return False

for wait in (event, join, condition, semaphore, barrier, result, futures, looks):
    print(wait.__name__, wait())
"""
TASKS = """
import asyncio
GIVES = True

async def main():
    never = asyncio.Event()
    async def work():
        await asyncio.sleep(0.02)
        if not GIVES:
            await never.wait()
    done, pending = await asyncio.wait([asyncio.create_task(work()) for _ in range(2)], timeout=10)
    print(len(done), len(pending))

asyncio.run(main())
"""


def test_threads_that_are_given_nothing_any_more(tmp_path: Path) -> None:
    recorded = record(tmp_path, THREADS)
    assert [line.split()[1] for line in recorded.output.splitlines()] == ["True"] * 8
    recorded.faithful()
    (tmp_path / "program.py").write_text(THREADS.replace("GIVES = True", "GIVES = False"))
    found = recorded.replay()
    assert [line.split()[1] for line in found.output.splitlines()] == ["False"] * 8
    assert found.first["text"].startswith("stdout differs: line 1 was event True, and is event False")
    in_vain = {one["source"] for one in found.report["surface"]["drift"] if "waited in vain" in one["where"]}
    assert in_vain == {"threading.wait", "threading.join", "threading.look", "futures.wait"}


def test_tasks_that_are_given_nothing_any_more(tmp_path: Path) -> None:
    recorded = record(tmp_path, TASKS)
    assert recorded.output == "2 0\n"
    recorded.faithful()
    (tmp_path / "program.py").write_text(TASKS.replace("GIVES = True", "GIVES = False"))
    found = recorded.replay()
    assert found.output == "0 2\n"
    assert [one["source"] for one in found.report["surface"]["drift"]] == ["asyncio.timer"]
