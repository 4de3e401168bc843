"""Programs of every sort go on in the world after their tape: tasks, threads, processes, databases, secrets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.replay.again import ASKING, playhead
from tests.replay.going_on import answered, lines, told

from playhead.testing import ScriptedProvider

TASKS = """
import asyncio, os, sys, time
import httpx, playhead

@playhead.tool(effects=["read"])
async def look(what):
    await asyncio.sleep(0.01)
    with open("looked", "a") as file:
        file.write(f"{what}\\n")
    return what

async def worker(client, number):
    found = []
    for turn in range(3):
        body = {"model": "gpt-5", "messages": [{"role": "user", "content": f"{number}.{turn}"}]}
        answer = await client.post(f"{sys.argv[1]}/chat/completions", json=body)
        began = time.monotonic()
        await asyncio.sleep(0.02)
        assert 0 <= time.monotonic() - began < 10
        found.append(await look(answer.json()["choices"][0]["message"]["content"]))
        if os.path.exists("die") and (number, turn) == (1, 1):
            os.kill(os.getpid(), 9)
    return found

@playhead.agent
async def main():
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with httpx.AsyncClient() as client:
        found = await asyncio.gather(*(worker(client, number) for number in range(3)))
    async with asyncio.timeout(5):
        await asyncio.sleep(0.05)
    print(found, 0 < loop.time() - began < 60)
    return found

asyncio.run(main())
"""

THREADS = """
import concurrent.futures, os, subprocess, sys, time
import playhead

def worker(number):
    found = []
    for turn in range(3):
        time.sleep(0.01)
        command = f"echo {number}.{turn} >> done; echo did {number}.{turn}"
        found.append(subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout.strip())
        if os.path.exists("die") and (number, turn) == (1, 1):
            time.sleep(0.5)
            os.kill(os.getpid(), 9)
    return found

with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print(list(pool.map(worker, range(3))))
"""

# Talks to one process all the time, and starts others.
TALKING = """
import os, subprocess
told = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
for number in range(3):
    told.stdin.write(f"{number}\\n")
    print("got", told.stdout.readline().strip(), flush=True)
    subprocess.run(["sh", "-c", f"echo {number} >> done"], check=True)
    if os.path.exists("die") and number == 1:
        os.kill(os.getpid(), 9)
told.stdin.close()
print(told.wait())
"""


def cut_off(folder: Path, program: str, *arguments: str, launched: bool = True) -> None:
    """Let a program be recorded, and killed in the midst of it."""
    (folder / "program.py").write_text(program)
    (folder / "die").touch()
    if launched:
        playhead(folder, "record", "--quiet", "--", sys.executable, "program.py", *arguments)
    else:
        subprocess.run([sys.executable, "program.py", *arguments], cwd=folder, check=False)
    (folder / "die").unlink()


@pytest.mark.parametrize("launched", [True, False], ids=["launched", "by itself"])
def test_tasks_go_on_each_from_where_it_was(tmp_path: Path, launched: bool) -> None:
    with ScriptedProvider(told) as provider:
        cut_off(tmp_path, TASKS, provider.base_url, launched=launched)
        if not launched:
            assert "nobody watched" in playhead(tmp_path, "resume", "@last").stderr
        done = playhead(tmp_path, "resume", "@last", *(() if launched else ("--waive", "not_captured")))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[[f're {n}.{t}' for t in range(3)] for n in range(3)]} True\n"
    assert set(lines(tmp_path, "looked")) == {f"re {n}.{t}" for n in range(3) for t in range(3)}


def test_threads_go_on_and_what_they_had_done_is_not_done_again(tmp_path: Path) -> None:
    cut_off(tmp_path, THREADS)
    done = playhead(tmp_path, "resume", "@last")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[[f'did {n}.{t}' for t in range(3)] for n in range(3)]}\n"
    assert sorted(lines(tmp_path, "done")) == sorted(f"{n}.{t}" for n in range(3) for t in range(3))


def test_a_process_that_was_talked_to_is_started_again_if_that_is_wanted_and_no_other(tmp_path: Path) -> None:
    cut_off(tmp_path, TALKING)
    assert "process.started cat" in playhead(tmp_path, "resume", "@last").stderr
    assert "cannot be passed over" in playhead(tmp_path, "resume", "@last", "--in-flight", "skip").stderr
    found = answered(tmp_path, "resume", "@last", "--in-flight", "retry")
    assert found["exit_code"] == 0
    assert found["live_calls"] == 2
    assert lines(tmp_path, "done") == ["0", "1", "2"]


def test_what_a_live_tool_printed_is_printed_again_when_that_is_replayed(tmp_path: Path) -> None:
    program = (
        ASKING
        + """
