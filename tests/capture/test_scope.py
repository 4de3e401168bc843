"""The run of a whole process: what is recorded where no context names a run."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import playhead
from playhead.capture import scope
from playhead.capture.opening import open_recording
from playhead.capture.record import join_run
from playhead.capture.recording import Recording
from playhead.event import kinds
from playhead.settings import Settings
from playhead.store.files import FileStore

SETTINGS = Settings(git=False)


@playhead.tool
def act(name: str) -> str:
    return name


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Recording]:
    """Be the launcher of a run."""
    recording = open_recording(FileStore(tmp_path / ".playhead"), SETTINGS)
    recording.start(kinds.RunStarted(name="program"))
    yield recording
    recording.finish("ok")


@pytest.fixture
def process(owner: Recording) -> Iterator[scope.Ambient]:
    """Let this process record into it."""
    ambient = scope.Ambient(lambda: join_run(owner.store, SETTINGS, owner.id))
    scope.set_ambient(ambient)
    yield ambient
    scope.set_ambient(None)
    if ambient.recording is not None:
        ambient.recording.leave()


def calls(run: str) -> dict[str, str]:
    """Return the lane of each tool call."""
    events = playhead.load(run).events()
    return {event.data["input"]["name"]: event.lane for event in events if event.kind == "tool.called"}


def test_what_no_context_names_a_run_for_is_recorded_in_that_of_the_process(
    owner: Recording, process: scope.Ambient
) -> None:
    act("main")
    thread = threading.Thread(target=act, args=("thread",))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(act, "pool").result()

    async def work() -> None:
        await asyncio.create_task(asyncio.to_thread(act, "task"))

    asyncio.run(work())
    lanes = calls(owner.id)
    assert lanes == {"main": "0", "thread": "0.1", "pool": "0.2", "task": "0.3.1"}
    assert {event.parent for event in playhead.load(owner.id).events() if event.kind == "tool.called"} == {"0"}


def test_a_forked_child_records_in_a_lane_of_its_own(owner: Recording, process: scope.Ambient) -> None:
    act("parent")
    child = os.fork()
    if child == 0:
        act("child")
        os._exit(0)
    os.waitpid(child, 0)
    assert calls(owner.id) == {"parent": "0", "child": "0.1"}


def test_the_first_agent_adopts_the_run_of_the_process_through_the_recording_that_is_open(
    owner: Recording, process: scope.Ambient
) -> None:
    with playhead.step("around"), playhead.record("first", input=1) as first:
        first.output = "one"
    with playhead.record("second") as second, playhead.record("inner"):
        pass
    assert first.recording is second.recording is process.recording
    assert process.recording is not None
    assert not process.recording.closed
    events = [event for event in playhead.load(owner.id).events() if event.kind == "step.started"]
    assert [(event.data["name"], event.data.get("adopts", False)) for event in events] == [
        ("around", False),
        ("first", True),
        ("second", False),
        ("inner", False),
    ]
    spans = {event.data["name"]: event for event in events}
    assert spans["first"].parent == spans["around"].span
    assert spans["inner"].parent == spans["second"].span


def test_an_agent_with_a_store_of_its_own_does_not_adopt_and_says_where_it_came_from(
    owner: Recording, process: scope.Ambient, tmp_path: Path
) -> None:
    act("before")
    with playhead.record("elsewhere", store=tmp_path / "other") as run:
        act("inside")
    assert run.id is not None
    first = next(iter(playhead.load(run.id, store=tmp_path / "other").events()))
    assert first.data["origin"] == {"run": owner.id, "mode": "child"}
    assert calls(owner.id) == {"before": "0"}


def test_strictness_that_an_agent_asks_for_ends_with_it(owner: Recording, process: scope.Ambient) -> None:
    with playhead.record("strict", strict=True) as run:
        assert run.recording is not None
        assert run.recording.strict
    assert not run.recording.strict


def test_a_run_of_the_process_is_opened_by_the_first_event_and_by_nothing_else(owner: Recording) -> None:
    opened = []

    def opening() -> Recording:
        opened.append(threading.get_ident())
        return join_run(owner.store, SETTINGS, owner.id)

    process = scope.Ambient(opening)
    scope.set_ambient(process)
    try:
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        assert not opened
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(act, [str(number) for number in range(40)]))
        assert len(opened) == 1
        assert len(calls(owner.id)) == 40
    finally:
        scope.set_ambient(None)
        assert process.recording is not None
        process.recording.leave()


def test_where_the_run_of_the_process_has_ended_nothing_is_recorded(owner: Recording, process: scope.Ambient) -> None:
    act("before")
    assert process.recording is not None
    process.recording.leave()
    assert scope.live() is None
    assert act("after") == "after"
    assert calls(owner.id) == {"before": "0"}
