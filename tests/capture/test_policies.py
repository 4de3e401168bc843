"""Policies hold: recorded or not, nested or not, in threads too."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import playhead


def no_deletes(capability: str, resource: str | None, context: dict[str, Any]) -> bool:
    return capability != "fs.delete"


def no_writes(capability: str, resource: str | None, context: dict[str, Any]) -> bool:
    return capability != "fs.write"


def denied(capability: str) -> bool:
    try:
        playhead.check(capability)
    except playhead.PolicyDenied:
        return True
    return False


def test_a_policy_is_enforced_where_nothing_can_be_recorded(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = playhead.record("x", store=tmp_path / "file", policy=no_deletes)
    with pytest.warns(playhead.RecordingWarning):
        run.__enter__()
    assert run.id is None
    assert denied("fs.delete")
    assert not denied("fs.write")
    run.__exit__(None, None, None)
    assert not denied("fs.delete"), "and only there"


def test_a_policy_is_enforced_while_recording_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_DISABLED", "1")

    @playhead.agent("off", policy=no_deletes)
    def agent() -> bool:
        return denied("fs.delete")

    assert agent()


def test_an_agent_inside_another_is_bound_by_both_policies() -> None:
    @playhead.agent("inner", policy=no_writes)
    def inner() -> list[bool]:
        return [denied("fs.delete"), denied("fs.write"), denied("fs.read")]

    @playhead.agent("outer", policy=no_deletes)
    def outer() -> tuple[list[bool], list[bool]]:
        inside = inner()
        return inside, [denied("fs.delete"), denied("fs.write")]

    assert outer() == ([True, True, False], [True, False])
    rules = [e.data["rule"] for e in playhead.load("@last").events() if e.kind == "policy.checked"]
    assert rules == ["no_deletes", "no_writes", "no_writes", "no_deletes", "no_deletes"]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_policy_holds_in_threads_and_tasks(recorded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not recorded:
        monkeypatch.setenv("PLAYHEAD_DISABLED", "1")
    found: list[bool] = []

    async def task() -> None:
        found.append(denied("fs.delete"))

    async def gathered() -> None:
        await asyncio.gather(task(), task())

    with playhead.record("threads", policy=no_deletes):
        thread = threading.Thread(target=lambda: found.append(denied("fs.delete")))
        thread.start()
        thread.join()
        asyncio.run(gathered())
    assert found == [True, True, True]


def test_a_policy_that_is_a_coroutine_denies_and_says_so() -> None:
    async def policy(*_: Any) -> bool:
        return True

    with playhead.record("x", policy=policy), pytest.raises(playhead.PolicyDenied, match="plain function"):
        playhead.check("fs.read")


def test_a_generator_agent_has_its_policy_only_while_it_runs() -> None:
    @playhead.agent("stream", policy=no_deletes)
    def stream() -> Any:
        yield denied("fs.delete")
        yield denied("fs.delete")

    generator = stream()
    assert next(generator)
    assert not denied("fs.delete")
    assert list(generator) == [True]


def test_a_record_left_in_another_context_takes_only_its_own_policy_with_it() -> None:
    with playhead.record("outer", policy=no_deletes):
        inner = playhead.record("inner", policy=no_writes)
        thread = threading.Thread(target=inner.__enter__)
        thread.start()
        thread.join()
        inner.__exit__(None, None, None)
        assert denied("fs.delete")


def test_a_run_that_cannot_be_opened_strictly_leaves_no_patch_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    before = threading.Thread.start
    for _ in range(3):
        with (
            pytest.raises(playhead.PlayheadError),
            playhead.record("x", policy=no_writes, store=tmp_path / "file", strict=True),
        ):
            pass
    assert threading.Thread.start is before
