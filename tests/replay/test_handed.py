"""What functions read that a program hands to a pool, a thread or a loop is the program's, though nobody of it calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.again import record

_BEFORE = """
import asyncio, datetime, multiprocessing.pool, os, pathlib, random, subprocess, time, uuid
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
"""
_ASYNC = """
async def main():
    {}
asyncio.run(main())
"""
PROGRAMS = {
    "to_thread": _ASYNC.format(
        "do = asyncio.to_thread\n"
        "    print(await do(pathlib.Path('file').read_text), await do(os.listdir, '.'), await do(os.getenv, 'PATH'))\n"
        "    print(await do(time.time), await do(uuid.uuid4), await do(os.urandom, 4), await do(random.random))\n"
        "    print((await do(subprocess.run, ['date', '+%N'], capture_output=True)).stdout)\n"
        "    await do(pathlib.Path('new').write_text, 'new')\n"
        "    print(await do(pathlib.Path('new').read_text))\n"
        "    await do(os.unlink, 'new')\n"
    ),
    "run_in_executor": _ASYNC.format(
        "loop = asyncio.get_running_loop()\n"
        "    print(await loop.run_in_executor(None, datetime.datetime.now), await loop.run_in_executor(None, time.time))"
    ),
    "executor": (
        "with ThreadPoolExecutor(3) as pool:\n"
        "    print(pool.submit(random.randint, 1, 10**9).result(), list(pool.map(os.path.getmtime, ['file', '.'])))\n"
        "    print(pool.submit(time.strftime, '%H:%M:%S').result(), list(pool.map(os.path.exists, ['file', 'other'])))"
    ),
    "thread pool": (
        "with multiprocessing.pool.ThreadPool(2) as pool:\n"
        "    print(pool.map(os.path.getmtime, ['file']), pool.apply(time.time), pool.starmap(random.uniform, [(0, 1)]))"
    ),
    "processes": (
        "if __name__ == '__main__':\n"
        "    with ProcessPoolExecutor(1) as pool:\n"
        "        print(pool.submit(time.time).result(), pool.submit(uuid.uuid4).result())"
    ),
    "anyio": "import anyio\n"
    + _ASYNC.format("print(await anyio.to_thread.run_sync(time.time_ns), await anyio.Path('file').read_text())"),
    "trio": (
        "import trio\n"
        "async def main():\n"
        "    print(await trio.to_thread.run_sync(time.time_ns), await trio.Path('file').read_text())\n"
        "trio.run(main)"
    ),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_handed_over_reads_for_the_program(program: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("as it was\n")
    recorded = record(tmp_path, _BEFORE + program)
    (tmp_path / "file").write_text("as it is now\n")
    (tmp_path / "other").write_text("new\n")
    recorded.faithful()
    assert not (tmp_path / "new").exists()


def test_times_of_files_have_the_same_digits(tmp_path: Path) -> None:
    program = """
    import os
    for number in range(300):
        open("t", "w").close()
        facts = os.stat("t")
        print(facts.st_mtime, facts.st_ctime, facts.st_mtime_ns)
    """
    record(tmp_path, program).faithful()
