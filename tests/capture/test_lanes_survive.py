"""What ends, interrupts and outlives: no crash, no lost event, no cross-talk between runs."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.capture.launching import assert_whole, launched, only_run, written
from tests.capture.test_lanes import act, recorded, run_lanes, started

import playhead

ACTS = """
import asyncio, gc, os, signal, sys, threading, time
import playhead
@playhead.tool
def act(name):
    return name
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def run_of(tmp_path: Path, store: Path, code: str, gap: str = "") -> tuple[playhead.Run, int, bytes]:
    """Run a program under the launcher, and return its whole run, its exit code and what it complained about.

    `gap` is what is named as not captured, where anything is.
    """
    path = tmp_path / "program.py"
    path.write_text(ACTS + code)
    ended, _, err = launched(store, [sys.executable, str(path)])
    run = only_run(store)
    assert_whole(run)
    gaps = [event.data for event in run.events() if event.kind == "gap.noted"]
    assert [found["detail"]["where"].partition(" at ")[0] for found in gaps] == ([gap] if gap else [])
    return run, ended, err


def names(run: playhead.Run) -> list[str]:
    return [event.data["input"]["name"] for event in run.events() if event.kind == "tool.called"]


def test_a_handler_of_a_signal_records_wherever_it_strikes(tmp_path: Path, store: Path) -> None:
    code = """
counted = 0
def handle(*_):
    global counted
    counted += 1
    act(f"signal {counted}")
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
number = 0
while counted < 50:
    number += 1
    act(f"main {number}")
signal.setitimer(signal.ITIMER_REAL, 0)
act(f"{number} {counted}")
"""
    run, ended, err = run_of(tmp_path, store, code, "an alarm that repeats")
    assert (ended, err) == (0, b"")
    found = names(run)
    number, counted = map(int, found[-1].split())
    assert sorted(found[:-1]) == sorted(
        [f"main {each + 1}" for each in range(number)] + [f"signal {each + 1}" for each in range(counted)]
    )
    answered = [event for event in run.events() if event.kind == "tool.returned"]
    assert len(answered) == len(found)


def test_a_thread_that_exits_and_one_that_raises_end_as_they_do_without_us(tmp_path: Path, store: Path) -> None:
    code = """
def leave():
    act("leaves")
    sys.exit(3)
def fail():
    act("fails")
    raise ValueError("no")
for target in (leave, fail):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
act("end")
"""
    run, ended, err = run_of(tmp_path, store, code)
    assert (ended, err.count(b"Traceback"), b"ValueError: no" in err) == (0, 1, True)
    assert run_lanes(run) == {"leaves": "0.1", "fails": "0.2", "end": "0"}


def test_threads_that_outlive_the_main_one_are_recorded_to_their_end(tmp_path: Path, store: Path) -> None:
    code = """
def late(name):
    threading.main_thread().join()
    act(name)
for name in "ab":
    threading.Thread(target=late, args=(name,)).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
"""
    run, ended, err = run_of(tmp_path, store, code)
    assert (ended, err, run_lanes(run)) == (0, b"", {"a": "0.1", "b": "0.2"})


def test_a_thread_that_outlives_its_run_breaks_nothing_and_writes_into_no_other() -> None:
    hold = threading.Event()

    def late() -> None:
        hold.wait()
        act("late")
        started(act, "later").join()

    with playhead.record("first") as first:
        thread = started(late)
    with playhead.record("second") as second:
        hold.set()
        thread.join()
        act("second")
    assert [run_lanes(playhead.load(str(run.id))) for run in (first, second)] == [{}, {"second": "0"}]
    for run in (first, second):
        assert_whole(playhead.load(str(run.id)))


def test_cancelled_tasks_say_so_and_lose_nothing() -> None:
    async def work(name: str) -> None:
        with playhead.step(name):
            try:
                await asyncio.sleep(60)
            finally:
                act(name)

    async def main() -> None:
        tasks = [asyncio.create_task(work(name)) for name in "ab"]
        await asyncio.sleep(0)
        tasks[0].cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tasks[1], 0.01)
        with pytest.raises(ExceptionGroup):
            await group()

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work("c"))
            await asyncio.sleep(0)
            raise ValueError("no")

    found = recorded(lambda: asyncio.run(main()))
    assert {name: found[name] for name in "ab"} == {"a": "0.1", "b": "0.2"}
    assert found["c"].startswith("0.")


