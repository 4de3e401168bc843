"""What the next reviews found."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest
from tests.replay.again import ASKING, Recorded, playhead, record

from playhead.testing import Text


def change(recorded: Recorded, old: str, new: str) -> None:
    path = recorded.folder / "program.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.test")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_working_tree_with_changes_is_no_difference(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text(".playhead\n__pycache__\n")
    (tmp_path / "program.py").write_text("print('hello')\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "begin")
    recorded = record(tmp_path, "print('hello')")
    change(recorded, "print('hello')", "print('hello')  # a comment")
    recorded.faithful()
    again = record(tmp_path, "print('hello')  # another")
    again.faithful()
    git(tmp_path, "commit", "-qam", "go on")
    found = again.faithful()
    assert found.report["surface"]["not_compared"] == []
    change(again, "hello", "good bye")
    assert again.replay().first["name"] == "stdout"


def test_a_grade_of_code_that_has_changed_says_so_and_leaves_the_recording_alone(tmp_path: Path) -> None:
    recorded = record(tmp_path, "import os\nprint('hello', os.environ.get('HOME'))")
    change(recorded, "hello", "good bye")
    graded = playhead(tmp_path, "grade", recorded.run)
    assert (graded.returncode, graded.stdout.count("the code has changed since")) == (3, 1)
    change(recorded, "good bye", "hello")
    recorded.faithful()


def test_an_agent_that_commits_is_replayed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "begin", "--allow-empty")
    program = """
    import subprocess
    git = ["git", "-c", "user.name=nobody", "-c", "user.email=nobody@example.test"]
    open("new.txt", "w").write("hello")
    subprocess.run([*git, "add", "new.txt"], check=True)
    subprocess.run([*git, "commit", "-qm", "add"], check=True)
    print(subprocess.run([*git, "log", "--format=%H"], check=True, capture_output=True).stdout)
    """
    recorded = record(tmp_path, program)
    recorded.faithful()
    assert playhead(tmp_path, "grade", recorded.run).returncode == 0


def test_what_is_reproduced_and_refused_all_the_same_says_so(tmp_path: Path) -> None:
    program = """
    import playhead
    @playhead.tool
    def look():
        return object()
    look()
    """
    recorded = record(tmp_path, program)
    graded = playhead(tmp_path, "grade", recorded.run)
    assert graded.returncode == 1
    assert "reproduced: " in graded.stdout
    assert "refused all the same by `playhead replay --mode exact`: unrestorable_value" in graded.stdout


@pytest.mark.parametrize(
    "sleeps",
    [
        "await asyncio.sleep(30)",
        "await asyncio.gather(*(asyncio.sleep(number) for number in (30, 20, 10)))",
        "[await one for one in asyncio.as_completed([asyncio.sleep(5), asyncio.create_task(asyncio.sleep(9))])]",
    ],
)
def test_a_sleep_that_was_not_recorded_ends_and_is_named(tmp_path: Path, sleeps: str) -> None:
    recorded = record(tmp_path, "import asyncio\nasync def main():\n    pass\nasyncio.run(main())\nprint('done')")
    change(recorded, "    pass", f"    {sleeps}")
    found = recorded.replay()
    assert found.output == "done\n"
    assert any(one["source"] == "asyncio.timer" for one in found.report["surface"]["drift"])


def test_a_timeout_that_was_not_reached_is_not_reached_again(tmp_path: Path) -> None:
    program = """
    import asyncio, random
    async def slow():
        await asyncio.sleep(0.02)
        return "in time"
    async def main():
        for _ in range(3):
            print(await asyncio.wait_for(slow(), timeout=30))
    asyncio.run(main())
    """
    recorded = record(tmp_path, program)
    assert recorded.faithful().report["surface"]["drift"] == []


WAITING = {
    "thread": """
    import queue, threading
    got = queue.Queue()
    threading.Thread(target=lambda: got.put(ask("hello")), daemon=True).start()
    print(got.get())
    """,
    "task": """
    import asyncio
    async def main():
        got = asyncio.Queue()
        async def work():
            await got.put(await asyncio.to_thread(ask, "hello"))
        task = asyncio.create_task(work())
        print(await got.get())
    asyncio.run(main())
    """,
}


@pytest.mark.parametrize(
    "sort", [pytest.param(sort, marks=[pytest.mark.hard] if sort == "thread" else []) for sort in WAITING]
)
def test_a_program_that_waits_for_one_that_deviated_is_ended(tmp_path: Path, sort: str) -> None:
    recorded = record(tmp_path, ASKING + textwrap.dedent(WAITING[sort]), answers=[Text("hi")])
    recorded.faithful()
    change(recorded, '"hello"', '"hallo"')
    found = recorded.replay()
    assert found.first["type"] == "changed"
    assert found.exit_code == 1
    assert found.report["live_calls"] == 0


def test_what_the_interpreter_prints_at_the_end_is_the_same(tmp_path: Path) -> None:
    recorded = record(tmp_path, "import sys\nsys.exit('bye')", succeeds=False)
    found = recorded.replay()
    assert found.report["fidelity"]["verdict"] == "faithful", found.report["deviations"]
    assert found.errors.startswith("bye\n")


def test_workers_of_a_pool_that_is_ended_lose_no_question(tmp_path: Path) -> None:
    program = """
    import multiprocessing
    def work(number):
        return [ask(f"{number} {part}") for part in range(3)]
    if __name__ == "__main__":
        with multiprocessing.Pool(2) as pool:
            print(pool.map(work, range(4)))
    """
    recorded = record(tmp_path, ASKING + textwrap.dedent(program), answers=[Text("hi")] * 12)
    for _ in range(3):
        assert recorded.faithful().report["surface"]["taped"] == 12


def test_what_becomes_a_secret_later_was_none_when_it_was_asked(tmp_path: Path) -> None:
    program = """
    ask("please use tokQ9x8w7v6u5t4s3r2q1p to log in")
    try:
        httpx.get("http://127.0.0.1:9/other", headers={"Authorization": "Bearer tokQ9x8w7v6u5t4s3r2q1p"})
    except httpx.HTTPError as problem:
        print(type(problem).__name__)
    print(ask("done?"))
    """
    recorded = record(tmp_path, ASKING + textwrap.dedent(program), answers=[Text("yes")] * 2)
    recorded.faithful()


def test_a_stream_whose_rest_is_asked_for_once_more_is_recorded_once(tmp_path: Path) -> None:
    program = """
    import asyncio, sys, openai
    async def main():
        async with openai.AsyncOpenAI(api_key="none", base_url=sys.argv[1]) as client:
            question = [{"role": "user", "content": "hello"}]
            stream = await client.chat.completions.create(model="gpt-5", messages=question, stream=True)
            print("".join([one.choices[0].delta.content or "" async for one in stream if one.choices]))
    asyncio.run(main())
    """
    recorded = record(tmp_path, program, answers=[Text("hi there")])
    found = recorded.faithful()
    shown = playhead(tmp_path, "show", found.report["run"], "--raw").stdout
    assert shown.count("[DONE]") == 1


def test_a_program_that_catches_every_deviation_and_asks_again_is_ended(tmp_path: Path) -> None:
    program = (
        ASKING
        + """
