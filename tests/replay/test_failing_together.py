"""Tasks and jobs that fail beside each other fail in a replay as they did: all that had ended, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.again import record

GROUP = """
    import asyncio, time
    async def work(number):
        {work}
    async def main():
        async with asyncio.TaskGroup() as group:
            for number in (1, 2, 3):
                group.create_task(work(number))
    try:
        asyncio.run(main())
    except ExceptionGroup as failed:
        print(sorted(str(each) for each in failed.exceptions))
"""
WORK = {
    "at once": "await asyncio.sleep(0); raise ValueError(number)",
    "after the same time": "await asyncio.sleep(0.01); raise ValueError(number)",
    "in threads": "await asyncio.to_thread(int, f'{number}x')",
    "one long before": "await asyncio.sleep(0.01 if number == 2 else 60); raise ValueError(number)",
    "one after it was cancelled": (
        "await asyncio.sleep(0.01 if number == 2 else 60) if number != 3 else await held(); raise ValueError(number)"
    ),
}
HELD = """
    async def held():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise LookupError("was cancelled")
"""


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_group_fails_with_as_many(tmp_path: Path, work: str) -> None:
    recorded = record(tmp_path, HELD + GROUP.format(work=work))
    assert recorded.output.startswith("[")
    recorded.faithful()


def test_what_a_program_left_is_cancelled_in_silence_at_its_end(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import asyncio
        async def main():
            try:
                await asyncio.gather(*(asyncio.to_thread(int, f"{number}x") for number in range(3)))
            except ValueError:
                print("failed")
        asyncio.run(main())
        """,
    )
    assert "unhandled" not in recorded.faithful().errors


def test_a_job_that_was_cancelled_before_it_began_is_not_begun(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import concurrent.futures, threading, playhead
        busy = threading.Event()
        @playhead.tool
        def look_up(number):
            if number == 2:
                busy.wait(0.2)
            return {1: "one", 3: "three"}[number]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first, failing = pool.submit(busy.wait, 0.3), pool.submit(look_up, 2)
            others = [pool.submit(look_up, number) for number in (3, 1, 3)]
            try:
                failing.result()
            except KeyError:
                print([other.cancel() for other in others][-1])
        """,
    )
    recorded.faithful()


def test_workers_that_are_cancelled_once_all_is_done_hear_of_all(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import asyncio, time
        async def worker(queue, results):
            while True:
                number = await queue.get()
                results.append(await asyncio.to_thread(pow, number, 2))
                print(number, results[-1], flush=True)
                queue.task_done()
        async def main():
            queue, results = asyncio.Queue(), []
            for number in range(7):
                queue.put_nowait(number)
            workers = [asyncio.create_task(worker(queue, results)) for _ in range(3)]
            await queue.join()
            for one in workers:
                one.cancel()
            print([type(one).__name__ for one in await asyncio.gather(*workers, return_exceptions=True)], len(results))
        asyncio.run(main())
        """,
    )
    recorded.faithful()
