"""What holds for every framework: tools told once, releases of another shape, and everything put back."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import playhead
from playhead.capture import clients
from playhead.capture.dialects.base import Answered, ToolAsked
from playhead.capture.frameworks import google_genai, langchain, langgraph, openai_agents, pydantic_ai, seams
from playhead.capture.patches import Patches
from playhead.capture.scope import live
from playhead.capture.spans import ToolCall

PARTS = (google_genai, langchain, langgraph, openai_agents, pydantic_ai)


def recorded() -> list[Any]:
    return list(playhead.load("@last").events())


def called() -> list[tuple[str, str | None]]:
    return [(event.data["name"], event.parent) for event in recorded() if event.kind == "tool.called"]


def by_framework(name: str, call: str | None = None) -> ToolCall:
    return ToolCall(name, {}, [], call, framework=True)


@playhead.tool(effects=["write"])
def countdown(number: int) -> int:
    return number if number == 0 else countdown(number - 1)


def test_a_decorated_tool_that_a_framework_calls_is_told_by_the_framework_alone() -> None:
    with playhead.record("run"), by_framework("countdown"):
        countdown(0)
    assert called() == [("countdown", "0")]


def test_only_the_first_call_is_the_frameworks_own() -> None:
    with playhead.record("run"), by_framework("countdown"):
        countdown(1)
    assert called() == [("countdown", "0"), ("countdown", "1")]


def test_another_tool_inside_is_told() -> None:
    with playhead.record("run"), by_framework("other"):
        countdown(0)
    assert called() == [("other", "0"), ("countdown", "1")]


def test_the_tool_is_told_again_when_something_lies_between() -> None:
    with playhead.record("run"), by_framework("countdown"), playhead.step("between"):
        countdown(0)
    assert [name for name, _ in called()] == ["countdown", "countdown"]


def test_layers_of_one_framework_tell_of_a_call_once_even_under_another_name() -> None:
    layers = by_framework("mine_people", "call_a"), by_framework("people", "call_a"), by_framework("people", "call_b")
    with playhead.record("run"), layers[0], layers[1], layers[2]:
        pass
    assert [name for name, _ in called()] == ["mine_people", "people"]


def test_a_write_is_on_the_disk_before_it_happens_though_the_framework_does_not_know_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with playhead.record("run") as run:
        assert run.recording is not None
        synced: list[int] = []
        monkeypatch.setattr(run.recording, "sync", lambda: synced.append(1))
        with by_framework("countdown"):
            assert synced == []
            countdown(0)
            assert synced == [1]
        monkeypatch.undo()


def test_the_error_of_a_tool_is_kept_where_its_framework_makes_an_answer_of_it() -> None:
    with playhead.record("run"), by_framework("tool") as call:
        seams.note_failure(ValueError("no"))
        call.output = "something went wrong"
    returned = next(event.data for event in recorded() if event.kind == "tool.returned")
    assert (returned["status"], returned["error"]["type"], returned["output"]) == (
        "error", "ValueError", "something went wrong",
    )  # fmt: skip


def test_a_tool_that_runs_before_the_answer_is_whole_belongs_to_the_call_under_way() -> None:
    with playhead.record("run"):
        scope = live()
        assert scope is not None
        turns = scope.recording.turns
        with turns.lock:
            turns.asking("7", scope.span)
        with ToolCall("weather", {"city": "Rome"}, []):
            pass
        asked = (ToolAsked("call_a", "weather", {"city": "Rome"}), ToolAsked("call_b", "weather", {"city": "Oslo"}))
        turns.answered(scope, "7", Answered({}, calls=asked), False)
        with ToolCall("weather", {"city": "Oslo"}, []):
            pass
    told = [event.data for event in recorded() if event.kind == "tool.called"]
    assert [data.get("asked_by") for data in told] == ["7", "7"]
    assert told[1]["call"] == "call_b"


def test_an_id_that_a_framework_gives_to_a_call_without_one_does_not_hide_it() -> None:
    with playhead.record("run"):
        scope = live()
        assert scope is not None
        turns = scope.recording.turns
        asked = (ToolAsked(None, "weather", {"city": "Rome"}), ToolAsked("call_b", "weather", {"city": "Rome"}))
        turns.answered(scope, "7", Answered({}, calls=asked), False)
        for call in ("own_1", "call_b", "own_2"):
            with ToolCall("weather", {"city": "Rome"}, [], call):
                pass
    told = [event.data for event in recorded() if event.kind == "tool.called"]
    assert [(data["call"], data.get("asked_by")) for data in told] == [
        ("own_1", "7"), ("call_b", "7"), ("own_2", None),
    ]  # fmt: skip


def test_a_conversation_of_an_agent_goes_on_from_task_to_task() -> None:
    async def main() -> list[str | None]:
        with playhead.record("run"), seams.AgentStep("agent"):
            scope = live()
            assert scope is not None
            turns = scope.recording.turns
            seen: list[str | None] = []

            async def ask() -> None:
                place = live()
                assert place is not None
                seen.append(place.span)
                with turns.lock:
                    turns.opened(place, "99")

            async def work() -> None:
                place = live()
                assert place is not None
                seen.append(place.span)

            await asyncio.create_task(ask())
            await asyncio.create_task(work())
            with turns.lock:
                turns.open.clear()
            return seen

    assert asyncio.run(main()) == ["1", "99"]


def other_shape(patches: Patches) -> Any:
    owner = SimpleNamespace(__name__="framework", run=None)

    def run(value: int) -> int:
        return value + 1

    owner.run = run
    seams.tools(patches, owner, "run", lambda value: ToolCall(value.name, {}, []), lambda _, result: result)
    return owner


def test_a_release_of_another_shape_is_a_gap_and_not_the_agents_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    patches = Patches()
    owner = other_shape(patches)
    with playhead.record("run"):
        assert [owner.run(1), owner.run(2)] == [2, 3]
    gaps = [event.data for event in recorded() if event.kind == "gap.noted"]
    assert [(gap["reason"], gap["count"], gap["detail"]["source"]) for gap in gaps] == [
        ("not_captured", 0, "framework")
    ]  # fmt: skip
    assert called() == []


def test_a_module_of_another_shape_is_a_gap_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    name = langchain.MODULES[0]
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with playhead.record("run"):
        pass
    assert recorded()[0].kind == "run.started"
    gaps = [event.data for event in recorded() if event.kind == "gap.noted"]
    assert [gap["detail"]["source"] for gap in gaps] == [name]


def test_nothing_is_told_in_a_run_that_captures_nothing() -> None:
    patches = Patches()
    owner = SimpleNamespace(__name__="framework", run=lambda: 1)
    seams.tools(patches, owner, "run", lambda: ToolCall("tool", {}, []), lambda _, result: result)
    with playhead.record("run", capture=False):
        assert owner.run() == 1
    assert called() == []


def test_everything_is_put_back_by_identity() -> None:
    waited = [name for part in PARTS for name in part.MODULES]
    found = [name for name in waited if _is_there(name)]
    if not found:
        pytest.skip("no framework is installed here; the matrix has them")
    for name in found:
        importlib.import_module(name)
    with playhead.record("run"):
        done = [patched for patched in clients._patches._done if hasattr(patched[0], "__dict__")]  # no closures
        owners = {getattr(owner, "__module__", None) or owner.__name__ for owner, *_ in done}
        assert {name.partition(".")[0] for name in found} <= {owner.partition(".")[0] for owner in owners}
        assert all(owner.__dict__[name] is replacement for owner, name, _, replacement in done)
    assert all(owner.__dict__[name] is original for owner, name, original, _ in done)


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
