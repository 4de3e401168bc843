"""A replay is stopped at an event, in a real terminal, and somebody looks around in the agent's own frame."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.replay.again import ASKING, playhead, record
from tests.replay.going_on import events, told
from tests.replay.terminal import Terminal, terminals

from playhead.testing import ScriptedProvider

__all__ = ["terminals"]  # a fixture

PROGRAM = (
    ASKING
    + """
import threading, time
import playhead

@playhead.tool
def look(what):
    return {"seen": what, "at": time.time()}

def work(total):
    for number in range(3):
        started = time.time()
        said = ask(f"question {number}, total {total}")
        seen = look(said)
        total += number
        playhead.note(f"RECORDED number={number} total={total} said={said!r} started={started} seen={seen!r}")
    return total

print("total", work(10))
if len(sys.argv) > 2:
    raise RuntimeError("it broke")
"""
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("debugging")
    with ScriptedProvider(told) as provider:
        return folder, record(folder, PROGRAM, provider.base_url).run


def variables(shown: str) -> str:
    """Return what `p` printed."""
    return next(line for line in shown.splitlines() if line.startswith("("))


def test_locals_are_as_they_were_when_recorded_and_back_and_forward_agree(
    recording: tuple[Path, str], terminals: list[Terminal]
) -> None:
    folder, run = recording
    notes = [
        event for event in events(folder, run) if event["kind"] == "note.added" and "RECORDED" in str(event["data"])
    ]
    terminal = Terminal(folder, "debug", run, "--at", str(notes[1]["seq"]))
    terminals.append(terminal)
    terminal.until(r"\(playhead \d+\) $")
    asked = "p (number, total, said, started, seen)"
    there = variables(terminal.type(asked))
    number, total, said, started, seen = eval(there)  # of our own program
    text = f"RECORDED number={number} total={total} said={said!r} started={started} seen={seen!r}"
    assert text == notes[1]["data"]["text"]
    assert "program.py" in terminal.type("w")
    ahead = terminal.type("forward")
    assert "model.invoked" in ahead
    further = variables(terminal.type("p (text,)"))
    assert "question 2" in further
    assert "note.added" in terminal.type("back")
    assert variables(terminal.type(asked)) == there
    assert "tool.returned look" in terminal.type("back")
    assert "note.added" in terminal.type("forward")
    assert variables(terminal.type(asked)) == there
    state = terminal.type("state")
    assert "question 1, total 10" in state
    assert "prompt: event" in state
    assert f"event {notes[0]['seq']} of" in terminal.type(f"goto {notes[0]['seq']}")
    assert variables(terminal.type("p (number, total)")) == "(0, 10)"
    assert "for number in range(3)" in terminal.type("n")  # pdb goes on from here
    assert "started = time.time()" in terminal.type("n")
    assert variables(terminal.type("p (number, total)")) == "(1, 10)"
    assert terminal.end("q") == 0


def test_what_is_evaluated_takes_nothing_from_the_tape(recording: tuple[Path, str], terminals: list[Terminal]) -> None:
    folder, run = recording
    called = next(event["seq"] for event in events(folder, run) if event["kind"] == "tool.called")
    terminal = Terminal(folder, "debug", run, "--at", str(called))
    terminals.append(terminal)
    terminal.until(r"\(playhead \d+\) $")
    now = float(variables(terminal.type("p (time.time(),)"))[1:-2])
    assert abs(now - time.time()) < 60
    assert "'seen': 'x'" in terminal.type("look('x')")
    assert "a replay uses no network" in terminal.type("ask('x')")
    terminal.write("c")
    assert "total 13" in terminal.until("went on to its end")  # as recorded


def test_it_begins_at_the_first_error_or_the_first_difference(tmp_path: Path, terminals: list[Terminal]) -> None:
    with ScriptedProvider(told) as provider:
        run = record(tmp_path, PROGRAM, provider.base_url, "fail", succeeds=False).run
    terminal = Terminal(tmp_path, "debug", run)
    terminals.append(terminal)
    assert "note.added" in terminal.until(r"\(playhead \d+\) $")  # the last event before it broke
    assert terminal.end("q") == 0
    (tmp_path / "program.py").write_text(PROGRAM.replace("question {number},", "Question {number},"))
    terminal = Terminal(tmp_path, "debug", run, "--at", "deviation")
    terminals.append(terminal)
    shown = terminal.until(r"\(playhead deviation\) $")
    assert "was asked something else" in shown
    assert variables(terminal.type("p (text,)")) == "('Question 0, total 10',)"
    assert terminal.end("q") == 0


def test_without_a_terminal_lines_come_from_a_pipe(recording: tuple[Path, str]) -> None:
    folder, run = recording
    done = playhead(folder, "debug", run, "--at", "0", stdin="event\nforward\nevent\nnonsense(\n")
    assert done.returncode == 0, done.stderr
    assert "does not cause event 0" in done.stderr
    assert done.stdout.count("of run_") >= 3
    assert "SyntaxError" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--at", "9999"), "has no event 9999"), (("--at", "x"), "has no event x"), (("--json",), "for people")],
)
def test_what_cannot_be_debugged_is_said(recording: tuple[Path, str], options: tuple[str, ...], said: str) -> None:
    folder, run = recording
    done = playhead(folder, "debug", run, *options)
    assert done.returncode == 2
    assert said in done.stderr + done.stdout


def test_it_goes_past_what_a_pool_calls(tmp_path: Path) -> None:
    program = """
    from concurrent.futures import ThreadPoolExecutor
    import playhead
    @playhead.tool
    def look(n):
        return n
    def main():
        a = look(1)
        with ThreadPoolExecutor(1) as pool:
            b = pool.submit(look, 2).result()
        c = look(3)
        print(a, b, c)
    main()
    """
    run = record(tmp_path, program).run
    first, *_, last, _ = [event["seq"] for event in events(tmp_path, run) if event["kind"].startswith("tool.")]
    typed = "forward\nforward\nevent\nback\nevent\nq\n"
    done = playhead(tmp_path, "debug", run, "--at", str(first), stdin=typed)
    assert "none of the program's own code leads to event" in done.stderr
    assert f"(playhead {last})" in done.stdout
    assert done.stdout.rstrip().endswith(f"(playhead {first + 1})"), done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("command", ["fork", "debug"])
def test_names_are_counted_from_one(recording: tuple[Path, str], command: str) -> None:
    folder, run = recording
    done = playhead(folder, command, run, "--at", "look#0")
    assert done.returncode == 2
    assert "counted from 1" in done.stderr
