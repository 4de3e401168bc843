"""What a process wrote to the outputs that it inherited from the program is written again, at its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.capture.launching import clean_environment
from tests.replay.again import playhead, record
from tests.replay.test_processes import replayed

_CASES = {
    "every way to start one": """
import os, subprocess, sys
print("own, in the buffer")
subprocess.run(["echo", "run"])
subprocess.call("echo call; echo to stderr >&2", shell=True)
print("own, flushed", flush=True)
subprocess.check_call(["echo", "check_call"], stdout=sys.stderr)
process = subprocess.Popen(["sh", "-c", "echo popen; echo merged >&2"], stderr=subprocess.STDOUT)
print(process.wait())
os.system("echo system")
print(subprocess.check_output("echo read; echo seen >&2", shell=True))
""",
    "in between": """
import subprocess, sys, time
process = subprocess.Popen(["sh", "-c", "echo one; read x; echo two; read x; printf three"], stdin=subprocess.PIPE)
for n in range(2):
    time.sleep(0.3)
    print("own", n, flush=True)
    process.stdin.write(b"on\\n")
    process.stdin.flush()
time.sleep(0.3)
print("own, in the buffer")
process.wait()
sys.stdout.buffer.write(b"at last\\n")
""",
    "quiet while the program talks": """
import os, subprocess
process = subprocess.Popen(["sleep", "60"])
print("one", flush=True)
os.write(1, b"past the file\\n")
process.kill()
print(process.wait())
""",
    "not only text": r"""
import subprocess
subprocess.run(["printf", "\\303\\244 \\342\\202\\254 \\377\\376 no end of line"])
print("ü", flush=True)
subprocess.run(["printf", "\\303"])
subprocess.run(["printf", "\\244\n"])
""",
    "much": """
import os, subprocess
subprocess.run("head -c 1000000 /dev/zero | tr '\\\\0' x; echo", shell=True)
print("own", flush=True)
""",
    "side by side": """
import subprocess, threading
def one(n):
    subprocess.run(["sh", "-c", f"sleep 0.{n}; echo {n}; echo {n} >&2"])
    print("own", n, flush=True)
