"""Look at commands on real terminals of several widths."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import playhead
from playhead.cli.output import Output
from playhead.views import text

WIDTHS = (60, 70, 80, 100, 200)
LONG = "a name that somebody made of the whole title of a ticket, and then of its first sentence too"
WIDE = "日本語の名前がとても長いのですがどうなりますか日本語の名前がとても長い"


@pytest.fixture
def terminal(store: Path) -> Callable[..., list[str]]:
    """Give a function that calls a command on a terminal and returns its lines, without styles."""

    def call(width: int, *arguments: str) -> list[str]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        for name in ("COLUMNS", "NO_COLOR"):
            environment.pop(name, None)
        command = [sys.executable, "-m", "playhead", *arguments]
        shown = b""
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment) as process:
            while process.poll() is None or select.select([ours], [], [], 0)[0]:
                if select.select([ours], [], [], 0.05)[0]:
                    shown += os.read(ours, 65536)
        os.close(ours)
        os.close(theirs)
        return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n").splitlines()

    return call


@pytest.fixture
def runs(store: Path, record: Callable[..., str]) -> None:
    """Record runs that are hard to fit: long and wide names, a crash."""
    for name in (LONG, WIDE, "fix-login"):
        record(store, name=name)
    code = (
        "import os, playhead\n"
        "with playhead.record('dies'), playhead.step('work'):\n"
        "    os.kill(os.getpid(), 9)"
    )  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=False)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_list_of_runs_fits_and_cuts_no_number_and_no_status(terminal, runs, width):
    lines = terminal(width, "ls")
    assert max(map(text.cells, lines)) <= width
    assert len(lines) == 5  # one for each run
    columns = lines[0].split()
    assert columns[:3] == ["run", "name", "status"]
    assert [line.split()[2] for line in lines if " dies " in line] == ["crashed"]
    if "took" in columns:
        assert all(
            re.search(r"\d+(\.\d+)? (µs|ms|s|min)\b", line[line.index(" ok ") :]) for line in lines if " ok " in line
        )
    names = [line[18:] for line in lines[1:]]
    assert names[0].startswith("dies ")
    assert names[1].startswith("fix-login ")
    assert re.match(f"{WIDE}  |日本.*…", names[2])
    assert re.match(f"{LONG}  |a name.*…", names[3])
    if width == 200:
        assert columns[3:] == ["started", "took", "events", "models", "tools", "tokens", "cost"]
        assert LONG in names[3]


@pytest.mark.parametrize("width", WIDTHS)
def test_verdicts_on_all_runs_fit_and_break_no_word(terminal, runs, width):
    lines = terminal(width, "verify", "--all")
    assert max(map(text.cells, lines)) <= width
    words = " ".join(lines).split()
    for word in ("completeness", "unfinished", "integrity"):
        assert word in words
    assert "the run was not finished, or its end was cut off" in " ".join(words)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_stream_fits_and_says_what_happened_however_narrow(terminal, runs, width):
    lines = terminal(width, "log")
    assert all(text.cells(line) <= width or WIDE in line for line in lines)  # a word below its row stays in one piece
    told = [line for line in lines if re.search(r"(^    |  )(fix-login ok, \d|dies crashed)", line)]
    assert len(told) == 2


@pytest.mark.parametrize("width", WIDTHS)
def test_the_doctor_wraps_at_words_and_below_what_it_says(terminal, ask, runs, width):
    lines = terminal(width, "doctor")
    for line in lines:
        assert text.cells(line) <= width or len(line[18:].split()) == 1  # a path stays in one piece
        assert re.match(r"(ok|warn|fail) +\w+ |" + " " * 18 + r"\S", line)
    told = " ".join(" ".join(lines).split())
    for line in ask("doctor").out.splitlines():
        if "crashes" in line:
            assert " ".join(line.split()) in told


@pytest.mark.parametrize("width", WIDTHS)
def test_a_timeline_fits_with_durations_at_the_edge(terminal, store, width):
    @playhead.tool
    def search(query: str) -> str:
        return "日本" * 30

    with playhead.record(WIDE * 3, store=store), playhead.step("a step with a long name " * 5):
        search("日本語のテキスト" * 20)
    lines = terminal(width, "show", "@last", "--limit", "0")
    assert max(map(text.cells, lines)) <= width
    rows = [line for line in lines if " step " in line or " tool " in line]
    assert [text.cells(row) for row in rows] == [width, width]
    assert all(re.search(r" [\d.]+ (µs|ms|s)$", row) for row in rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_what_can_be_done_next_fits_and_names_the_same_runs(terminal, shell, store, tmp_path, width):
    (tmp_path / "agent.py").write_text(
        "import os, sys, uuid\nuuid.uuid4(), os.getenv('A')\nif len(sys.argv) > 1:\n    {}['priority']\n"
    )
    good, failed = (
        re.findall(r"runs/(run_\w+)", shell("record", "--", sys.executable, "agent.py", *more).err)[0]
        for more in ((), ("fail",))
    )
    lines = terminal(width, "show", failed)
    assert max(map(text.cells, lines)) <= width
    told = [line[6:] for line in lines if line[6:].startswith("playhead ")]
    named = [re.findall(r"run_\w+", command) for command in told]
    assert [[playhead.load(name).id for name in names] for names in named] == [
        [good, failed] if command.startswith("playhead diff") else [failed] for command in told
    ]
    assert any(command.startswith("playhead diff") for command in told)
    for more in (["--at", "6"], ["--reads"]):
        assert max(map(text.cells, terminal(width, "show", failed, *more))) <= width


def test_only_work_that_takes_long_shows_how_far_it_is(store):
    ours, theirs = pty.openpty()
    shown = []
    with open(theirs, "w", encoding="utf-8") as stderr:
        for seconds in (0.0, 0.8):
            out = Output(stderr=stderr)
            with out.progress(None, "comparing") as advance:
                advance(1)
                time.sleep(seconds)
            shown.append(b"")
            while select.select([ours], [], [], 0.05)[0]:
                shown[-1] += os.read(ours, 65536)
    os.close(ours)
    assert shown[0] == b""
    assert b"comparing" in shown[1]
