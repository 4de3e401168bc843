"""The same faults from below: the kernel refuses a call of a real agent in a process of its own."""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.store.children import command, environment, events, judge, only_run
from tests.store.test_faults import check_accounts

AGENT = """
import sys, warnings, playhead
warnings.simplefilter("always")

@playhead.tool(effects=["write"])
def search(query):
    return query * 400

with playhead.record("agent", input={"q": 1}, store=sys.argv[1]) as run:
    playhead.note("one")
    with playhead.step("plan"):
        search("x")
    playhead.note("large", data="y" * 40_000)
    playhead.artifact("logs/a.txt", "content")
    playhead.context_pack({"rules": ["be kind"]})
    run.sync()
    playhead.note("last")
"""
CALLS = ("write", "flock", "fdatasync", "fsync", "rename", "mkdir", "mkdirat", "ftruncate")


def strace(*options: str, store: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["strace", "-f", "-qq", *options, *command(AGENT, store)],
        env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture
def baseline(tmp_path: Path) -> tuple[collections.Counter[str], int]:
    """Count the calls and the events of an undisturbed recording."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    log = tmp_path / "calls"
    done = strace("-e", f"trace={','.join(CALLS)}", "-o", str(log), store=tmp_path / "baseline")
    if done.returncode or not log.exists():
        pytest.skip(f"processes cannot be traced here: {done.stderr.strip()[:200]}")
    store, run = only_run(tmp_path / "baseline")
    assert judge(store, run).completeness.verdict == "complete"
    calls = collections.Counter(re.findall(r"^(?:\d+ +)?(\w+)\(", log.read_text(), re.MULTILINE))
    assert calls["write"] > 10
    return calls, len(events(store, run))


def refuse(tmp_path: Path, call: str, nth: int, error: str, offered: int) -> None:
    root = tmp_path / f"{call}{nth}{error}"
    done = strace(
        "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={nth}", "-o", str(tmp_path / "log"), store=root
    )
    assert done.returncode == 0, done.stderr
    assert "INJECTED" in (tmp_path / "log").read_text()
    check_accounts(root, done.stderr.splitlines(), offered)


def test_some_refused_system_calls_leave_a_sound_timeline_and_a_counted_loss(
    tmp_path: Path, baseline: tuple[collections.Counter[str], int]
) -> None:
    calls, offered = baseline
    middle = calls["write"] // 2
    for call, nth, error in (
        ("write", middle, "ENOSPC"),
        ("write", calls["write"] - 1, "EIO"),
        ("flock", 4, "EIO"),
        ("fdatasync", 2, "EIO"),
    ):
        refuse(tmp_path, call, nth, error, offered)


@pytest.mark.hard
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_every_refused_system_call_leaves_a_sound_timeline_and_a_counted_loss(
    tmp_path: Path, baseline: tuple[collections.Counter[str], int], error: str
) -> None:
    calls, offered = baseline
    for call in CALLS:
        for nth in range(1, calls[call] + 1):
            if call in ("fdatasync", "fsync") and nth > calls[call] - 3:
                continue  # the background flush comes at its own time, so the last ones may not come at all
            refuse(tmp_path, call, nth, error, offered)
