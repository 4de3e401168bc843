"""Processes that asyncio and anyio start are calls in the timeline, whole, and the agent notices nothing."""

from __future__ import annotations

import asyncio
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any

import anyio
import pytest
from tests.capture.processes.seen import events, gaps, only, processes

import playhead


def test_a_conversation_is_recorded_in_its_order() -> None:
    async def agent() -> None:
        server = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        for turn in range(3):
            server.stdin.write(f"{turn}\n".encode())
            await server.stdin.drain()
            assert await server.stdout.readline() == f"{turn}\n".encode()
        server.stdin.close()
        assert await server.wait() == 0

    with playhead.record("x"):
        asyncio.run(agent())
    asked, came = only()
    assert (asked["argv"], asked["streams"]) == (["cat"], {"stdin": "pipe", "stdout": "pipe"})
    assert (came["stdin"], came["stdout"], came["exit_code"], came["status"]) == ("0\n1\n2\n", "0\n1\n2\n", 0, "ok")
    told = zip(came["chunks"]["stdin"]["at_us"], came["chunks"]["stdout"]["at_us"], strict=True)
    order = [at for pair in told for at in pair]
    assert order == sorted(order)


def test_communicate_and_the_shell() -> None:
    async def agent() -> tuple[Any, ...]:
        process = await asyncio.create_subprocess_shell(
            "cat; echo oops >&2; exit 3", stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        return *(await process.communicate(b"\xff" * 300_000)), process.returncode

    with playhead.record("x"):
        assert asyncio.run(agent()) == (b"\xff" * 300_000, b"oops\n", 3)
    asked, came = only()
    assert (asked["argv"], asked["shell"]) == (["cat; echo oops >&2; exit 3"], True)
    assert (came["stdin"], came["stdout"], came["stderr"]) == (b"\xff" * 300_000, b"\xff" * 300_000, "oops\n")
    assert (came["exit_code"], came["status"]) == (3, "error")


def test_the_end_is_told_before_the_agent_goes_on() -> None:
    async def agent() -> None:
        process = await asyncio.create_subprocess_exec("echo", "x", stdout=PIPE)
        await process.communicate()
        playhead.note("after")

    with playhead.record("x"):
        asyncio.run(agent())
    kinds = [event.kind for event in events()]
    assert kinds.index("process.exited") < kinds.index("note.added")


def test_a_process_that_is_killed_or_cannot_be_started() -> None:
    async def agent() -> None:
        process = await asyncio.create_subprocess_exec("sleep", "60", stdout=DEVNULL)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(process.wait(), 0.05)
        process.terminate()
        assert await process.wait() == -15
        with pytest.raises(FileNotFoundError):
            await asyncio.create_subprocess_exec("no-such-program", stdout=PIPE)

    with playhead.record("x"):
        asyncio.run(agent())
    (_, one), (_, two) = processes()
    assert one is not None
    assert two is not None
    assert (one["exit_code"], [sent["signal"] for sent in one["signals"]]) == (-15, [15])
    assert two["error"]["type"] == "FileNotFoundError"


def test_concurrent_processes_have_their_lanes() -> None:
    async def one(number: int) -> bytes:
        process = await asyncio.create_subprocess_exec("echo", str(number), stdout=PIPE)
        return (await process.communicate())[0]

    async def agent() -> None:
        assert await asyncio.gather(*(one(number) for number in range(5))) == [b"%d\n" % n for n in range(5)]
        # Started by a task that holds nothing of the agent's own code.
        process = await asyncio.create_task(asyncio.create_subprocess_exec("true"))
        await process.wait()

    with playhead.record("x"):
        asyncio.run(agent())
    lanes = [event.lane for event in events() if event.kind == "process.started"]
    assert len(set(lanes)) == 6
    assert {event.span: event.lane for event in events() if event.kind == "process.exited"} == {
        event.span: event.lane for event in events() if event.kind == "process.started"
    }


def test_a_server_that_is_left_running_is_closed_with_the_run() -> None:
    async def agent() -> None:
        with playhead.record("x"):
            process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"x\n")
            await process.stdout.readline()
        process.stdin.close()
        await process.wait()

    asyncio.run(agent())
    _, came = only()
    assert (came["status"], came["error"]["type"], came["stdout"]) == ("cancelled", "RunEnded", "x\n")


def test_anyio_is_covered() -> None:
    async def agent() -> None:
        done = await anyio.run_process(["cat"], input=b"hello")
        assert done.stdout == b"hello"
        async with await anyio.open_process(["echo", "x"], stdin=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            assert [part async for part in process.stdout] == [b"x\n"]

    with playhead.record("x"):
        anyio.run(agent)
    (_, one), (_, two) = processes()
    assert one is not None
    assert two is not None
    assert (one["stdin"], one["stdout"], two["stdout"], two["exit_code"]) == ("hello", "hello", "x\n", 0)
    assert gaps() == []


def test_everything_is_put_back() -> None:
    from asyncio import base_subprocess, unix_events

    owners = (base_subprocess.BaseSubprocessTransport, unix_events._UnixWritePipeTransport)
    before = [dict(owner.__dict__) for owner in owners]
    with playhead.record("x"):
        assert all(dict(owner.__dict__) != was for owner, was in zip(owners, before, strict=True))
    assert [dict(owner.__dict__) for owner in owners] == before
