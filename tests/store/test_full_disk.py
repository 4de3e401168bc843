"""A full disk or a read-only place costs events, never the agent; what is lost is declared."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.store.children import declared, events, judge, run_child, texts
from tests.store.test_faults import WARNED, agent, told

from playhead.errors import PlayheadError
from playhead.store.files import FileStore

FULL = """
import os, resource, signal, sys, warnings
import playhead, playhead.capture.record, playhead.capture.redact
warnings.simplefilter("always")
place, ends_full = sys.argv[1], sys.argv[2] == "ends full"
if place == "limit":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = "store"
else:
    store = os.path.join(place, "store")
with playhead.record("agent", store=store, capture=False) as run:  # what it deletes would be an effect
    playhead.note("before")
    if place == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
    for number in range(400):
        playhead.note(f"{number} " + os.urandom(400).hex())
    assert run.lost > 0
    if not ends_full:
        if place == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        else:
            os.unlink(os.path.join(place, "filler"))
        playhead.note("after")
print("agent finished")
"""


def check_full(root: Path, stderr: str, ends_full: bool) -> None:
    store = FileStore(root)
    (run,) = store.runs()
    found = judge(store, run)
    assert found.integrity.verdict == "intact"
    got = events(store, run)
    said = texts(got)
    assert said[0] == "before"
    warned = sum(int(number) for number in WARNED.findall(stderr))
    if ends_full:
        assert warned > 0
        assert "Free some space" in stderr or "doctor" in stderr or "declared" in stderr
        assert len(said) - 1 + declared(got) + warned == 400 + 1  # run.finished too
    else:
        assert said[-1] == "after"
        assert declared(got) > 0
        assert len(said) - 2 + declared(got) == 400
        assert (found.completeness.verdict, found.level) == ("missing", "declared loss")
        assert "RecordingWarning" not in stderr


@pytest.mark.parametrize("ends_full", [False, True])
def test_a_file_that_may_not_grow_costs_events_and_they_are_counted(ends_full: bool) -> None:
    done = run_child(FULL, "limit", "ends full" if ends_full else "")
    assert done.stdout == "agent finished\n"
    check_full(Path("store"), done.stderr, ends_full)


@pytest.mark.parametrize("ends_full", [False, True])
def test_a_full_disk_costs_events_and_they_are_counted(tmp_path: Path, ends_full: bool) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        (place / "filler").write_bytes(b"x" * 100_000)
        done = run_child(FULL, place, "ends full" if ends_full else "")
        assert done.stdout == "agent finished\n"
        check_full(place / "store", done.stderr, ends_full)
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("kind", ["below a file", "runs is a file", "blobs is a file"])
def test_an_agent_goes_on_where_nothing_can_be_written(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "store"
    if kind == "below a file":
        root.write_bytes(b"")
        root = root / "deeper"
    else:
        root.mkdir()
        (root / kind.split()[0]).write_bytes(b"")
    with told() as messages:
        assert agent(FileStore(root)) == "agent finished"
    if kind == "blobs is a file":  # what needs no blob is recorded
        assert messages == []
        (run,) = FileStore(root).runs()
        assert judge(FileStore(root), run).gaps == {"ENOTDIR": 1}
    else:
        assert len(messages) == 1
        assert "is not recorded" in messages[0]
    with pytest.raises((OSError, PlayheadError)):
        agent(FileStore(root), strict=True)


def test_a_read_only_file_system_stops_the_recording_and_not_the_agent(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a read-only disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        with told() as messages:
            assert agent(FileStore(place / "store")) == "agent finished"
        assert len(messages) == 1
        assert "Read-only file system" in messages[0]
    finally:
        subprocess.run(["umount", str(place)], check=True)
