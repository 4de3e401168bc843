"""Run Python in a process of its own, as a user's agent would: not under pytest, with this source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import playhead
from playhead.event.envelope import Event
from playhead.ledger.verify import Verification
from playhead.store.base import Store, content_check
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

SOURCE = str(Path(playhead.__file__).resolve().parents[1])


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which a child finds Playhead and does not know that it is tested."""
    out = {name: value for name, value in os.environ.items() if not name.startswith(("PLAYHEAD_", "PYTEST_"))}
    return {**out, "PYTHONPATH": SOURCE, "PLAYHEAD_GIT": "0", "PYTHONDONTWRITEBYTECODE": "1", **more}


def command(program: str, *arguments: Any) -> list[str]:
    return [sys.executable, "-c", program, *map(str, arguments)]


def run_child(program: str, *arguments: Any, timeout: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; it must succeed."""
    done = subprocess.run(
        command(program, *arguments),
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def judge(store: Store, run: str) -> Verification:
    """Verify a run deeply, with all its content."""
    from playhead.ledger.verify import verify

    return verify(store.lines(run), run, check=content_check(store, run), deep=True)


def events(store: Store, run: str) -> list[Event]:
    return list(RunReader(store, run).resolved())


def texts(found: list[Event]) -> list[str]:
    return [event.data["text"] for event in found if event.kind == "note.added"]


def declared(found: list[Event]) -> int:
    return sum(event.data["count"] for event in found if event.kind == "gap.noted")


def only_run(root: Path) -> tuple[FileStore, str]:
    store = FileStore(root)
    (run,) = store.runs()
    return store, run
