"""What outlives a run, joins it late, or meets an event loop of its own making."""

from __future__ import annotations

import asyncio
import functools
import threading
import warnings
from typing import Any

import pytest

import playhead


def test_an_agent_in_a_thread_that_outlived_its_run_is_a_run_of_its_own() -> None:
    go, done = threading.Event(), threading.Event()

    @playhead.agent("later")
    def later() -> int:
        playhead.note("inside")
        return 7

    def work() -> None:
        go.wait(10)
        later()
        done.set()

    with playhead.record("first"):
        thread = threading.Thread(target=work)
        thread.start()
    go.set()
    assert done.wait(10)
    thread.join()
    assert playhead.load("later").playback().payload == 7
    assert playhead.load("first").verify().completeness.verdict == "complete"


def test_what_happens_in_a_run_after_its_end_is_said_once_and_not_counted_as_recorded() -> None:
    go = threading.Event()
    told: list[warnings.WarningMessage] = []

    def work() -> None:
        with playhead.step("slow"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            go.wait(10)
            with playhead.step("after the end"):
                playhead.note("nobody listens")
            told.extend(caught)

    with playhead.record("ended") as run:
        thread = threading.Thread(target=work)
        thread.start()
        while not any(event.kind == "step.started" for event in playhead.load(str(run.id)).events()):
            pass
        recording = run.recording
    go.set()
    thread.join()
    assert recording is not None
    assert recording.told_late
    kinds = [event.kind for event in playhead.load("ended").events()]
    assert kinds == ["run.started", "step.started", "run.finished"]


def test_a_task_factory_of_the_agent_keeps_working_and_lanes_too() -> None:
    async def work(name: str) -> None:
        playhead.note(name)

    async def agent() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro: asyncio.Task(coro, loop=loop))
        await asyncio.gather(work("a"), work("b"))

    with playhead.record("factory"):
        asyncio.run(agent())
    lanes = {e.data["text"]: e.lane for e in playhead.load("@last").events() if e.kind == "note.added"}
    assert lanes == {"a": "0.1", "b": "0.2"}


def test_callables_without_a_signature_or_a_name_are_tools_too() -> None:
    def add(left: int, right: int) -> int:
        return left + right

    biggest = playhead.tool("biggest")(max)
    plus_one = playhead.tool(functools.partial(add, 1))
    with playhead.record("odd callables"):
        assert biggest(3, 7) == 7
        assert plus_one(2) == 3
    called = [event.data for event in playhead.load("@last").events() if event.kind == "tool.called"]
    assert [data["name"] for data in called] == ["biggest", "add"]
    assert called[0]["input"] == {"args": [3, 7], "kwargs": {}}


def test_objects_that_raise_when_asked_for_their_text_do_not_break_the_agent() -> None:
    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError("no")

    with playhead.record("hostile"):
        playhead.note(Hostile())  # type: ignore[arg-type]
        assert playhead.check("x", resource=Hostile()) == "allow"
    note = next(event for event in playhead.load("@last").events() if event.kind == "note.added")
    assert note.data["text"] == "<Hostile: RuntimeError in __str__>"


def test_a_damaged_blob_does_not_spoil_a_new_run(tmp_path: Any) -> None:
    text = "x" * 50_000

    def record() -> playhead.Run:
        with playhead.record("large") as run:
            run.output = text
        return playhead.load(str(run.id))

    record()
    for path in (tmp_path / ".playhead" / "blobs").rglob("*"):
        if path.is_file():
            path.write_bytes(b"y" * 50_000)
    assert record().verify().integrity.verdict == "intact"


def test_an_invalidated_run_stays_so_when_its_last_line_is_cut_off() -> None:
    with playhead.record("agent") as run:
        run.output = 1
    loaded = playhead.load(str(run.id))
    loaded.invalidate("wrong")
    playhead.load("agent")  # the index has seen it
    assert loaded.path is not None
    timeline = loaded.path / "timeline.jsonl"
    timeline.write_bytes(b"".join(timeline.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(playhead.NotReplayable, match="cut tail"):
        playhead.load(str(run.id)).playback()


def test_a_store_of_a_newer_format_is_read_and_never_pruned(tmp_path: Any) -> None:
    with playhead.record("agent") as run:
        run.output = 1
    (tmp_path / ".playhead" / "format").write_text("2\n")
    loaded = playhead.load(str(run.id))
    assert loaded.playback().payload == 1
    with pytest.raises(playhead.PlayheadError, match="format 2"):
        loaded.store.delete(loaded.id)
    with pytest.raises(playhead.PlayheadError, match="format 2"):
        loaded.invalidate("x")


def test_references_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from playhead import _limits
    from playhead.errors import MissingContent
    from playhead.event.resolve import Resolver

    monkeypatch.setattr(_limits, "RESOLVED_CONTAINERS_MAX", 10_000)
    lines: list[Any] = [{"a": [1]}]
    for seq in range(40):
        lines.append({"a": [{"$same": f"{seq}#/a"}, {"$same": f"{seq}#/a"}]})
    resolver = Resolver(lambda seq: lines[seq], lambda digest: b"")
    assert resolver.resolve(lines[5])
    with pytest.raises(MissingContent, match="multiply"):
        resolver.resolve(lines[40])
    assert resolver.resolve(lines[5]), "one bad value does not spoil the next"
