"""Steps, tools and model calls: what is recorded, in which order, under which parent."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
import time
from typing import Any

import pytest

import playhead
from playhead.views.spans import SpanView, tree


def recorded() -> list[playhead.Event]:
    return list(playhead.load("@last").events())


def kinds() -> list[str]:
    return [event.kind for event in recorded()]


def find(kind: str, **fields: Any) -> playhead.Event:
    return next(
        event
        for event in recorded()
        if event.kind == kind and all(event.data.get(name) == value for name, value in fields.items())
    )


def children(name: str) -> list[str]:
    """Return the names of what happened directly inside the step of that name."""

    def walk(views: list[SpanView]) -> list[str] | None:
        for view in views:
            if view.name == name and view.kind != "run":
                return [child.name for child in view.children]
            found = walk(view.children)
            if found is not None:
                return found
        return None

    return walk(tree(recorded())) or []


@playhead.tool
def add(left: int, right: int = 1, *more: int, **named: int) -> int:
    return left + right + sum(more) + sum(named.values())


@playhead.tool(effects=["write"])
async def save(text: str) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"saved": text}


def test_a_step_is_a_with_an_async_with_and_a_decorator_bare_or_called() -> None:
    @playhead.step
    def bare() -> int:
        return 1

    @playhead.step("called")
    async def called() -> int:
        return 2

    async def agent() -> None:
        with playhead.step("plain", model="x") as step:
            step.set_attributes({"found": 3}, more=4)
        async with playhead.step("asynchronous"):
            bare()
        await called()

    with playhead.record("steps"):
        asyncio.run(agent())
    names = [event.data["name"] for event in recorded() if event.kind == "step.started"]
    assert names == ["plain", "asynchronous", "bare", "called"]
    assert find("step.started", name="plain").data["attributes"] == {"model": "x"}
    assert find("step.finished", attributes={"found": 3, "more": 4}).data["status"] == "ok"
    assert children("asynchronous") == ["bare"]


def test_without_a_run_nothing_is_recorded_and_everything_works(tmp_path: Any) -> None:
    with playhead.step("alone") as step:
        step.set_attributes(x=1)
    assert add(1, 2) == 3
    assert playhead.check("fs.write", resource="x") == "allow"
    assert playhead.artifact("x.txt", "x") is None
    playhead.note("nothing")
    playhead.context_pack({})
    assert not (tmp_path / ".playhead").exists()


def test_a_tool_records_its_arguments_by_name_and_its_result() -> None:
    with playhead.record("tools"):
        assert add(1, 2, 3, 4, x=5) == 15
    assert find("tool.called").data == {"name": "add", "input": {"left": 1, "right": 2, "*more": [3, 4], "x": 5}}
    assert find("tool.returned").data == {"status": "ok", "output": 15}


def test_a_tool_that_raises_is_recorded_as_an_error_and_the_exception_is_the_same() -> None:
    error = ValueError("no such file")

    @playhead.tool
    def failing() -> None:
        raise error

    with playhead.record("tools"), pytest.raises(ValueError, match="no such file") as caught:
        failing()
    assert caught.value is error
    returned = find("tool.returned").data
    assert returned["status"] == "error"
    assert (returned["error"]["type"], returned["error"]["message"]) == ("ValueError", "no such file")
    assert returned["error"]["frames"][-1]["name"] == "failing"


def test_wrong_arguments_raise_as_without_playhead_and_are_recorded() -> None:
    with playhead.record("tools"), pytest.raises(TypeError, match="left"):
        add()  # type: ignore[call-arg]
    assert find("tool.called").data["input"] == {"args": [], "kwargs": {}}
    assert find("tool.returned").data["error"]["type"] == "TypeError"


def test_cancellation_is_recorded_as_cancelled() -> None:
    @playhead.tool
    async def slow() -> None:
        await asyncio.sleep(60)

    async def agent() -> None:
        task = asyncio.create_task(slow())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with playhead.record("cancel"):
        asyncio.run(agent())
    assert find("tool.returned").data["status"] == "cancelled"


def test_a_generator_tool_records_what_it_yielded_and_passes_values_both_ways() -> None:
    @playhead.tool
    def echo(count: int) -> Any:
        got = None
        for number in range(count):
            got = yield (number, got)
        return "end"

    with playhead.record("generator"):
        generator = echo(2)
        assert next(generator) == (0, None)
        playhead.note("between two yields")
        assert generator.send("hello") == (1, "hello")
        with pytest.raises(StopIteration) as stop:
            next(generator)
        assert stop.value.value == "end"
    returned = find("tool.returned").data
    assert returned["chunks"] == 2
    assert returned["output"]["returned"] == "end"
    root = recorded()[0].span
    assert find("note.added").parent == root, "a suspended generator is not the current span of its caller"


def test_a_generator_that_is_closed_early_records_what_it_had_yielded() -> None:
    @playhead.tool
    def numbers() -> Any:
        yield from range(100)

    @playhead.tool
    async def letters() -> Any:
        for letter in "abc":
            yield letter

    async def first_letter() -> None:
        stream = letters()
        async for _ in stream:
            break
        await stream.aclose()

    with playhead.record("early"):
        for number in numbers():
            if number == 2:
                break
        gc.collect()
        asyncio.run(first_letter())
    outputs = [(e.data["status"], e.data["output"]) for e in recorded() if e.kind == "tool.returned"]
    assert outputs == [("cancelled", [0, 1, 2]), ("cancelled", ["a"])]


def test_an_exception_thrown_into_a_generator_reaches_it() -> None:
    @playhead.tool
    def careful() -> Any:
        try:
            yield 1
        except KeyError:
            yield "caught"

    with playhead.record("throw"):
        generator = careful()
        next(generator)
        assert generator.throw(KeyError("x")) == "caught"
        list(generator)
    assert find("tool.returned").data["output"] == [1, "caught"]


def test_nesting_is_right_across_tasks() -> None:
    async def branch(name: str) -> None:
        async with playhead.step(name):
            await asyncio.sleep(0.001)
            await save(name)

    async def agent() -> None:
        with playhead.step("both"):
            await asyncio.gather(branch("left"), branch("right"))

    with playhead.record("tasks"):
        asyncio.run(agent())
    assert children("both") == ["left", "right"]
    assert children("left") == ["save"]
    assert children("right") == ["save"]
    lanes = {event.data["name"]: event.lane for event in recorded() if event.kind == "step.started"}
    assert lanes == {"both": "0", "left": "0.1", "right": "0.2"}


def test_nesting_is_right_across_threads_and_executors() -> None:
    def work(name: str) -> None:
        with playhead.step(name):
            time.sleep(0.002)
            add(1, 1)

    with playhead.record("threads"):
        with playhead.step("threads"):
            threads = [threading.Thread(target=work, args=(f"thread-{n}",)) for n in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with playhead.step("pool"), concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(work, ["job-0", "job-1", "job-2"]))
    assert sorted(children("threads")) == ["thread-0", "thread-1"]
    assert sorted(children("pool")) == ["job-0", "job-1", "job-2"]
    assert all(children(f"job-{n}") == ["add"] for n in range(3))
    lanes = {event.data["name"]: event.lane for event in recorded() if event.kind == "step.started"}
    assert {lanes["thread-0"], lanes["thread-1"]} == {"0.1", "0.2"}
    assert {lanes[f"job-{n}"] for n in range(3)} == {"0.3", "0.4", "0.5"}, "pool workers use up no lane"


def test_patches_are_gone_when_the_last_run_closes() -> None:
    def patched() -> tuple[Any, ...]:
        return (
            threading.Thread.start,
            concurrent.futures.ThreadPoolExecutor.submit,
            asyncio.BaseEventLoop.create_task,
        )

    before = patched()
    with playhead.record("outer"):
        assert all(now is not then for now, then in zip(patched(), before, strict=True))
        with playhead.record("inner"):
            pass
    assert patched() == before


def test_a_model_call_made_by_hand_is_recorded_with_usage() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.5}
    with playhead.record("model"):
        with playhead.model_call(provider="p", model="m", request=request) as call:
            call.respond({"text": "hello"}, usage={"input": 3, "output": 5, "cached": 1}, finish="stop")
        with pytest.raises(TimeoutError), playhead.model_call(provider="p", model="m", request=request):
            raise TimeoutError("slow")
    invoked, failed = (event for event in recorded() if event.kind == "model.invoked")
    assert invoked.data["request"] == failed.data["request"] == request
    assert invoked.key == failed.key, "the same question has the same key"
    assert invoked.key is not None
    assert invoked.key.startswith("k1:")
    answered, broken = (event for event in recorded() if event.kind == "model.responded")
    assert answered.data["usage"] == {"input": 3, "output": 5, "cached": 1}
    assert answered.data["finish"] == "stop"
    assert broken.data["error"]["type"] == "TimeoutError"


def test_a_step_that_is_repeated_counts_its_attempts() -> None:
    with playhead.record("retry"):
        for _ in range(3):
            with playhead.step("try"):
                pass
    assert [e.data["attempt"] for e in recorded() if e.kind == "step.started"] == [1, 2, 3]


def test_unknown_effects_and_empty_names_are_refused_where_they_are_written() -> None:
    with pytest.raises(playhead.PlayheadError, match="unknown effects: destroy"):
        playhead.tool(effects=["destroy"])
    with pytest.raises(playhead.PlayheadError, match="non-empty"):
        playhead.step("  ")


def test_one_step_object_may_be_entered_again_and_inside_itself() -> None:
    step = playhead.step("again")
    with playhead.record("reentered"):
        with step:
            playhead.note("one")
            with step:
                playhead.note("two")
            playhead.note("three")
        with step:
            playhead.note("four")
    started = [event for event in recorded() if event.kind == "step.started"]
    finished = [event.span for event in recorded() if event.kind == "step.finished"]
    outer, inner, later = (event.span for event in started)
    assert finished == [inner, outer, later]
    parents = {event.data["text"]: event.parent for event in recorded() if event.kind == "note.added"}
    assert parents == {"one": outer, "two": inner, "three": outer, "four": later}
