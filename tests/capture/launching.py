"""Start programs under the launcher, in a process of its own, and look at what was recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playhead._api.reading import Run
from playhead.store.files import FileStore

_DRIVER = """
import dataclasses, sys
from playhead.capture.launch import launch, open_run
from playhead.settings import load
from playhead.store.files import FileStore
recording = open_run(FileStore(sys.argv[1]), dataclasses.replace(load(), git=False))
sys.exit(launch(recording, sys.argv[2:]).exit_code)
"""


def clean_environment(**more: str) -> dict[str, str]:
    """Return our environment without what would steer Playhead."""
    return {**{key: value for key, value in os.environ.items() if not key.startswith("PLAYHEAD_")}, **more}


def start(
    store: Path, argv: Sequence[str], env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start a program under the launcher."""
    environment = clean_environment(**(env or {}))
    return subprocess.Popen([sys.executable, "-c", _DRIVER, str(store), *argv], env=environment, **options)


def launched(
    store: Path, argv: Sequence[str], input: bytes = b"", env: Mapping[str, str] | None = None, **options: Any
) -> tuple[int, bytes, bytes]:
    """Run a program under the launcher to its end; return its exit code, stdout and stderr."""
    pipe = subprocess.PIPE
    with start(store, argv, env, stdin=pipe, stdout=pipe, stderr=pipe, **options) as process:
        out, err = process.communicate(input, timeout=60)
    return process.returncode, out, err


def python(code: str) -> list[str]:
    """Return the command that runs some Python."""
    return [sys.executable, "-c", code]


def only_run(store: Path) -> Run:
    """Return the one run of a store."""
    files = FileStore(store)
    (run,) = files.runs()
    return Run(files, run)


def finished(run: Run) -> dict[str, Any]:
    """Return the data of run.finished, every value as it was."""
    data: dict[str, Any] = list(run.events())[-1].data
    assert "status" in data, "the last event is run.finished"
    return data


def written(run: Run, stream: str) -> bytes:
    """Return everything that was recorded of a stream."""
    from playhead.event.plain import restore

    parts = [
        event.data["text"]
        for event in run.events()
        if event.kind == "output.written" and event.data["stream"] == stream
    ]
    restored = [restore(part) for part in parts]
    return b"".join(part if isinstance(part, bytes) else part.encode() for part in restored)


def assert_whole(run: Run) -> None:
    """Check that the run is one dense chain from its start to its declared end."""
    verification = run.verify(deep=True)
    assert (verification.integrity.verdict, verification.completeness.verdict) == ("intact", "complete"), verification
