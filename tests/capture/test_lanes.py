"""Lanes: what is begun gets its number where the agent asks for it, and its end is told before anybody goes on."""

from __future__ import annotations

import _thread
import asyncio
import contextvars
import decimal
import functools
import http.server
import logging
import logging.handlers
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

import playhead
from playhead.capture import lanes
from playhead.capture.scope import Lane


@playhead.tool
def act(name: str) -> str:
    return name


def run_lanes(run: playhead.Run) -> dict[str, str]:
    """Return the lane of each tool call, by what it was called with."""
    return {event.data["input"]["name"]: event.lane for event in run.events() if event.kind == "tool.called"}


def recorded(work: Callable[[], Any]) -> dict[str, str]:
    """Do something in a run, and return its lanes."""
    with playhead.record("it") as run:
        work()
    assert run.id is not None
    loaded = playhead.load(run.id)
    verification = loaded.verify(deep=True)
    assert (verification.integrity.verdict, verification.completeness.verdict, run.lost) == ("intact", "complete", 0)
    return run_lanes(loaded)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Listen to the ends of lanes."""
    told: list[tuple[str, str, str]] = []
    tell = lanes.ended

    def listen(parent: Lane, child: Lane, outcome: str) -> None:
        told.append((parent.path, child.path, outcome))
        tell(parent, child, outcome)

    monkeypatch.setattr(lanes, "ended", listen)
    return told


def started(function: Callable[..., Any], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    return thread


# Numbers


def test_tasks_are_numbered_as_they_are_created() -> None:
    async def work(name: str) -> None:
        await asyncio.sleep(0)
        act(name)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(work(name))
        await asyncio.gather(work("c"), work("d"))
        await asyncio.wait_for(work("e"), 5)
        act("main")

    found = recorded(lambda: asyncio.run(main()))
    assert {name: found[name] for name in "abcd"} == {"a": "0.1", "b": "0.2", "c": "0.3", "d": "0.4"}
    assert found["main"] == "0"


def test_work_is_numbered_as_it_is_submitted_and_workers_take_no_number() -> None:
    def main() -> None:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(act, "abcd"))
        started(act, "thread").join()
        with ThreadPool(3) as pool:
            pool.map(act, "ef")
            assert list(pool.imap_unordered(act, iter("g"))) == ["g"]
            pool.apply(act, ("h",))
        started(act, "after").join()

    found = recorded(main)
    assert [found[name] for name in "abcd"] == ["0.1", "0.2", "0.3", "0.4"]
    assert [found[name] for name in "efgh"] == ["0.6.1", "0.6.2", "0.7.1", "0.8"]
    assert (found["thread"], found["after"]) == ("0.5", "0.9")


def test_what_a_pool_of_threads_goes_through_is_gone_through_in_the_lane_of_the_call() -> None:
    def main() -> None:
        with ThreadPool(2) as pool:
            assert list(pool.imap(str.upper, (act(name) for name in "ab"), chunksize=2)) == ["A", "B"]

    assert recorded(main) == {"a": "0.1", "b": "0.1"}


def test_what_a_future_calls_when_it_is_done_is_done_in_the_lane_of_its_work() -> None:
    def work() -> None:
        with ThreadPoolExecutor(1) as pool:
            for number in range(2):
                begins = threading.Event()
                done = pool.submit(begins.wait)
                done.add_done_callback(lambda _, number=number: act(f"callback {number}"))
                begins.set()

    assert recorded(work) == {"callback 0": "0.1", "callback 1": "0.2"}


def test_what_is_called_for_an_error_of_a_thread_is_done_in_its_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda args: act(args.exc_type.__name__))

    def work() -> None:
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()

    assert recorded(work) == {"ZeroDivisionError": "0.1"}


def test_an_initializer_of_a_pool_speaks_beside_the_numbers_of_the_agent() -> None:
    def main() -> None:
        with ThreadPoolExecutor(1, initializer=act, initargs=("first",)) as pool:
            pool.submit(act, "work").result()
        started(act, "thread").join()

    assert recorded(main) == {"first": "0.0.1", "work": "0.1", "thread": "0.2"}


def test_threads_that_a_library_starts_for_itself_take_no_number() -> None:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            act(record.getMessage())

    def main() -> None:
        inbox: queue.Queue[Any] = queue.Queue()
        listener = logging.handlers.QueueListener(inbox, Handler())
        listener.start()
        inbox.put(logging.makeLogRecord({"msg": "logged"}))
        listener.stop()
        started(act, "thread").join()

    assert recorded(main) == {"logged": "0.0.1", "thread": "0.1"}


def test_a_timer_and_a_loop_in_a_thread_are_the_agents() -> None:
    async def inner() -> None:
        await asyncio.gather(asyncio.to_thread(act, "deep"))
        act("loop")

    def main() -> None:
        timer = threading.Timer(0, act, ("timer",))
        timer.start()
        timer.join()
        started(asyncio.run, inner()).join()

    assert recorded(main) == {"timer": "0.1", "loop": "0.2", "deep": "0.2.1.1"}


def test_a_thread_without_an_object_has_a_lane_and_fails_as_it_does_without_us(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[Any, str]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda it: told.append((it.exc_type, f"{it.err_msg} {it.object!r}")))
    before = _thread.start_new_thread

    def fail() -> None:
        try:
            act("low")
            raise ValueError
        finally:
            done.release()

    def work() -> None:
        with pytest.raises(TypeError):
            _thread.start_new_thread(5, ())  # type: ignore[call-overload]
        with pytest.raises(TypeError):
            _thread.start_new_thread(fail, [])  # type: ignore[call-overload]
        done.acquire()
        _thread.start_new_thread(fail, ())
        done.acquire()
        while not told:
            time.sleep(0.001)
        act("after")

    done = threading.Lock()
    assert recorded(work) == {"low": "0.1", "after": "0"}
    ((kind, words),) = told
    assert kind is ValueError
    assert repr(fail) in words
    assert _thread.start_new_thread is before


def test_a_coroutine_from_another_thread_is_numbered_there_and_then() -> None:
    async def work() -> None:
        act("handed over")

    def main() -> None:
        loop = asyncio.new_event_loop()
        thread = started(loop.run_forever)
        held = threading.Event()
        loop.call_soon_threadsafe(held.wait)  # nothing in the loop runs before the second thread has its number
        future = asyncio.run_coroutine_threadsafe(work(), loop)
        second = started(act, "second")
        held.set()
        future.result()
        second.join()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    assert recorded(main) == {"handed over": "0.2", "second": "0.3"}


def test_tasks_in_contexts_of_their_own_have_lanes_of_their_own() -> None:
    async def work(name: str) -> None:
        act(name)

    async def main() -> None:
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        await asyncio.gather(loop.create_task(work("a"), context=context), loop.create_task(work("b")))
        await loop.create_task(work("again"), context=context)

    found = recorded(lambda: asyncio.run(main()))
    assert (found["a"], found["b"], found["again"]) == ("0.1", "0.2", "0.1")


def test_work_that_brings_its_context_has_a_lane_of_its_own() -> None:
    def main() -> None:
        with ThreadPoolExecutor(2) as pool:
            for each in [pool.submit(contextvars.copy_context().run, act, name) for name in "ab"]:
                each.result()
            pool.submit(functools.partial(contextvars.copy_context().run, act), "c").result()

    assert recorded(main) == {"a": "0.1", "b": "0.2", "c": "0.3"}


def test_generators_that_a_loop_closes_take_no_number() -> None:
    async def generator(name: str) -> Any:
        try:
            yield 1
            yield 2
        finally:
            act(name)

    async def main() -> None:
        left = generator("left to the end")
        await anext(left)
        async for _ in generator("dropped"):
            break
        await asyncio.sleep(0)
        await asyncio.create_task(asyncio.sleep(0))
        await asyncio.gather(asyncio.to_thread(act, "after"))

    assert recorded(lambda: asyncio.run(main())) == {"dropped": "0", "after": "0.2.1", "left to the end": "0"}


def test_tasks_that_the_collector_begins_take_no_number() -> None:
    tasks: list[asyncio.Task[None]] = []

    class Held:
        def __del__(self) -> None:
            tasks.append(asyncio.get_running_loop().create_task(asyncio.sleep(0)))

    async def main() -> None:
        held = Held()
        del held
        await asyncio.gather(*tasks, asyncio.to_thread(act, "after"))

    assert recorded(lambda: asyncio.run(main())) == {"after": "0.1.1"}
    assert len(tasks) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks start eagerly from 3.12 on")
def test_tasks_that_start_eagerly_have_lanes(ends: list[tuple[str, str, str]]) -> None:
    async def work(name: str) -> None:
        act(name)

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        await asyncio.gather(work("a"), work("b"))

    found = recorded(lambda: asyncio.run(main()))
    assert (found["a"], found["b"]) == ("0.1", "0.2")
    assert ends[:2] == [("0", "0.1", "ok"), ("0", "0.2", "ok")]


# Other loops


def test_tasks_of_trio_have_lanes_and_what_they_do_in_threads(ends: list[tuple[str, str, str]]) -> None:
    trio = pytest.importorskip("trio")

    async def work(name: str) -> None:
        await trio.to_thread.run_sync(act, f"{name} in a thread")
        act(name)

    async def begun(task_status: Any) -> None:
        act("begun")
        task_status.started()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, "a")
            nursery.start_soon(work, "b")
            await nursery.start(begun)
        act("main")

    in_threads = {"a in a thread": "0.1.1", "b in a thread": "0.2.1"}
    assert recorded(lambda: trio.run(main)) == {"a": "0.1", "b": "0.2", "begun": "0.3", "main": "0", **in_threads}
    assert sorted(ends) == [
        *[("0", "0.1", "ok"), ("0", "0.2", "ok"), ("0", "0.3", "ok")],
        *[("0.1", "0.1.1", "ok"), ("0.2", "0.2.1", "ok")],
    ]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio_has_lanes_whatever_runs_it(backend: str, ends: list[tuple[str, str, str]]) -> None:
    anyio = pytest.importorskip("anyio")
    pytest.importorskip(backend)

    async def work(name: str) -> None:
        await anyio.to_thread.run_sync(act, f"{name} in a thread")
        act(name)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(work, "a")
            group.start_soon(work, "b")
        act("main")

    in_threads = {"a in a thread": "0.1.1", "b in a thread": "0.2.1"}
    assert recorded(lambda: anyio.run(main, backend=backend)) == {"a": "0.1", "b": "0.2", "main": "0", **in_threads}
    assert {("0", "0.1", "ok"), ("0.1", "0.1.1", "ok"), ("0", "0.2", "ok"), ("0.2", "0.2.1", "ok")} <= set(ends)


def test_uvloop_has_lanes_and_is_left_as_it_was() -> None:
    uvloop = pytest.importorskip("uvloop")
    before = dict(vars(uvloop.Loop))

    async def work(name: str) -> None:
        await asyncio.to_thread(act, name)

    async def main() -> None:
        await asyncio.gather(work("a"), work("b"))
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(work("c"), loop).result())

    found = recorded(lambda: uvloop.run(main()))
    assert found == {"a": "0.1.1", "b": "0.2.1", "c": "0.3.1.1"}
    assert dict(vars(uvloop.Loop)) == before


# Ends


def test_the_end_of_a_task_is_told_before_who_waits_for_it_goes_on(ends: list[tuple[str, str, str]]) -> None:
    seen: list[int] = []

    async def work(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    async def main() -> None:
        for done in asyncio.as_completed([work(4), work(2), work(0)]):
            await done
            seen.append(len(ends))

    recorded(lambda: asyncio.run(main()))
    assert ends[:3] == [("0", "0.3", "ok"), ("0", "0.2", "ok"), ("0", "0.1", "ok")]
    assert seen == [1, 2, 3]


def test_how_tasks_end_is_told_and_their_errors_stay_unseen(
    ends: list[tuple[str, str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    async def failing() -> None:
        raise ValueError("no")

    async def main() -> None:
        forever = asyncio.create_task(asyncio.sleep(60))
        failed = asyncio.create_task(failing())
        await asyncio.sleep(0)
        forever.cancel()
        await asyncio.sleep(0.01)
        assert forever.cancelled()
        del failed

    recorded(lambda: asyncio.run(main()))
    assert set(ends[:2]) == {("0", "0.1", "cancelled"), ("0", "0.2", "error")}
    assert "Task exception was never retrieved" in caplog.text


def test_the_end_of_work_is_told_before_its_future_is_done(ends: list[tuple[str, str, str]]) -> None:
    def fail() -> None:
        raise ValueError("no")

    def main() -> None:
        with ThreadPoolExecutor(1) as pool:
            hold = threading.Event()
            first, second, third = pool.submit(hold.wait), pool.submit(act, "x"), pool.submit(fail)
            assert second.cancel()
            assert ends == [("0", "0.2", "cancelled")]
            hold.set()
            first.result()
            assert ends[1] == ("0", "0.1", "ok")
            assert isinstance(third.exception(), ValueError)
            assert ends[2] == ("0", "0.3", "error")
            with pytest.raises(CancelledError):
                second.result()

    recorded(main)
    assert len(ends) == 3


def test_the_ends_of_threads_and_of_items_of_a_pool_are_told(ends: list[tuple[str, str, str]]) -> None:
    def main() -> None:
        started(act, "a").join()
        with ThreadPool(1) as pool:
            pool.map(act, "bc")
            pool.apply(act, ("d",))

    recorded(main)
    assert ends == [
        *[("0", "0.1", "ok"), ("0", "0.2.1", "ok"), ("0", "0.2.2", "ok"), ("0", "0.3", "ok")],
    ]


# What the agent sees

_mine: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="default")


def test_the_context_variables_of_the_agent_are_what_they_are_without_us() -> None:
    def look() -> tuple[str, int]:
        return _mine.get(), decimal.getcontext().prec

    def main() -> list[Any]:
        _mine.set("parent")
        decimal.getcontext().prec = 5
        seen: list[Any] = []
        started(lambda: seen.append(look())).join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_mine.set, "worker").result()
            seen.append(pool.submit(look).result())
        with ThreadPool(1) as pool:
            pool.apply(_mine.set, ("worker",))
            seen.append(pool.apply(look))
        return seen

    plain = contextvars.Context().run(main)
    inside: list[Any] = []
    contextvars.Context().run(recorded, lambda: inside.extend(main()))
    assert inside == plain


def test_a_thread_is_left_as_it_was_and_may_fail_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(threading.Thread):
        def run(self) -> None:
            act("mine")

    def main() -> None:
        thread = Mine()
        thread.start()
        thread.join()
        assert "run" not in vars(thread)
        with pytest.raises(RuntimeError, match="only be started once"):
            thread.start()
        assert "run" not in vars(thread)

    before = threading.Thread.start
    assert recorded(main) == {"mine": "0.1"}
    assert threading.Thread.start is before


def test_a_pool_that_was_there_before_the_run_has_lanes_in_it() -> None:
    with ThreadPoolExecutor(1) as pool, ThreadPool(1) as others:
        pool.submit(act, "before").result()
        others.apply(act, ("before",))

        def main() -> None:
            pool.submit(act, "a").result()
            others.map(act, "b")

        assert recorded(main) == {"a": "0.1", "b": "0.2.1"}
        assert recorded(main) == {"a": "0.1", "b": "0.2.1"}
        assert (pool.submit(act, "after").result(), others.apply(act, ("after",))) == ("after", "after")


def test_everything_is_put_back_when_the_last_run_closes() -> None:
    import asyncio.base_events
    import asyncio.tasks
    import concurrent.futures.process
    import multiprocessing.pool
    import multiprocessing.process
    import multiprocessing.spawn

    def looked_at() -> list[Any]:
        pool, process = multiprocessing.pool, concurrent.futures.process
        return [
            *(threading.Thread.start, ThreadPoolExecutor.submit, asyncio.as_completed, asyncio.tasks.as_completed),
            *(vars(asyncio.base_events.BaseEventLoop)[name] for name in ("create_task", "call_soon_threadsafe")),
            *(pool.worker, pool.Pool.apply_async, pool.ApplyResult._set, pool.MapResult._set),
            *(process._process_worker, process.ProcessPoolExecutor.submit),
            *(multiprocessing.process.BaseProcess.start, multiprocessing.spawn.get_preparation_data),
        ]

    before = looked_at()
    with playhead.record("it"):
        assert (
            sum(one is other for one, other in zip(before, looked_at(), strict=True)) <= 2
        )  # both as_completed, on 3.13
    assert all(one is other for one, other in zip(before, looked_at(), strict=True))


# HTTP clients


class _Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def do_POST(self) -> None:
        while int(self.rfile.readline().strip() or b"0", 16):
            self.rfile.readline()
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Serve, at an address with a name that has to be looked up."""
    with http.server.ThreadingHTTPServer(("localhost", 0), _Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()
        thread.join()


async def _with_aiohttp(address: str) -> None:
    aiohttp = pytest.importorskip("aiohttp")

    async def body() -> Any:
        yield act("body").encode()

    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get(address) as answer:
                assert await answer.read() == b"ok"
        async with session.post(address, data=body()) as answer:
            assert await answer.read() == b"ok"


async def _with_httpx(address: str) -> None:
    httpx = pytest.importorskip("httpx")
    async with httpx.AsyncClient() as client:
        for _ in range(3):
            assert (await client.get(address)).content == b"ok"


async def _with_requests(address: str) -> None:
    requests = pytest.importorskip("requests")
    with requests.Session() as session:
        for _ in range(3):
            assert session.get(address, timeout=30).content == b"ok"


async def _with_sockets(address: str) -> None:
    """Open connections by hand: the loop looks their names up in threads."""
    port = int(address.rpartition(":")[2].strip("/"))
    for _ in range(3):
        _, writer = await asyncio.open_connection("localhost", port, happy_eyeballs_delay=0.01)
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("use", [_with_aiohttp, _with_httpx, _with_requests, _with_sockets])
def test_what_http_clients_begin_takes_no_number_of_the_agent(address: str, use: Callable[[str], Any]) -> None:
    async def main() -> None:
        await use(address)
        await asyncio.create_task(asyncio.to_thread(act, "after"))

    found = recorded(lambda: asyncio.run(main()))
    assert found["after"] == "0.1.1"
    assert found.get("body", "0") == "0"


def test_names_that_the_agent_gave_are_kept_and_those_that_python_made_are_not(tmp_path):
    async def nothing() -> None:
        pass

    async def main() -> None:
        tasks = [asyncio.create_task(nothing()), asyncio.create_task(nothing(), name="fetch-the-page")]
        async with asyncio.TaskGroup() as group:
            group.create_task(nothing(), name="in-a-group")
        await asyncio.gather(*tasks)

    def work() -> None:
        pass

    with playhead.record("n", store=tmp_path) as run:
        asyncio.run(main())
        for thread in (threading.Thread(target=work), threading.Thread(target=work, name="indexer")):
            thread.start()
            thread.join()
    ended = [read.value for read in playhead.load(str(run.id), tmp_path).reads() if read.of == "lane.ended"]
    assert [value[3] for value in ended if len(value) > 3] == ["fetch-the-page", "in-a-group", "indexer"]
    assert {len(value) for value in ended} == {3, 4}
