"""An agent is replayed in this process, kept from the disk and the network, and nothing of that stays behind."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.replay.again import record

import playhead
from playhead.capture import answering
from playhead.cli.replay_text import lines
from playhead.testing import ScriptedProvider, Text

asked: dict[str, Any] = {"url": "", "words": "hello"}


def ask(client: httpx.Client, words: str) -> str:
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": words}]}
    answer: str = client.post(f"{asked['url']}/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    return answer


@playhead.agent("greeter")
def agent(name: str) -> str:
    Path("greeted.txt").write_text(name)
    with httpx.Client() as client:
        said = ask(client, f"{asked['words']} {name} {random.random()} {time.time()}")
    return f"{said} {Path('greeted.txt').read_text()}"


@pytest.fixture
def recorded() -> playhead.Run:
    asked["words"] = "hello"
    playhead.install()
    try:
        with ScriptedProvider([Text("hi")]) as provider:
            asked["url"] = provider.base_url
            assert agent("ada") == "hi ada"
    finally:
        playhead.uninstall()
    os.unlink("greeted.txt")
    return playhead.load("@last")


def test_an_agent_runs_again_with_the_arguments_that_were_recorded(recorded: playhead.Run) -> None:
    found = playhead.replay(recorded, agent=agent)
    assert found.faithful, found.differences
    assert found.live_calls == 0
    assert found.fidelity["claim"] == "faithful over the recorded surface"
    assert not Path("greeted.txt").exists(), "what it wrote went elsewhere"
    assert answering.player is None
    assert playhead.load(found.run).events().__next__().data["origin"]["run"] == recorded.id


def test_it_can_be_done_again_and_again_and_everything_is_as_before(recorded: playhead.Run) -> None:
    clock = time.time
    for _ in range(5):
        assert playhead.replay(recorded, agent=agent).faithful
    Path("after.txt").write_text("on the disk")
    assert os.path.getsize("after.txt") == 11
    assert time.time is clock
    assert abs(time.time() - time.time_ns() / 1e9) < 5


def test_processes_of_multiprocessing_meet_elsewhere_again_when_it_is_over(recorded: playhead.Run) -> None:
    from multiprocessing import util

    assert playhead.replay(recorded, agent=agent).faithful
    assert os.path.isdir(util.get_temp_dir())


def test_another_question_is_raised_where_it_is_asked(recorded: playhead.Run) -> None:
    asked["words"] = "good evening"
    with pytest.raises(playhead.DeviationError) as raised:
        playhead.replay(recorded, agent=agent)
    assert "good evening" in str(raised.value)
    assert raised.value.deviation["type"] in ("changed", "added")
    assert answering.player is None


def test_a_deviation_is_taken_out_of_the_groups_that_tasks_raise(recorded: playhead.Run) -> None:
    @playhead.agent("greeter")
    async def grouped(name: str) -> str:
        async def one() -> None:
            async with httpx.AsyncClient() as client:
                await client.get("http://127.0.0.1:9/unknown")

        async with asyncio.TaskGroup() as group:
            group.create_task(one())
        return ""

    with pytest.raises(playhead.DeviationError):
        playhead.replay(recorded, agent=grouped)


def test_the_network_is_refused(recorded: playhead.Run) -> None:
    import socket

    @playhead.agent("greeter")
    def reaching(name: str) -> str:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 9), timeout=1)
        return agent.__wrapped__(name)  # type: ignore[attr-defined,no-any-return]

    found = playhead.replay(recorded, agent=reaching, on_deviation="nearest")
    assert found.live_calls == 0


def test_one_replay_at_a_time(recorded: playhead.Run) -> None:
    from playhead.errors import UsageError
    from playhead.replay.session import Session
    from playhead.store.reader import RunReader

    with Session(RunReader(recorded.store, recorded.id), opens=False), pytest.raises(UsageError, match="already"):
        playhead.replay(recorded, agent=agent)


def test_what_is_asked_wrongly_is_said(recorded: playhead.Run) -> None:
    from playhead.errors import UsageError

    with pytest.raises(UsageError, match="a function of its own"):
        playhead.replay(recorded, mode="fork")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no mode"):
        playhead.replay(recorded, mode="sideways")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="on a deviation"):
        playhead.replay(recorded, on_deviation="live")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no reason 'everything'"):
        playhead.replay(recorded, agent=agent, force="everything")


def test_what_a_recorded_program_printed_is_said_not_to_be_compared_where_only_a_function_is_called(
    tmp_path: Path,
) -> None:
    recorded = record(tmp_path, "import playhead\n@playhead.tool\ndef add(a): return a + 1\nprint(add(1))")

    @playhead.tool
    def add(a: int) -> int:
        return a + 1

    found = playhead.replay(playhead.load(recorded.run, tmp_path / ".playhead"), agent=lambda: add(1))
    assert found.faithful, found.differences
    (left_out,) = found.surface["not_compared"]
    assert left_out.startswith("what the program printed")
    assert found.fidelity["claim"] == f"faithful over the recorded surface; not compared: {left_out}"
    assert any(line.startswith("  not compared: what the program printed") for line in lines(found.as_dict()))
