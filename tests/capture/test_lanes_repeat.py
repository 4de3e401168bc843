"""Two recordings of one deterministic concurrent program have the same lanes, whatever the scheduling."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.capture.launching import assert_whole, launched
from tests.capture.test_lanes import run_lanes

import playhead
from playhead.store.files import FileStore

PROGRAM = """
import asyncio, contextvars, functools, importlib.util, multiprocessing, sys, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool
import playhead

@playhead.tool
def act(name):
    return name

def nested(name):
    act(name)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(act, [f"{name}/{number}" for number in range(3)]))

async def work(name):
    act(name)
    await asyncio.sleep(0)
    await asyncio.to_thread(act, f"{name} in a thread")
    act(f"{name} again")

async def tasks(name):
    await asyncio.gather(*(work(f"{name} gather {number}") for number in range(4)))
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(work(f"{name} group {number}"))
    for done in asyncio.as_completed([work(f"{name} completed {number}") for number in range(4)]):
        await done
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(None, nested, f"{name} executor {number}") for number in range(3)))
    await asyncio.wait_for(work(f"{name} waited for"), 60)
    cancelled = asyncio.create_task(asyncio.sleep(60))
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    async def generator():
        try:
            yield 1
            yield 2
        finally:
            act(f"{name} generator")
    async for _ in generator():
        break
    await asyncio.sleep(0)
    context = contextvars.copy_context()
    await asyncio.gather(loop.create_task(work(f"{name} context"), context=context), work(f"{name} beside"))
    act(f"{name} end")

def threads(name):
    started = [threading.Thread(target=nested, args=(f"{name} thread {number}",)) for number in range(4)]
    for each in started:
        each.start()
    act(f"{name} meanwhile")
    for each in started:
        each.join()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    handed = [asyncio.run_coroutine_threadsafe(work(f"{name} handed {number}"), loop) for number in range(3)]
    for each in as_completed(handed):
        each.result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()

def pools():
    with ThreadPool(3) as pool:
        results = [pool.apply_async(nested, (f"apply {number}",)) for number in range(3)]
        pool.map(act, [f"map {number}" for number in range(10)])
        list(pool.imap_unordered(act, (act(f"drawn {number}") for number in range(4))))
        for each in results:
            each.get()
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(act, [f"process {number}" for number in range(4)]))
    with multiprocessing.Pool(2) as pool:
        pool.map(act, [f"pool {number}" for number in range(6)], chunksize=2)
        pool.close()
        pool.join()
    processes = [multiprocessing.Process(target=nested, args=(f"child {number}",)) for number in range(2)]
    for each in processes:
        each.start()
    for each in processes:
        each.join()

async def in_anyio(name):
    import anyio, anyio.from_thread, anyio.to_thread
    async def one(label):
        await anyio.to_thread.run_sync(nested, f"{label} nested")
        act(label)
    async def back():
        act(f"{name} back")
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(one, f"{name} {number}")
    await anyio.to_thread.run_sync(anyio.from_thread.run, back)

async def in_trio():
    import trio
    async def one(label, task_status=None):
        if task_status is not None:
            task_status.started()
        await trio.to_thread.run_sync(act, f"{label} in a thread")
        act(label)
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(one, f"trio {number}")
        await nursery.start(one, "trio started")

def is_there(name):
    return importlib.util.find_spec(name) is not None

if __name__ == "__main__":
    asyncio.run(tasks("main"))
    threads("main")
    loops = [threading.Thread(target=asyncio.run, args=(tasks(f"loop {number}"),)) for number in range(2)]
    for each in loops:
        each.start()
    threads("beside")
    for each in loops:
        each.join()
    pools()
    if is_there("anyio"):
        import anyio
        anyio.run(functools.partial(in_anyio, "anyio"))
        if is_there("trio"):
            anyio.run(functools.partial(in_anyio, "anyio on trio"), backend="trio")
    if is_there("trio"):
        import trio
        trio.run(in_trio)
    if is_there("uvloop"):
        import uvloop
        uvloop.run(tasks("uvloop"))
    act("end")
"""


@contextmanager
def load() -> Iterator[None]:
    """Keep every processor busy, one of them twice over."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def same_lanes(tmp_path: Path, times: int) -> None:
    program, store = tmp_path / "program.py", tmp_path / "store"
    program.write_text(PROGRAM)
    with load():
        for _ in range(times):
            code, out, err = launched(store, [sys.executable, str(program)])
            assert (code, out, err) == (0, b"", b"")
    found = [playhead.load(run, store=store) for run in FileStore(store).runs()]
    assert len(found) == times
    first = run_lanes(found[0])
    assert len(first) > 250
    for run in found:
        assert_whole(run)
        assert not [event.data for event in run.events() if event.kind == "gap.noted"]
        lanes = run_lanes(run)
        differing = {name for name in first | lanes if first.get(name) != lanes.get(name)}
        assert {name: (first.get(name), lanes.get(name)) for name in differing} == {}


def test_a_program_of_every_concurrency_has_the_same_lanes_each_time(tmp_path: Path) -> None:
    same_lanes(tmp_path, 3)


@pytest.mark.hard
@pytest.mark.timeout(1800)
def test_and_fifty_times_over(tmp_path: Path) -> None:
    same_lanes(tmp_path, 50)