threads = [threading.Thread(target=one, args=(n,)) for n in (5, 1, 3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""",
    "in an event loop": """
import asyncio
async def one(n):
    process = await asyncio.create_subprocess_exec("sh", "-c", f"sleep 0.{n}; echo {n}")
    await process.wait()
    print("own", n, flush=True)
async def main():
    await asyncio.gather(*(one(n) for n in (5, 1, 3)))
asyncio.run(main())
""",
}


@pytest.mark.parametrize("code", _CASES.values(), ids=_CASES)
def test_the_output_is_the_same_and_the_verdict_faithful(code: str, tmp_path: Path) -> None:
    out, again, report = replayed(tmp_path, code)
    assert again == out
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]
    assert report["live_calls"] == 0


def test_a_replay_is_recorded_so_that_it_can_be_replayed(tmp_path: Path) -> None:
    recorded = record(tmp_path, "import os\nos.system('echo one')\nprint('two')\n")
    recorded.faithful()
    again = playhead(tmp_path, "replay", "@last", "--mode", "exact")
    assert again.stdout == recorded.output, again.stderr
    assert "fidelity: faithful" in again.stderr


def test_a_secret_before_it_moves_the_places_and_the_process_is_named(tmp_path: Path) -> None:
    code = """
import os
print("key sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0", flush=True)
os.system("echo one")
"""
    out, again, report = replayed(tmp_path, code)
    assert b"one" in out
    assert b"one" not in again
    assert report["fidelity"]["verdict"] == "deviated"
    assert "not on the tape is what wrote there by itself: echo (event " in report["fidelity"]["first"]["text"]


def test_what_follows_its_output_may_hold_a_secret(tmp_path: Path) -> None:
    code = """
import os
os.system("echo one")
print("key sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0", flush=True)
"""
    _, again, report = replayed(tmp_path, code)
    assert again.startswith(b"one\n")
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]


def test_a_process_that_nobody_waited_for_is_named(tmp_path: Path) -> None:
    code = """
import subprocess, time
process = subprocess.Popen(["echo", "one"])
time.sleep(0.5)
"""
    _, again, report = replayed(tmp_path, code)
    assert again == b""
    assert "by itself: echo (event " in report["fidelity"]["first"]["text"]


def test_a_process_that_wrote_nothing_is_not_blamed_for_what_differs(tmp_path: Path) -> None:
    code = "import subprocess\nsubprocess.run(['true'])\nprint('one')\n"
    _, _, report = replayed(tmp_path, code, code.replace("one", "two"))
    assert report["fidelity"]["verdict"] == "deviated"
    assert "by itself" not in report["fidelity"]["first"]["text"]


def test_a_launcher_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    code = """
import os, signal, subprocess
launcher = os.getppid()
os.kill(launcher, signal.SIGKILL)
while os.getppid() == launcher:
    pass
subprocess.run(["sh", "-c", "echo one > made"])
"""
    (tmp_path / "program.py").write_text(code)
    command = [sys.executable, "-m", "playhead", "record", "--quiet", "--", sys.executable, "program.py"]
    environment = clean_environment(PLAYHEAD_DIR=str(tmp_path / "store"))
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.read() == b""
    while not (tmp_path / "made").exists() or not (tmp_path / "made").read_text():
        time.sleep(0.05)  # until the program has come so far; that it does not is for the timeout of all tests
    assert (tmp_path / "made").read_text() == "one\n"


def test_what_a_process_of_a_tool_wrote_is_written_though_the_tool_does_not_run(tmp_path: Path) -> None:
    code = """
import asyncio, subprocess
import playhead
@playhead.tool
def check():
    print("checking", flush=True)
    subprocess.run("echo of a tool; echo warns >&2", shell=True)
    print("checked")
@playhead.tool
async def wait():
    process = await asyncio.create_subprocess_exec("echo", "in a loop")
    await process.wait()
    print("waited", flush=True)
print("first", flush=True)
check()
subprocess.run(["echo", "of the program"])
asyncio.run(wait())
print("last")
"""
    out, again, report = replayed(tmp_path, code)
    assert out.startswith(b"first\nchecking\nof a tool\n")
    assert again == out
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]


def _on_terminal(command: list[str], folder: Path) -> bytes:
    outer, inner = os.openpty()
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=inner, stderr=inner, env=clean_environment()
    ):
        os.close(inner)
        shown = b""
        try:
            while data := os.read(outer, 65536):
                shown += data
        except OSError:  # how a terminal says that nobody has its other side open
            pass
        finally:
            os.close(outer)
    return shown


def _piped(command: list[str], folder: Path) -> bytes:
    return subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, env=clean_environment(), check=True
    ).stdout


@pytest.mark.parametrize(("recorded_on", "replayed_on"), [(_on_terminal, _piped), (_piped, _on_terminal)])
def test_a_terminal_is_one_again_and_a_pipe_a_pipe_wherever_it_is_replayed(
    recorded_on: Callable[[list[str], Path], bytes], replayed_on: Callable[[list[str], Path], bytes], tmp_path: Path
) -> None:
    code = """
import os, sys
print("own", sys.stdout.isatty(), os.isatty(2))
os.system("echo one; seq 1 20000 | tail -n 5000")
print("own")
"""
    (tmp_path / "program.py").write_text(code)
    command = [sys.executable, "-m", "playhead", "--store", str(tmp_path / "store")]
    shown = recorded_on([*command, "record", "--quiet", "--", sys.executable, "program.py"], tmp_path)
    again = replayed_on([*command, "replay", "@last", "--mode", "exact"], tmp_path)
    assert again.replace(b"\r\n", b"\n").startswith(shown.replace(b"\r\n", b"\n"))
    report = json.loads(_piped([*command, "replay", "@last", "--mode", "exact", "--json"], tmp_path))
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]
