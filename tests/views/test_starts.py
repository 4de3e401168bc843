from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views.timeline import Row, Timeline


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that records what is done, and returns the rows of its timeline."""
    monkeypatch.setenv("PLAYHEAD_GIT", "0")

    def recorded(function: Any) -> tuple[Timeline, list[Row]]:
        with playhead.record("n", store=tmp_path) as run:
            function()
        reader = RunReader(FileStore(tmp_path), run.id)
        timeline = Timeline(reader.value).take_all(reader.events())
        return timeline, list(timeline.rows())

    return recorded


def _effects(rows: list[Row]) -> list[bool]:
    return [row.quiet for row in rows if row.kind == "effect.observed" and row.name == "process.started"]


def _processes(rows: list[Row]) -> list[str]:
    return [row.name for row in rows if row.kind == "process"]


async def _in_a_loop() -> None:
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    process = await asyncio.create_subprocess_shell("exit 3")
    await process.wait()


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run(["true"], check=True),
        lambda: subprocess.run("exit 3", shell=True, check=False),
        lambda: subprocess.run("exit 3", shell=True, check=False, executable="/bin/bash"),
        lambda: subprocess.run(["printf $0", "x"], shell=True, check=True, capture_output=True),
        lambda: subprocess.run([Path("/bin/echo"), b"x" * 5000], check=True, capture_output=True),  # kept elsewhere
        lambda: subprocess.run(["echo", "a" * 300], check=True, capture_output=True),  # a reference in the effect
        lambda: os.system("true"),
        lambda: os.popen("true").read(),
        lambda: asyncio.run(_in_a_loop()),
        lambda: [subprocess.Popen(["true"]) for _ in range(3)] and None,
    ],
)
def test_the_start_of_a_process_is_told_once_by_its_call(rows, start):
    timeline, found = rows(start)
    effects = _effects(found)
    assert effects
    assert all(effects)
    assert len(effects) == len(_processes(found))
    assert timeline.finish().effects == {"process.started": len(effects)}  # it is counted all the same


def test_processes_of_several_threads_at_once_each_belong_to_their_own_call(rows):
    def start() -> None:
        threads = [threading.Thread(target=subprocess.run, args=(["true"],)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    _, found = rows(start)
    assert _effects(found) == [True] * 8


def test_a_process_without_a_call_is_still_shown(rows):
    def start() -> None:
        subprocess.run(["true"], check=True)
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)

    _, found = rows(start)
    assert _effects(found) == [True, False]


def test_a_process_that_infrastructure_starts_while_one_is_open_is_still_shown(rows):
    import platform

    def start() -> None:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            platform._Processor.from_subprocess()
            process.communicate(b"\n")

    _, found = rows(start)
    assert len(_processes(found)) == 1
    assert _effects(found) == [True, False]


def test_a_call_that_could_not_be_started_takes_no_effect_of_another(rows):
    def start() -> None:
        with pytest.raises(FileNotFoundError):
            subprocess.run(["no-such-program"], check=True)
        os.waitpid(os.posix_spawn("/bin/true", ["no-such-program"], {}), 0)

    _, found = rows(start)
    assert _effects(found) == [False]
