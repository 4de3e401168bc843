"""What a thread saw that looked whether another was done, it sees again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.again import record

LOOKS = {
    "a thread": ("threading.Thread(target=work)", "one.is_alive()"),
    "an event": ("Marked()", "not one.is_set()"),
    "a future": ("pool.submit(work)", "not one.done()"),
}
# How often one looks is up to how long the other computes.
PROGRAM = """
    import concurrent.futures, threading, time
    def work():
        for _ in range(9000):
            sum(range(1000))
    class Marked(threading.Event):
        def start(self):
            def mark():
                work()
                self.set()
            threading.Thread(target=mark).start()
    pool = concurrent.futures.ThreadPoolExecutor()
    one = {made}
    if hasattr(one, "start"):
        one.start()
    looked = 0
    while {look}:
        looked += 1
        {between}
    print(looked, [{look} for _ in range(3)])
"""


# In a replay a sleep takes no time, and comes after all that is computed.
BETWEEN = {"slept": "time.sleep(0.005)", "nothing": "pass"}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
@pytest.mark.parametrize(("made", "look"), LOOKS.values(), ids=LOOKS)
def test_it_is_seen_as_often(tmp_path: Path, made: str, look: str, between: str) -> None:
    recorded = record(tmp_path, PROGRAM.format(made=made, look=look, between=between))
    recorded.faithful()
    assert int(recorded.output.split()[0]) > 1


def test_one_that_looks_all_the_time_is_only_counted(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import threading, time
        begun, stop = threading.Event(), threading.Event()
        def work():
            seen = 0
            begun.set()
            while not stop.is_set():
                seen += 1
            print(seen > 100, flush=True)
            while stop.is_set():
                seen += 1
        worker = threading.Thread(target=work)
        worker.start()
        begun.wait()
        time.sleep(0.1)
        stop.set()
        time.sleep(0.05)
        stop.clear()
        worker.join()
        print(worker.is_alive(), threading.Thread().is_alive())
        """,
    )
    assert recorded.output == "True\nFalse False\n"
    recorded.faithful()
    size = sum(file.stat().st_size for file in (tmp_path / ".playhead" / "runs").rglob("*") if file.is_file())
    assert size < 60_000


def test_a_loop_that_looks_at_a_thread_goes_on(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import asyncio, threading
        async def main():
            loop, done = asyncio.get_running_loop(), asyncio.Event()
            def work():
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0.01, "slept"), loop).result()
                loop.call_soon_threadsafe(done.set)
            thread = threading.Thread(target=work)
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(0.001)
            await done.wait()
            print("done", thread.is_alive())
        asyncio.run(main())
        """,
    )
    recorded.faithful()
