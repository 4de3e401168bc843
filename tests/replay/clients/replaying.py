"""Record a program for real, shut the world down, replay it, and compare what it printed."""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import warm

_TIMEOUT_S = 120
# The program's output passes through; what is said of the replay goes to a file.
_REPLAY = """
import json, pathlib, sys, playhead
from playhead import settings
from playhead.replay.exact import replay_program
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
run = playhead.load("@last")
found = replay_program(RunReader(run.store, run.id), FileStore(run.store.root), settings.load())
pathlib.Path(sys.argv[1]).write_text(json.dumps(found.as_dict(), default=str))
"""

# What every program of these tests begins with: it prints all that can be seen of an answer or of a failure.
SHOWN = """
import sys

def trail(error):
    found = []
    while error is not None:
        found.append((type(error).__module__, type(error).__name__, str(error).split(" object at 0x")[0]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found

def show(name, ask):
    try:
        print(name, ask(), flush=True)
    except Exception as error:
        print(name, "failed", trail(error)[:3], flush=True)

async def show_async(name, asking):
    try:
        print(name, await asking, flush=True)
    except Exception as error:
        print(name, "failed", trail(error)[:3], flush=True)

URL = sys.argv[1]
PATHS = ["/plain", "/apart", "/stream", "/framed", "/until-close", "/gzip", "/none", "/same", "/failed", "/moved",
         "/cut-length", "/cut-chunks", "/cut-head", "/reset", "/silent", "/nonsense", "/large"]
"""


@dataclass(frozen=True)
class Recorded:
    """What a program printed when it was recorded."""

    folder: Path
    output: str
    exit_code: int

    def replay(self) -> Replayed:
        """Replay it; whoever answered it is to be gone by now."""
        report = self.folder / "replay.json"
        done = warm.playhead(
            self.folder, "replay", "@last", "--mode", "exact", variables=_variables(self.folder), report=report
        )
        return _told(done, report)


@dataclass(frozen=True)
class Replayed:
    """What it printed in the replay, and what is said of that."""

    output: str
    errors: str
    report: dict[str, Any]


def record(folder: Path, program: str, *arguments: str) -> Recorded:
    """Record a program that is given as text."""
    (folder / "agent.py").write_text(textwrap.dedent(program), "utf-8")
    command = ["record", "--", sys.executable, "agent.py", *arguments]
    done = warm.playhead(folder, *command, variables=_variables(folder))
    assert done.returncode == 0, done.stderr
    return Recorded(folder, done.stdout, done.returncode)


def same(recorded: Recorded) -> Replayed:
    """Replay a program, and hold that nothing differs and nothing was asked of the world."""
    replayed = recorded.replay()
    lines = difflib.unified_diff(
        recorded.output.splitlines(), replayed.output.splitlines(), "recorded", "replayed", n=0
    )
    assert replayed.output == recorded.output, "\n".join([*lines, replayed.errors])
    assert replayed.report["fidelity"]["verdict"] == "faithful", replayed.report
    assert replayed.report["live_calls"] == 0
    assert replayed.report["exit_code"] == recorded.exit_code
    return replayed


def replay(folder: Path, python: str | Path, variables: dict[str, str]) -> Replayed:
    """Replay the last run of a store, in a folder and with a Python that has what it needs."""
    report = folder / "replay.json"
    done = _run([str(python), "-c", _REPLAY, str(report)], folder, variables)
    return _told(done, report)


def _told(done: subprocess.CompletedProcess[str], report: Path) -> Replayed:
    assert report.exists(), done.stderr
    return Replayed(done.stdout, done.stderr, json.loads(report.read_text("utf-8")))


def _variables(folder: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")}
    return clean | {"PLAYHEAD_DIR": str(folder / ".playhead")}


def _run(command: list[str], folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
