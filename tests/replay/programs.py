"""Record a program with the launcher, and replay it exactly, each in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests import warm
from tests.capture.launching import clean_environment, written

from playhead._api.reading import Run
from playhead.store.files import FileStore

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    """What came of a process."""

    code: int
    out: bytes
    err: str


class Replayed(NamedTuple):
    """What came of a replay: the output of the program, and the report."""

    out: bytes
    report: dict[str, Any]

    @property
    def verdict(self) -> str:
        """Return what is said of its fidelity."""
        return str(self.report["fidelity"]["verdict"])


def run(folder: Path, *argv: str, env: Mapping[str, str] | None = None) -> Ran:
    """Run a command of Playhead in a folder."""
    more = {"PYTHONPATH": str(ROOT / "src"), "PLAYHEAD_GIT": "0", **(env or {})}
    done = warm.playhead(folder, *argv, variables=clean_environment(**more))
    return Ran(done.returncode, done.stdout.encode(errors="surrogateescape"), done.stderr)


def record(folder: Path, code: str, env: Mapping[str, str] | None = None, *, name: str = "agent.py") -> bytes:
    """Record a program and return what it wrote."""
    (folder / name).write_text(code)
    done = run(folder, "record", "--", sys.executable, name, env=env)
    assert done.code == 0, done.err + done.out.decode()
    return done.out


def replay(folder: Path, *options: str, env: Mapping[str, str] | None = None) -> Replayed:
    """Replay the last run."""
    done = run(folder, "replay", "@last", "--mode", "exact", "--json", *options, env=env)
    assert done.out.startswith(b"{"), done.err + done.out.decode()
    report: dict[str, Any] = json.loads(done.out)
    store = FileStore(folder / ".playhead")
    assert "run" in report, report
    return Replayed(written(Run(store, report["run"]), "stdout"), report)


def assert_faithful(recorded: bytes, replayed: Replayed) -> None:
    """Check that the program wrote the same, asked the world for nothing, and that the report says so."""
    assert replayed.verdict == "faithful", (replayed.report["deviations"], replayed.out.decode())
    assert replayed.out == recorded
    assert replayed.report["live_calls"] == 0
    assert not replayed.report["surface"]["drift"], replayed.report["surface"]["drift"]
