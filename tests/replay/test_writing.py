"""What threads write comes in the order in which it was written, whether they print or log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.replay.again import ASKING, Recorded, record

import playhead

_TIMES = 1  # each replays twice
THREADS = """
import logging, threading, time
logging.basicConfig(level=logging.INFO, format="%(message)s")
def run(i):
    {say}("start %d" % i)
    time.sleep(0.02)
    {say}("end %d" % i)
for _ in range(3):
    threads = [threading.Thread(target=run, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.parametrize("say", ["print", "logging.info"])
def test_lines_of_threads_come_in_the_order_in_which_they_were_written(tmp_path: Path, say: str) -> None:
    recorded = record(tmp_path, THREADS.format(say=say))
    for _ in range(_TIMES):
        recorded.faithful()


def test_so_do_those_of_a_pool_that_asks_a_model(tmp_path: Path) -> None:
    program = ASKING + (
        "import logging\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        'logging.basicConfig(level=logging.INFO, format="%(message)s")\n'
        "def work(i):\n"
        '    print("asks", i)\n'
        '    found = ask("the same")\n'
        '    logging.info("answered %d", i)\n'
        '    print("done", i, len(found))\n'
        "with ThreadPoolExecutor(4) as pool:\n"
        "    list(pool.map(work, range(8)))\n"
    )
    recorded = record(tmp_path, program, answers=list("abcdefgh"))
    for _ in range(_TIMES):
        recorded.faithful()


def test_a_handler_that_writes_nothing_takes_nobodys_turn(tmp_path: Path) -> None:
    program = """
    import logging, random, sys, threading, time
    out = logging.StreamHandler(sys.stdout)
    out.addFilter(lambda record: record.args[0] % 3 != 0)
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[out, logging.FileHandler("own.log")])
    def run(name):
        for i in range(6):
            logging.info("%d of " + name, i)
            print("and", i, name, end=random.choice(" \\n"))
            time.sleep(random.random() * 0.002)
    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
        print("joined")
    open("own.log", "w").close()
    """
    recorded = record(tmp_path, program)
    for _ in range(_TIMES):
        recorded.faithful()


def test_a_loop_and_its_threads_write_in_the_same_order(tmp_path: Path) -> None:
    program = """
    import asyncio, logging, random, time
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    def work(i):
        logging.info("begins %d", i)
        time.sleep(random.random() * 0.01)
        print("works", i)
    async def task(i):
        for _ in range(2):
            print("task", i)
            await asyncio.to_thread(work, i)
            logging.info("after %d", i)
    async def main():
        await asyncio.gather(*(task(i) for i in range(5)))
    asyncio.run(main())
    """
    recorded = record(tmp_path, program)
    for _ in range(_TIMES):
        recorded.faithful()


def test_what_a_tool_prints_in_a_thread_is_nobodys_turn(tmp_path: Path) -> None:
    program = """
    import playhead, threading, time
    @playhead.tool
    def look(i):
        for word in ("looks", "sees"):
            print(word, i)
            time.sleep(0.003)
        return i
    def run(i):
        print("before", i)
        print("found", look(i))
        print("after", i)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    """
    recorded = record(tmp_path, program)
    for _ in range(_TIMES):
        recorded.faithful()


def test_one_who_holds_what_another_waits_for_goes_on_out_of_turn(tmp_path: Path) -> None:
    program = """
    import sys, threading, time
    first, lock = threading.Event(), threading.Lock()
    def run(name):
        with lock:
            print("has it", name)
    threads = [threading.Thread(target=run, args=(name,)) for name in "abcdef"]
    for thread in threads if len(sys.argv) == 1 else reversed(threads):
        thread.start()
    for thread in threads:
        thread.join()
    """
    recorded = record(tmp_path, program)
    found = recorded.replay(program=[sys.executable, "program.py", "reversed"])
    assert sorted(found.output.split("\n")) == sorted(recorded.output.split("\n"))


def test_a_handler_of_signals_may_print_while_its_thread_waits(tmp_path: Path) -> None:
    program = """
    import os, signal, threading, time
    signal.signal(signal.SIGUSR1, lambda *_: print("signalled"))
    def run(i):
        print("start", i)
        time.sleep(0.005)
        print("end", i)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    print("now")
    os.kill(os.getpid(), signal.SIGUSR1)
    for thread in threads:
        thread.join()
    """
    record(tmp_path, program).faithful()


def test_a_forked_child_writes_while_another_thread_of_its_parent_did(tmp_path: Path) -> None:
    program = """
    import os, sys, threading, time
    def run():
        for i in range(300):
            print("line", i)
    thread = threading.Thread(target=run)
    thread.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            print("forked", file=sys.stderr)
            os._exit(0)
        os.waitpid(child, 0)
    thread.join()
    """
    assert record(tmp_path, program).output.count("line") >= 300


def _turns(recorded: Recorded) -> list[Any]:
    run = playhead.load(recorded.run, recorded.folder / ".playhead")
    return [one.value for one in run.reads() if one.of == "output.write"]


def test_only_who_writes_after_another_thread_has_a_turn(tmp_path: Path) -> None:
    program = """
    import threading
    print("before")
    def run():
        for i in range(3):
            print(i)
    for _ in range(2):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    for _ in range(3):
        print("after")
    """
    turns = _turns(record(tmp_path, program))
    assert [number for number, _ in turns] == [1, 1]  # the second thread, and then the first one of the program
    assert turns == sorted(turns)


@pytest.mark.parametrize(
    "program",
    [
        "print('one')\nprint('two')",
        "import logging\nlogging.warning('one')\nlogging.warning('two')",
        "import asyncio\nasync def say(): print('one')\nasync def both(): await asyncio.gather(say(), say())\n"
        "asyncio.run(both())",
    ],
)
def test_a_program_with_one_thread_is_not_watched(tmp_path: Path, program: str) -> None:
    recorded = record(tmp_path, program + "\nimport sys\nassert 'write' not in vars(sys.stdout)\n")
    assert _turns(recorded) == []
