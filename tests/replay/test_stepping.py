"""One step of a recorded program is run again: alone where that can be, else with all that comes before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.replay.again import ASKING, playhead, record
from tests.replay.going_on import answered, lines, told

from playhead.testing import ScriptedProvider

PROGRAM = (
    ASKING
    + """
import asyncio, dataclasses, time
import playhead

@dataclasses.dataclass
class Goal:
    text: str
    size: int = 1

class Odd:
    def __init__(self, value):
        self.value = value

@dataclasses.dataclass
class Planner:
    name: str

    @playhead.step
    def sketch(self, lines):
        return [f"{self.name} {ask(line)}" for line in lines]

@playhead.tool
def look(what):
    with open("looked.txt", "a") as file:
        file.write(f"{what}\\n")
    return {"seen": what}

@playhead.step
def plan(goal: Goal, depth=2):
    said = [ask(f"{goal.text} {n}") for n in range(depth)]
    return {"said": said, "seen": look(goal.text), "when": time.time()}

@playhead.step("slow")
async def slow(n):
    await asyncio.sleep(0.01)
    inner = await asyncio.gather(*(asyncio.sleep(0.001 * m, m) for m in range(3)))
    return [n, inner, time.time()]

@playhead.step
def odd(thing):
    return [thing.value, ask(f"odd {thing.value}")]

@playhead.step
def items(count):
    for number in range(count):
        yield ask(f"item {number}")

@playhead.step
def fails(why):
    raise ValueError(ask(why))

def main():
    before = ask("first")
    print(plan(Goal(before, 3))["said"])
    print(asyncio.run(slow(4))[0])
    print(odd(Odd(7)))
    print(Planner("P").sketch(["a", "b"]))
    print(list(items(2)))
    try:
        fails("why")
    except ValueError as error:
        print(error)
    with playhead.step("finish") as step:
        step.set_attributes(last=ask("last"))
    print(plan(Goal("again"))["said"])

if __name__ == "__main__":
    main()
"""
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("steps")
    with ScriptedProvider(told) as provider:
        (folder / "program.py").write_text(PROGRAM)
        run = record(folder, PROGRAM, provider.base_url).run
    return folder, run


@pytest.mark.parametrize(
    ("step", "how"),
    [
        ("plan", "alone"),
        ("plan#2", "alone"),
        ("slow", "alone"),
        ("sketch", "alone"),
        ("items", "alone"),
        ("fails", "alone"),
        ("odd", "up_to"),
        ("finish", "up_to"),
    ],
)
def test_a_step_comes_to_the_same(recording: tuple[Path, str], step: str, how: str) -> None:
    folder, run = recording
    before = lines(folder, "looked.txt")
    found = answered(folder, "replay", run, "--mode", "step", "--step", step)
    assert found["fidelity"]["verdict"] == "faithful", found
    assert found["how"] == how
    assert (found["why"] is None) is (how == "alone")
    assert found["live_calls"] == 0
    assert found["replayed"]["status"] == found["recorded"]["status"]
    assert lines(folder, "looked.txt") == before  # no tool has run


def test_with_other_arguments_it_comes_to_something_else(recording: tuple[Path, str]) -> None:
    folder, run = recording
    (folder / "input.json").write_text('{"depth": 1}')
    found = answered(folder, "replay", run, "--mode", "step", "--step", "plan", "--input", "input.json")
    assert found["fidelity"]["verdict"] == "deviated"
    assert found["replayed"]["output"]["said"] == ["re re first 0"]
    assert found["changes"][0]["path"] == "/output/said/1"


def test_a_question_that_it_did_not_ask_is_a_deviation(recording: tuple[Path, str]) -> None:
    folder, run = recording
    goal = {"goal": {"$object": "__main__.Goal", "fields": {"text": "new", "size": 1}}}
    found = answered(folder, "replay", run, "--mode", "step", "--step", "plan", "--input", "-", stdin=json.dumps(goal))
    assert found["fidelity"]["first"]["kind"] == "model.invoked"
    assert found["replayed"]["status"] == "error"


def test_live_its_models_and_tools_are_asked(tmp_path: Path) -> None:
    with ScriptedProvider(told) as provider:
        run = record(tmp_path, PROGRAM, provider.base_url).run
        before, asked = lines(tmp_path, "looked.txt"), len(provider.requests)
        alone = answered(tmp_path, "replay", run, "--mode", "step", "--step", "plan", "--live")
        assert len(provider.requests) == asked + 2
        inside = answered(tmp_path, "replay", run, "--mode", "step", "--step", "finish", "--live")
        assert len(provider.requests) == asked + 3
    assert alone["live_calls"] == 3
    assert lines(tmp_path, "looked.txt") == [*before, "re first"]
    assert (inside["how"], inside["live_calls"]) == ("up_to", 1)
    assert inside["fidelity"]["verdict"] == "faithful"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "which step?"),
        (("--step", "none"), "has no step 'none'"),
        (("--step", "plan", "--input", "nothing.json"), "cannot read the arguments"),
        (("--step", "odd", "--input", "-"), "cannot be given other arguments"),
        (("--step", "plan", "--input", "-"), "has no argument wrong"),
        (("--step", "plan", "--times", "2"), "--times is for `--mode model`"),
    ],
)
def test_what_cannot_be_run_is_said(recording: tuple[Path, str], options: tuple[str, ...], said: str) -> None:
    folder, run = recording
    done = playhead(folder, "replay", run, "--mode", "step", *options, stdin='{"wrong": 1}')
    assert done.returncode == 2
    assert said in done.stderr


def test_code_that_has_changed_is_found_in_its_step(tmp_path: Path) -> None:
    with ScriptedProvider(told) as provider:
        run = record(tmp_path, PROGRAM, provider.base_url).run
    (tmp_path / "program.py").write_text(PROGRAM.replace('f"{self.name} {ask(line)}"', 'f"{self.name}: {ask(line)}"'))
    done = playhead(tmp_path, "replay", run, "--mode", "step", "--step", "sketch")
    assert done.returncode == 1
    assert "it came to something else" in done.stderr
    assert "P{+:+} re a" in done.stderr


def test_what_was_read_before_the_step_and_again_in_it_is_told_by_the_tape(tmp_path: Path) -> None:
    program = """
    import playhead
    def read():
        return open("settings").read()
    @playhead.tool(effects=["write"])
    def book(what):
        open("booked", "a").write(what)
    @playhead.step
    def plan(n):
        return read() + str(n)
    if __name__ == "__main__":
        log = open("log", "a")
        print(plan(1), plan(2))
        with playhead.step("last"):
            log.write("line")
            book("x")
    """
    (tmp_path / "settings").write_text("A")
    run = record(tmp_path, program).run
    (tmp_path / "settings").write_text("B")
    assert answered(tmp_path, "replay", run, "--mode", "step", "--step", "plan#2")["fidelity"]["verdict"] == "faithful"
    (tmp_path / "log").unlink()
    assert answered(tmp_path, "replay", run, "--mode", "step", "--step", "last", "--live")["live_calls"] == 1
    assert (tmp_path / "booked").read_text() == "xx"
    assert (tmp_path / "log").read_text() == "line"  # though the program is stopped before it closes it


def test_from_python(recording: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    import playhead as library

    folder, run = recording
    monkeypatch.chdir(folder)
    found: Any = library.replay(run, mode="step", step="plan")
    assert found.same
    assert found.how == "alone"
    with pytest.raises(library.PlayheadError, match="which step"):
        library.replay(run, mode="step")
    with pytest.raises(library.PlayheadError, match="`model` is not for"):
        library.replay(run, mode="step", step="plan", model="other")