def insist(words):
    while True:
        try:
            return ask(words)
        except:  # noqa: E722
            pass
print(insist("one"))
"""
    )
    recorded = record(tmp_path, program, answers=[Text("1")])
    change(recorded, 'insist("one")', 'insist("another")')
    report = recorded.report()
    assert (report["fidelity"]["verdict"], report["live_calls"]) == ("deviated", 0)


def test_a_forked_child_counts_for_itself(tmp_path: Path) -> None:
    program = """
    import os, subprocess
    for _ in range(3):
        subprocess.run(["true"])
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
    """
    surface = record(tmp_path, program).faithful().report["surface"]
    assert (surface["taped"], surface["calls"]) == (3, 3)


def test_a_file_that_is_written_and_then_gets_another_mode(tmp_path: Path) -> None:
    (tmp_path / "token.json").write_text("{}")
    (tmp_path / "token.json").chmod(0o644)
    program = """
    import json, os
    token = json.load(open("token.json"))
    with open("token.json", "w") as file:
        json.dump({**token, "n": 1}, file)
    os.chmod("token.json", 0o600)
    """
    record(tmp_path, program).faithful()


def test_what_was_interrupted_from_outside_is_not_replayed(tmp_path: Path) -> None:
    program = """
    import os, signal, time
    os.kill(os.getppid(), signal.SIGINT)
    try:
        while True:
            time.sleep(0.1)
    except KeyboardInterrupt:
        print("stopped")
    """
    recorded = record(tmp_path, program)
    assert recorded.output == "stopped\n"
    refused = playhead(tmp_path, "replay", recorded.run, "--mode", "exact")
    assert refused.returncode == 1
    assert "not_captured: signal SIGINT from outside" in refused.stderr
