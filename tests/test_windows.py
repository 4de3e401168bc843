"""Windows reads, verifies and plays back what was recorded elsewhere. There is no Windows here: what it lacks is taken away.

The interpreter that is made like one has no fcntl, no termios, no fork and none of the POSIX flags, and its `os.open`
refuses folders and `dir_fd`. That does not stand for a real Windows; it finds what would fail at once on one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import playhead

LIKE_WINDOWS = """
import argparse, asyncio, csv, getpass, os, selectors, shutil, signal, socket, sqlite3, subprocess, sys
import sysconfig, tempfile
import orjson, msgspec
import types
sysconfig.get_config_vars()
shutil._winapi = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda name: False)  # asked by which, from 3.12
KEPT = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_APPEND", "O_CREAT", "O_EXCL", "O_TRUNC", "O_TMPFILE"}  # the last for tempfile
POSIX = "fork forkpty pread pwrite register_at_fork uname fdatasync getuid geteuid openpty tcgetpgrp getpgrp killpg"
for name in [name for name in dir(os) if name.startswith("O_") and name not in KEPT] + POSIX.split():
    delattr(os, name)
for name in ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGWINCH", "SIGPIPE", "SIGKILL", "SIGXFSZ"):
    delattr(signal, name)
for name in ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource"):
    sys.modules[name] = None
real_open = os.open
def open_like_windows(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return real_open(path, flags, mode)
os.open = open_like_windows
sys.platform = "win32"
"""


def on_windows(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LIKE_WINDOWS + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "USERNAME": "somebody", "USER": "somebody"},
    )


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return on_windows("from playhead.cli.main import main\nsys.exit(main(sys.argv[1:]))", *arguments)


@pytest.fixture
def recorded() -> str:
    with playhead.record("reviewer", input={"pull": 7}) as run:
        with playhead.step("look"):
            playhead.artifact("report.txt", b"fine")
            playhead.note("a text", {"long": "x" * 70_000})
        run.output = {"verdict": "fine"}
    assert run.id is not None
    return run.id


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls"],
        ["show", "RUN"],
        ["show", "RUN", "--at", "2"],
        ["show", "RUN", "--event", "3"],
        ["verify", "RUN"],
        ["verify", "RUN", "--deep"],
        ["replay", "RUN"],
        ["tail", "RUN"],
        ["query", "SELECT count(*) FROM events"],
        ["export", "RUN", "--format", "jsonl"],
        ["reindex"],
        ["schema"],
        ["doctor"],
        ["record", "--help"],
    ],
    ids=" ".join,
)
def test_a_run_is_read(recorded: str, arguments: list[str]) -> None:
    answer = command(*(recorded if part == "RUN" else part for part in arguments))
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


@pytest.mark.parametrize("form", [".cassette", ".cassette.jsonl"])
def test_a_cassette_is_made_and_read_and_not_unpacked(recorded: str, form: str, tmp_path: Path) -> None:
    file = str(tmp_path / f"x{form}")
    for arguments in (["pack", recorded, "-o", file], ["show", file], ["verify", file], ["replay", file]):
        answer = command(*arguments)
        assert answer.returncode == 0, answer.stderr
    refused = command("unpack", file, "--store", str(tmp_path / "other"))
    assert (refused.returncode, "not written" in refused.stderr) == (3, True)
    assert not (tmp_path / "other").exists()


def test_it_is_played_back_and_found() -> None:
    with playhead.record("reviewer", input={"pull": 7}) as run:
        run.output = {"verdict": "fine"}
    code = """
import playhead
found = playhead.find(playhead.Envelope("reviewer", {"pull": 7}))
print(orjson.dumps([found.playback().payload, found.id, playhead.verify(found.id).integrity.verdict]).decode())
"""
    answer = on_windows(code)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == [{"verdict": "fine"}, run.id, "intact"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "--", "python"],
        ["invalidate", "RUN", "--why", "x"],
        ["demo"],
        ["prune", "--older-than", "1d"],
        ["prune", "RUN", "--yes"],
    ],
    ids=" ".join,
)
def test_what_would_write_is_refused_clearly(recorded: str, arguments: list[str]) -> None:
    answer = command(*(recorded if part == "RUN" else part for part in arguments))
    assert answer.returncode in (2, 3), answer.stderr
    assert "Windows" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_run_that_may_still_be_written_is_never_called_crashed() -> None:
    with playhead.record("agent"):
        answer = command("ls", "--json")
    assert [run["status"] for run in json.loads(answer.stdout)] == ["running"]


def test_an_agent_goes_on_unrecorded(tmp_path: Path) -> None:
    code = """
import playhead
@playhead.tool
def double(x): return 2 * x
with playhead.record("agent") as run:
    print(double(21), run.id)
"""
    answer = on_windows(code)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["42", "None"]
    assert "runs are read on Windows, not written" in answer.stderr
    assert list(tmp_path.iterdir()) == []