import playhead
@playhead.tool
def shout(text):
    print("SHOUTING", text)
    return text.upper()
print(shout(ask("a")))
print(shout(ask("b")))
"""
    )
    with ScriptedProvider(told) as provider:
        (tmp_path / "program.py").write_text(program)
        playhead(tmp_path, "record", "--quiet", "--", sys.executable, "program.py", provider.base_url)
        forked = answered(tmp_path, "fork", "@last", "--at", "shout#1", "--live", "all")
    assert forked["outcome"]["same"]
    assert forked["live_calls"] == 2
    assert answered(tmp_path, "replay", forked["run"], "--mode", "exact")["fidelity"]["verdict"] == "faithful"


def test_a_python_that_is_started_past_the_tape_is_itself(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import sys, time\nprint(sys.stdin.read().upper(), time.time() > 0, end='')\n")
    (tmp_path / "program.py").write_text(
        "import subprocess, sys, playhead\n"
        "@playhead.tool\ndef look(text):\n"
        "    return subprocess.run([sys.executable, 'other.py'], input=text, capture_output=True, text=True).stdout\n"
        "print(look('a'))\nprint(look('b'))\n"
    )
    playhead(tmp_path, "record", "--quiet", "--", sys.executable, "program.py")
    found = answered(tmp_path, "fork", "@last", "--at", "look#1", "--live", "all")
    assert found["outcome"]["same"], found
    assert found["live_calls"] == 2  # the tool, and the process in it


def test_only_tools_are_live_and_a_new_question_is_refused(tmp_path: Path) -> None:
    program = ASKING + (
        "import playhead, random\n"
        "@playhead.tool\ndef roll(sides):\n    open('rolled', 'a').write('x')\n    return sides\n"
        "print(ask('a'), roll(6), ask('b'), roll(len(open('rolled').read())), ask(f'c {roll(1)}'))\n"
    )
    with ScriptedProvider(told) as provider:
        (tmp_path / "program.py").write_text(program)
        playhead(tmp_path, "record", "--quiet", "--", sys.executable, "program.py", provider.base_url)
        before = len(provider.requests)
        found = answered(tmp_path, "fork", "@last", "--at", "gpt-5#1", "--live", "tool")
        assert len(provider.requests) == before
    assert found["live_calls"] == 3, found
    assert (tmp_path / "rolled").read_text() == "x" * 6


def test_placeholders_of_secrets_are_named(tmp_path: Path) -> None:
    program = (
        "import playhead, subprocess\n"
        "@playhead.tool(effects=['read'])\n"
        "def token():\n    return {'password': 'hunter2-hunter2', 'user': 'ada'}\n"
        "found = token()\nprint(subprocess.check_output(['echo', found['user']], text=True))\n"
    )
    (tmp_path / "program.py").write_text(program)
    playhead(tmp_path, "record", "--quiet", "--", sys.executable, "program.py")
    found = answered(tmp_path, "fork", "@last", "--at", "token", "--live", "all")
    assert "secrets were redacted" in found["surface"]["notes"][0]


def test_a_run_that_goes_on_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "playhead", "record", "--quiet", "--", sys.executable, "program.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == b"begun\n"
            assert "still running" in playhead(tmp_path, "resume", "@last").stderr
        finally:
            running.terminate()


def test_a_question_that_the_agent_tells_of_by_hand_is_asked_live(tmp_path: Path) -> None:
    program = """
import sys, httpx, playhead
for number in range(2):
    with playhead.model_call(provider="mine", model="m", request={"n": number}) as call:
        body = {"model": "m", "messages": [{"role": "user", "content": str(number)}]}
        answer = httpx.post(f"{sys.argv[1]}/chat/completions", json=body).json()
        call.respond(answer)
    print(answer["choices"][0]["message"]["content"])
"""
    (tmp_path / "program.py").write_text(program)
    numbers = iter(range(100))
    with ScriptedProvider(lambda request: f"{told(request)} {next(numbers)}") as provider:
        playhead(tmp_path, "record", "--quiet", "--", sys.executable, "program.py", provider.base_url)
        done = playhead(tmp_path, "replay", "@last", "--mode", "model")
    assert done.stdout == "re 0 2\nre 1 3\n", done.stderr
    assert "2 live calls" in done.stderr
