"""Processes that the loop of uvloop starts by itself are calls in the timeline like any other."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.capture.processes.seen import events, gaps, only, processes

import playhead

uvloop = pytest.importorskip("uvloop")


def test_a_conversation_is_recorded_in_its_order() -> None:
    async def agent() -> None:
        server = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        for turn in range(3):
            server.stdin.write(f"{turn}\n".encode())
            await server.stdin.drain()
            assert await server.stdout.readline() == f"{turn}\n".encode()
        server.stdin.writelines(iter([b"a", b"b\n"]))
        assert await server.stdout.readline() == b"ab\n"
        server.stdin.close()
        assert await server.wait() == 0

    with playhead.record("x"):
        uvloop.run(agent())
    asked, came = only()
    assert (asked["argv"], asked["streams"]) == (["cat"], {"stdin": "pipe", "stdout": "pipe"})
    assert came["stdin"] == came["stdout"] == "0\n1\n2\nab\n"
    assert (came["exit_code"], came["status"]) == (0, "ok")
    told = zip(came["chunks"]["stdin"]["at_us"], came["chunks"]["stdout"]["at_us"], strict=True)
    order = [at for pair in told for at in pair]
    assert order == sorted(order)
    assert gaps() == []


def test_communicate_the_shell_and_a_folder_of_its_own(tmp_path: Path) -> None:
    async def agent() -> tuple[Any, ...]:
        process = await asyncio.create_subprocess_shell(
            "cat; echo $A $PWD >&2; exit 3", stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=tmp_path, env={"A": "b"}
        )
        return *(await process.communicate(b"\xff" * 300_000)), process.returncode

    with playhead.record("x"):
        assert uvloop.run(agent()) == (b"\xff" * 300_000, f"b {tmp_path}\n".encode(), 3)
    asked, came = only()
    assert (asked["argv"], asked["shell"]) == (["cat; echo $A $PWD >&2; exit 3"], True)
    assert (asked["cwd"], asked["env"]["A"]) == (str(tmp_path), "b")
    assert (came["stdin"], came["stdout"], came["stderr"]) == (b"\xff" * 300_000, b"\xff" * 300_000, f"b {tmp_path}\n")
    assert (came["exit_code"], came["status"]) == (3, "error")


def test_the_end_is_told_before_the_agent_goes_on() -> None:
    async def agent() -> None:
        for number in range(20):
            process = await asyncio.create_subprocess_exec("echo", "x", stdout=PIPE)
            if number % 2:
                await process.communicate()
            else:
                await asyncio.sleep(0.01)  # it has ended when it is waited for
                assert process.stdout is not None
                await process.stdout.read()
                await process.wait()
            playhead.note("after")

    with playhead.record("x"):
        uvloop.run(agent())
    kinds = [event.kind for event in events() if event.kind in ("process.started", "process.exited", "note.added")]
    assert kinds == ["process.started", "process.exited", "note.added"] * 20


def test_signals_and_what_cannot_be_started() -> None:
    async def agent() -> None:
        for end, code in (("terminate", -15), ("kill", -9), ("send_signal", -2)):
            process = await asyncio.create_subprocess_exec("sleep", "60", stdout=DEVNULL)
            getattr(process, end)(*([2] if end == "send_signal" else []))
            assert await process.wait() == code
            with pytest.raises(ProcessLookupError):
                process.terminate()
        with pytest.raises(FileNotFoundError):
            await asyncio.create_subprocess_exec("no-such-program", stdout=PIPE)

    with playhead.record("x"):
        uvloop.run(agent())
    found = [came for _, came in processes() if came is not None]
    assert [[sent["signal"] for sent in came.get("signals", [])] for came in found] == [[15], [9], [2], []]
    assert [came.get("exit_code") for came in found] == [-15, -9, -2, None]
    assert found[3]["error"]["type"] == "FileNotFoundError"


def test_concurrent_processes_have_their_lanes_and_effects() -> None:
    async def one(number: int) -> bytes:
        process = await asyncio.create_subprocess_exec("echo", str(number), stdout=PIPE)
        return (await process.communicate())[0]

    async def agent() -> None:
        assert await asyncio.gather(*(one(number) for number in range(5))) == [b"%d\n" % n for n in range(5)]
        # Started by a task that holds nothing of the agent's own code.
        process = await asyncio.create_task(asyncio.create_subprocess_exec("true"))
        await process.wait()

    with playhead.record("x"):
        uvloop.run(agent())
    lanes = [event.lane for event in events() if event.kind == "process.started"]
    assert len(set(lanes)) == 6
    assert [came["stdout"] for _, came in processes()[:5] if came] == [f"{number}\n" for number in range(5)]
    effects = [event for event in events() if event.kind == "effect.observed"]
    assert [event.lane for event in effects] == lanes
    assert [event.data["detail"]["argv"] for event in effects] == [*(["echo", str(n)] for n in range(5)), ["true"]]
    assert {event.data["detail"]["by"] for event in effects} == {"uvloop"}


class _Listening(asyncio.SubprocessProtocol):
    __slots__ = ("done", "heard")

    def __init__(self) -> None:
        self.heard = b""
        self.done = asyncio.get_running_loop().create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, error: Exception | None) -> None:
        self.done.set_result(None)


def test_what_a_protocol_of_the_agents_own_writes_is_named_with_its_line() -> None:
    async def agent() -> bytes:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(_Listening, "cat")
        pipe: Any = transport.get_pipe_transport(0)
        pipe.write(b"x")
        pipe.close()
        await protocol.done
        _, silent = await loop.subprocess_shell(_Listening, "echo y", stdin=None)
        await silent.done
        return protocol.heard + silent.heard

    with playhead.record("x"):
        assert uvloop.run(agent()) == b"xy\n"
    assert [(came["stdout"], came["exit_code"]) for _, came in processes() if came] == [("x", 0), ("y\n", 0)]
    line = agent.__code__.co_firstlineno + 2
    where = f"stdin of cat, written to a transport of uvloop's at {__name__}:{line}"
    assert gaps() == [("not_captured", {"source": "process", "where": where})]


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

    uvloop.run(agent())
    _, came = only()
    assert (came["status"], came["error"]["type"], came["stdout"]) == ("cancelled", "RunEnded", "x\n")


def test_anyio_is_covered() -> None:
    async def agent() -> None:
        done = await anyio.run_process(["cat"], input=b"hello")
        assert done.stdout == b"hello"

    with playhead.record("x"):
        anyio.run(agent, backend_options={"use_uvloop": True})
    asked, came = only()
    assert (asked["argv"], came["stdin"], came["stdout"], came["exit_code"]) == (["cat"], "hello", "hello", 0)
    assert gaps() == []


def test_a_python_that_it_starts_is_a_run_of_its_own_that_knows_its_span(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import asyncio, sys, uvloop
async def main():
    for env in (None, {"A": "b"}):
        code = "import os, subprocess; subprocess.run(['true']); print(os.environ.get('A'), 'PLAYHEAD_ATTACH' in os.environ)"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=-1, env=env)
        print((await process.communicate())[0].decode().strip())
uvloop.run(main())
""")
    argv = [sys.executable, "-m", "playhead", "record", "--name", "parent", "--", sys.executable, str(program)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "None False\nb False\n"
    spans = {event.span for event in events("parent") if event.kind == "process.started"}
    at = [str(next(iter(run.events())).data["origin"]["at"]) for run in playhead.runs() if run.name == "python"]
    assert len(set(at)) == 2
    assert spans >= set(at)


def test_everything_is_put_back() -> None:
    from asyncio import streams
    from asyncio import subprocess as processes_of_asyncio

    from uvloop import loop

    owners = (
        uvloop.Loop,
        loop.WriteSubprocessPipeProto,
        loop.ReadSubprocessPipeProto,
        processes_of_asyncio.Process,
        streams.StreamWriter,
    )
    before = [dict(owner.__dict__) for owner in owners]
    with playhead.record("x"):
        assert all(dict(owner.__dict__) != was for owner, was in zip(owners, before, strict=True))
    assert [dict(owner.__dict__) for owner in owners] == before
