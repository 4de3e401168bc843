"""Things happen in the recorded order, and nobody waits for what never comes."""

from __future__ import annotations

import _thread
import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from playhead.capture.patches import Patches
from playhead.replay import loops
from playhead.replay.order import Order


@pytest.fixture
def order() -> Iterator[Order]:
    made = Order()
    yield made
    made.close()


def test_threads_go_on_in_recorded_order_whoever_comes_first(order: Order) -> None:
    went: list[int] = []
    ready = threading.Barrier(6)

    def wait(at_us: int) -> None:
        ready.wait()
        until = time.perf_counter() + (6 - at_us) * 0.002  # whoever was recorded last comes first
        while time.perf_counter() < until:
            pass
        order.wait(at_us)
        went.append(at_us)

    threads = [threading.Thread(target=wait, args=(at_us,)) for at_us in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert went == sorted(went)
    assert order.now_us == 5


def test_one_who_works_holds_up_those_who_come_later(order: Order) -> None:
    went: list[str] = []

    def work() -> None:
        order.wait(1)
        total = 0
        for number in range(2_000_000):  # at work, not asleep
            total += number
        went.append("worked")

    def wait() -> None:
        order.wait(2)
        went.append("waited")

    threads = [threading.Thread(target=wait), threading.Thread(target=work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert went == ["worked", "waited"]


def test_nobody_waits_for_a_turn_that_nobody_takes(order: Order) -> None:
    done = threading.Event()
    lock = threading.Lock()
    lock.acquire()

    def blocked() -> None:
        with lock:  # held until the other has had its turn
            done.set()

    def late() -> None:
        order.wait(1_000_000)
        lock.release()

    for target in (blocked, late):
        threading.Thread(target=target).start()
    assert done.wait(20)


def test_a_loop_sleeps_in_recorded_time(order: Order) -> None:
    patches = Patches()
    loops.patch(asyncio.base_events, patches, order)
    went: list[str] = []

    async def nap(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        went.append(name)

    async def main() -> float:
        before = asyncio.get_running_loop().time()
        await asyncio.gather(nap("long", 3600), nap("short", 60), order_turn())
        return asyncio.get_running_loop().time() - before

    async def order_turn() -> None:
        await order.wait_async(120_000_000)
        went.append("answer")

    try:
        passed = asyncio.run(main())
    finally:
        patches.restore()
    assert went == ["short", "answer", "long"]
    assert passed >= 3600


def test_one_that_is_cancelled_takes_no_turn(order: Order) -> None:
    patches = Patches()
    loops.patch(asyncio.base_events, patches, order)

    async def main() -> str:
        task = asyncio.ensure_future(order.wait_async(5))
        await asyncio.sleep(0)
        task.cancel()
        await order.wait_async(9)
        return "went on"

    try:
        assert asyncio.run(main()) == "went on"
    finally:
        patches.restore()
    assert order.now_us == 9


def test_a_thread_of_ours_that_has_not_begun_hides_no_other(order: Order) -> None:
    go_on = threading.Event()
    other = threading.Thread(target=go_on.wait)
    other.start()
    try:
        order._conductor = 0  # it was started, and does not run yet
        assert not order.alone()
    finally:
        order._conductor = None
        go_on.set()
        other.join()


def test_a_timer_that_nobody_recorded_is_not_jumped_to_while_something_may_come_first(order: Order) -> None:
    order.add(60_000_000, "timer", "", int, after_s=60)
    assert order.take_next(busy=True) is None, "the program is at work"
    order.is_live = lambda: True
    assert order.take_next() is None, "a thread sleeps for real, or a server is asked"
    order.is_live = lambda: False
    assert order.take_next() is not None
    order.add(60_000_000, "timer", "0.1", int)
    assert order.take_next(busy=True) is not None, "it was recorded when it fired"
    order.is_live = lambda: True
    order.add(60_000_000, "timer", "", int, after_s=0)
    assert order.take_next(busy=True) is not None, "it is time"


def test_the_thread_that_conducts_ends_with_the_order() -> None:
    made = Order()
    other = threading.Thread(target=made.wait, args=(1,))
    other.start()
    other.join(20)
    before = _thread._count()
    made.close()
    until = time.monotonic() + 20
    while _thread._count() >= before and time.monotonic() < until:
        time.sleep(0.001)
    assert _thread._count() < before
