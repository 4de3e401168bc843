"""Programs that start processes are replayed exactly, with nothing started, by the real player."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.capture.launching import clean_environment, launched
from tests.capture.processes import test_answered as answered

_DRIVER = """
import dataclasses, json, sys
from pathlib import Path
from playhead.replay.exact import replay_program
from playhead.settings import load
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
files = FileStore(Path(sys.argv[1]))
found = replay_program(RunReader(files, min(files.runs())), files, dataclasses.replace(load(), git=False))
Path(sys.argv[2]).write_text(json.dumps(found.as_dict(), default=str))
"""


def replayed(folder: Path, code: str, changed: str | None = None) -> tuple[bytes, bytes, dict[str, Any]]:
    """Record a program, replay it, or a changed one, on a PATH without programs; return both outputs and the report."""
    script, store, report, empty = (folder / name for name in ("agent.py", "store", "report.json", "empty"))
    script.write_text(code)
    status, out, err = launched(store, [sys.executable, str(script)], cwd=folder)
    assert status == 0, err.decode()
    script.write_text(changed or code)
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, str(store), str(report)],
        env=clean_environment(PATH=str(empty)), cwd=folder, capture_output=True, timeout=100,
    )  # fmt: skip
    assert report.exists(), done.stderr.decode()
    return out, done.stdout, json.loads(report.read_text())


@pytest.mark.parametrize("code", answered.CASES.values(), ids=answered.CASES)
def test_the_same_output_and_a_faithful_verdict(code: str, tmp_path: Path) -> None:
    out, again, report = replayed(tmp_path, code)
    assert again == out, report["deviations"]
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]
    assert (report["live_calls"], report["surface"]["unasked"]) == (0, [])


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_event_loops_are_replayed_too(loop: str, tmp_path: Path) -> None:
    code = answered.TRIO if loop == "trio" else answered.ASYNCIO + answered.RUN[loop]
    out, again, report = replayed(tmp_path, code)
    assert again == out, report["deviations"]
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]


def test_processes_that_race_have_the_same_winner(tmp_path: Path) -> None:
    code = """
import asyncio, random
from asyncio.subprocess import PIPE
async def one(n):
    process = await asyncio.create_subprocess_shell(f"sleep 0.{random.randint(10, 40)}; echo {n}", stdout=PIPE)
    return (await process.communicate())[0]
async def main():
    for done in asyncio.as_completed([one(n) for n in range(6)]):
        print(await done)
asyncio.run(main())
"""
    out, again, report = replayed(tmp_path, code)
    assert again == out, report["deviations"]
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]


def test_another_input_is_named_with_what_was_recorded(tmp_path: Path) -> None:
    code = "from subprocess import *\nprint(run(['cat'], input=b'given', stdout=PIPE).stdout)\n"
    _, _, report = replayed(tmp_path, code, code.replace("given", "taken"))
    first = report["fidelity"]["first"]
    assert (first["type"], first["kind"]) == ("changed", "process.exited")
    assert first["changes"] == [{"path": "/stdin", "left": "given", "right": "taken"}]


def test_another_command_is_named(tmp_path: Path) -> None:
    code = "from subprocess import *\nprint(run(['echo', 'one'], stdout=PIPE).stdout)\n"
    _, _, report = replayed(tmp_path, code, code.replace("one", "two"))
    assert report["fidelity"]["first"]["kind"] == "process.started"


def test_what_is_kept_from_starting_is_in_the_report(tmp_path: Path) -> None:
    asking = "import platform\nprint(isinstance(platform.processor(), str))\n"
    _, _, report = replayed(tmp_path, asking.replace("platform.processor()", "''"), asking)
    assert report["blocked"] == [{"what": "process", "detail": "uname, started by platform"}]
    (tmp_path / "three").mkdir()
    _, _, report = replayed(tmp_path / "three", asking)
    assert report["blocked"] == [], "the recorded program started it too, and nobody misses it"
    code = "import os, sys\n'--hand' in sys.argv\nprint('x')\n"
    (tmp_path / "two").mkdir()
    by_hand = code.replace("'--hand' in sys.argv", "os.posix_spawn('/bin/true', ['true'], {})")
    _, _, report = replayed(tmp_path / "two", code, by_hand)
    assert report["fidelity"]["verdict"] == "deviated"
    assert [told["what"] for told in report["blocked"]] == ["process"]


def test_a_program_signals_itself_by_the_number_that_it_had(tmp_path: Path) -> None:
    code = """
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: print("heard"))
print(os.getpid())
os.kill(os.getpid(), signal.SIGUSR1)
"""
    out, again, report = replayed(tmp_path, code)
    assert b"heard" in out
    assert (again, report["blocked"]) == (out, [])
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]


_CHILDREN = """
import concurrent.futures, multiprocessing, os, sys
def work(n):
    return n * n
if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    process = context.Process(target=print, args=("said by a child",), kwargs={{"flush": True}})
    process.start()
    process.join()
    with context.Pool(2) as pool:
        print(process.exitcode, pool.map(work, range(5)))
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        print(list(pool.map(work, range(5))))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_are_no_processes_of_the_tape_and_run_again(method: str, tmp_path: Path) -> None:
    out, again, report = replayed(tmp_path, _CHILDREN.format(method=method))
    assert again == out, report["deviations"]
    assert report["blocked"] == []
    # What multiprocessing does to files of its own, such as the socket of a fork server, is not what is tested here.
    assert {told.get("kind") for told in report["deviations"]} <= {"effect.observed"}, report["deviations"]