def _generator(name: str) -> Iterator[int]:
    with playhead.step(f"step {name}"):
        try:
            yield 1
            yield 2
        finally:
            act(name)


def test_generators_that_the_collector_finalises_lose_nothing(tmp_path: Path, store: Path) -> None:
    code = """
def generator(name):
    with playhead.step(f"step {name}"):
        try:
            yield 1
        finally:
            act(name)

class Cycle:
    def __init__(self, name):
        self.generator, self.me = generator(name), self
        next(self.generator)

ran = []  # one that is finalised when the loop has ended is dropped by asyncio itself
async def agen(name):
    try:
        yield 1
    finally:
        ran.append(name)
        act(name)

class AsyncCycle:
    def __init__(self, name):
        self.generator, self.me = agen(name), self

def thread(which):
    for number in range(20):
        Cycle(f"{which}.{number}")
        act(f"{which}:{number}")

async def main():
    for number in range(10):
        cycle = AsyncCycle(f"async {number}")
        await anext(cycle.generator)
        del cycle
        act(f"task {number}")
        gc.collect()
        await asyncio.sleep(0)

gc.set_threshold(30, 2, 2)
threads = [threading.Thread(target=thread, args=(which,)) for which in "ab"]
for each in threads: each.start()
asyncio.run(main())
for each in threads: each.join()
gc.collect()
act("end")
print(",".join(ran))
"""
    run, ended, err = run_of(tmp_path, store, code)
    assert (ended, err) == (0, b"")
    expected = {f"{which}{sign}{number}" for which in "ab" for sign in ".:" for number in range(20)}
    expected |= {f"task {number}" for number in range(10)} | {"end"}
    expected |= set(written(run, "stdout").decode().strip().split(","))
    assert sorted(names(run)) == sorted(expected)
    opened = [event.span for event in run.events() if event.kind in ("step.started", "tool.called")]
    closed = [event.span for event in run.events() if event.kind in ("step.finished", "tool.returned")]
    assert sorted(map(str, opened)) == sorted(map(str, closed))


def test_a_generator_that_is_dropped_is_recorded_in_the_lane_that_drops_it() -> None:
    def drop(name: str) -> None:
        for _ in _generator(name):
            break

    def main() -> None:
        drop("main")
        started(drop, "thread").join()
        gc.collect()

    assert recorded(main) == {"main": "0", "thread": "0.1"}


def test_two_runs_in_two_threads_do_not_mix() -> None:
    meet = threading.Barrier(2)
    runs: dict[str, str] = {}

    async def work(name: str) -> None:
        await asyncio.to_thread(act, f"{name} in a thread")
        await asyncio.sleep(0)
        act(name)

    async def main(which: str) -> None:
        await asyncio.gather(*(work(f"{which}{number}") for number in range(10)))

    def agent(which: str) -> None:
        with playhead.record(which) as run:
            meet.wait()
            asyncio.run(main(which))
            meet.wait()
        runs[which] = str(run.id)
        assert run.lost == 0

    threads = [started(agent, which) for which in "ab"]
    for thread in threads:
        thread.join()
    for which in "ab":
        run = playhead.load(runs[which])
        assert_whole(run)
        expected = {f"{which}{number}": f"0.{number + 1}" for number in range(10)}
        expected |= {f"{which}{number} in a thread": f"0.{number + 1}.1" for number in range(10)}
        assert run_lanes(run) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from 3.12 on, for a fork beside threads
def test_forks_from_threads_at_the_same_time_have_the_lanes_of_their_threads() -> None:
    def fork(name: str) -> None:
        for number in range(5):
            child = os.fork()
            if child == 0:
                act(f"{name} {number}")
                os._exit(0)
            os.waitpid(child, 0)

    def main() -> None:
        threads = [started(fork, name) for name in "abc"]
        for thread in threads:
            thread.join()

    expected = {
        f"{name} {number}": f"0.{place}.{number + 1}" for place, name in enumerate("abc", 1) for number in range(5)
    }
    assert recorded(main) == expected


def test_exec_keeps_the_run(tmp_path: Path, store: Path) -> None:
    code = """
act("before" if len(sys.argv) == 1 else "after")
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
"""
    run, ended, err = run_of(tmp_path, store, code, f"{Path(sys.executable).name}, by os.exec")
    assert (ended, err, run_lanes(run)) == (0, b"", {"before": "0", "after": "1"})
