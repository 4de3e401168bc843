"""Under `strict`, what cannot be recorded stops the run: at once, once, and without a request being repeated."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.capture.sdk_calls import (
    LONG,
    SDKS,
    openai_call,
)

import playhead
from playhead.errors import WriteFailed
from playhead.testing import ScriptedProvider


@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.__name__)
@pytest.mark.parametrize("lines", [0, 2])
def test_a_call_that_cannot_be_recorded_strictly_ends_the_run_and_is_not_tried_again(
    sdk: Callable[..., Any], lines: int, failing: Callable[[int], None]
) -> None:
    with ScriptedProvider([LONG, LONG, LONG]) as provider:

        def agent() -> None:
            with playhead.record("strict", strict=True):
                failing(lines)
                sdk(provider)

        with pytest.raises(WriteFailed):
            agent()
        failing(10**9)
        assert len(provider.requests) <= 1  # a connection that is given up at once may not have been seen


def _strictly(case: str, provider: ScriptedProvider, failing: Callable[[int], None]) -> None:
    """Make a call that cannot be recorded in a strict run, in one of several ways."""

    def ask() -> None:
        failing(0)
        try:
            openai_call(provider)
        finally:
            failing(10**9)

    async def ask_async() -> None:
        await asyncio.sleep(0)
        ask()

    async def in_a_group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask_async())

    async def hidden() -> None:
        async with playhead.record("strict", strict=True):
            await asyncio.gather(ask_async(), return_exceptions=True)

    @playhead.agent("generator", strict=True)
    def generator() -> Iterator[int]:
        yield 1
        ask()

    match case:
        case "in a thread":
            with playhead.record("strict", strict=True):
                thread = threading.Thread(target=contextvars.copy_context().run, args=(ask,))
                thread.start()
                thread.join()
        case "in a group of tasks":
            with playhead.record("strict", strict=True):
                asyncio.run(in_a_group())
        case "hidden by a library":
            asyncio.run(hidden())
        case "in a generator":
            list(generator())
        case "in a step":
            with playhead.record("strict", strict=True), playhead.step("one"):
                ask()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "case", ["in a thread", "in a group of tasks", "hidden by a library", "in a generator", "in a step"]
)
def test_what_cannot_be_recorded_strictly_is_raised_by_the_run_and_declared_in_it(
    case: str, failing: Callable[[int], None]
) -> None:
    with ScriptedProvider([LONG] * 3) as provider:
        with pytest.raises(WriteFailed):
            _strictly(case, provider, failing)
        assert len(provider.requests) <= 1
    verdict = playhead.verify("@last")
    assert (verdict.integrity.verdict, verdict.completeness.verdict) == ("intact", "missing")
    assert list(playhead.load("@last").events())[-1].data["status"] == "error"


def test_a_run_stays_strict_after_an_agent_inside_it_was_stopped(failing: Callable[[int], None]) -> None:
    def inner() -> None:
        with playhead.record("inner"):
            failing(0)
            openai_call(provider)

    def outer() -> None:
        with playhead.record("outer", strict=True):
            for _ in range(2):
                with pytest.raises(WriteFailed):
                    inner()
                failing(10**9)

    with ScriptedProvider([LONG] * 3) as provider:
        outer()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_ends_a_program_is_not_replaced_by_what_was_not_recorded(
    error: type[BaseException], failing: Callable[[int], None]
) -> None:
    async def hidden() -> None:
        failing(0)
        await asyncio.gather(asyncio.to_thread(openai_call, provider), return_exceptions=True)
        failing(10**9)

    def agent() -> None:
        with playhead.record("strict", strict=True):
            asyncio.run(hidden())
            raise error

    with ScriptedProvider([LONG]) as provider, pytest.raises(error):
        agent()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loss_that_was_hidden_is_raised_by_the_agent_that_it_happened_in(failing: Callable[[int], None]) -> None:
    @playhead.agent("first")
    def first() -> None:
        failing(0)
        thread = threading.Thread(target=contextvars.copy_context().run, args=(openai_call, provider))
        thread.start()
        thread.join()
        failing(10**9)

    @playhead.agent("second")
    def second() -> str:
        return "fine"

    with ScriptedProvider([LONG]) as provider, playhead.record("both", strict=True):
        with pytest.raises(WriteFailed):
            first()
        assert second() == "fine"
