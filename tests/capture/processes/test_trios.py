"""Processes that trio starts are calls in the timeline, whole, and the agent notices nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.capture.processes.seen import gaps, only, processes

import playhead

trio: Any = pytest.importorskip("trio")
PIPE = -1


def test_run_process_is_asked_and_answered() -> None:
    async def agent() -> None:
        done = await trio.run_process(
            ["sh", "-c", "cat; echo oops >&2; exit 3"],
            stdin=b"in",
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (3, b"in", b"oops\n")

    with playhead.record("x"):
        trio.run(agent)
    asked, came = only()
    assert asked["argv"] == ["sh", "-c", "cat; echo oops >&2; exit 3"]
    assert (came["stdin"], came["stdout"], came["stderr"], came["exit_code"]) == ("in", "in", "oops\n", 3)
    assert gaps() == []


def test_a_conversation_is_recorded_in_its_order() -> None:
    async def agent() -> None:
        server = await trio.lowlevel.open_process(["cat"], stdin=PIPE, stdout=PIPE)
        for turn in range(3):
            await server.stdin.send_all(b"%d\n" % turn)
            assert await server.stdout.receive_some(100) == b"%d\n" % turn
        await server.stdin.aclose()
        assert await server.wait() == 0
        assert await server.stdout.receive_some() == b""

    with playhead.record("x"):
        trio.run(agent)
    _, came = only()
    assert (came["stdin"], came["stdout"], came["status"]) == ("0\n1\n2\n", "0\n1\n2\n", "ok")
    told = zip(came["chunks"]["stdin"]["at_us"], came["chunks"]["stdout"]["at_us"], strict=True)
    order = [at for pair in told for at in pair]
    assert order == sorted(order)


def test_one_that_is_cancelled_and_one_that_cannot_be_started() -> None:
    async def agent() -> None:
        with trio.move_on_after(0.2):
            await trio.run_process(["sleep", "60"])
        with pytest.raises(FileNotFoundError):
            await trio.run_process(["no-such-program"], capture_stdout=True)
        await trio.run_process(["sh", "-c", "echo x >&2"], capture_stdout=True, stderr=-2)

    with playhead.record("x"):
        trio.run(agent)
    (_, one), (_, two), (_, three) = processes()
    assert one is not None
    assert two is not None
    assert three is not None
    assert (one["exit_code"], [sent["signal"] for sent in one["signals"]]) == (-15, [15])
    assert two["error"]["type"] == "FileNotFoundError"
    assert (three["stdout"], "stderr" in three) == ("x\n", False)
    assert gaps() == []
