"""The disk fails: the timeline always verifies, every loss is counted, and the agent goes on."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.children import declared, events, judge, texts

import playhead
from playhead import _limits
from playhead._ids import new_run_id
from playhead.capture import lanes
from playhead.errors import PlayheadError
from playhead.event.plain import restore
from playhead.store import syncer
from playhead.store.disk import Disk
from playhead.store.files import FileStore

CALLS = ("open", "mkdir", "write", "truncate", "sync", "sync_folder", "replace", "lock")


class FaultyDisk(Disk):
    """Fail the n-th call of this thread, once. `mode` is an errno, `short` or `full`: a short write, then ENOSPC."""

    def __init__(self, nth: int = 0, mode: int | str = errno.EIO) -> None:
        self.nth, self.mode = nth, mode
        self.count = 0
        self.names: list[str] = []
        self.thread = threading.get_ident()
        self.armed = False
        self.refused: set[str] = set()  # calls that always fail

    def _due(self, name: str) -> bool:
        if threading.get_ident() != self.thread:
            return False
        self.count += 1
        self.names.append(name)
        return self.count == self.nth

    def _fail(self, name: str) -> None:
        if (self._due(name) or name in self.refused) and isinstance(self.mode, int):
            raise OSError(self.mode, os.strerror(self.mode))

    def write(self, descriptor: int, data: bytes) -> int:
        if self.armed:  # the second half of a write to a full disk
            self.armed = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._due("write"):
            if isinstance(self.mode, int):
                raise OSError(self.mode, os.strerror(self.mode))
            self.armed = self.mode == "full"
            return super().write(descriptor, data[: max(1, len(data) // 2)])
        return super().write(descriptor, data)

    def open(self, path: Any, flags: int, mode: int = 0o600, dir_fd: int | None = None) -> int:
        self._fail("open")
        return super().open(path, flags, mode, dir_fd)

    def mkdir(self, path: Any, mode: int = 0o700, dir_fd: int | None = None) -> None:
        self._fail("mkdir")
        super().mkdir(path, mode, dir_fd)

    def truncate(self, descriptor: int, size: int) -> None:
        self._fail("truncate")
        super().truncate(descriptor, size)

    # Whether the disk really has the bytes is not asked here, and waiting for it hundreds of times would be slow.

    def sync(self, descriptor: int) -> None:
        self._fail("sync")

    def sync_folder(self, path: Any) -> None:
        self._fail("sync_folder")

    def replace(self, source: Any, target: Any) -> None:
        self._fail("replace")
        super().replace(source, target)

    def lock(self, descriptor: int, operation: int) -> None:
        self._fail("lock")
        super().lock(descriptor, operation)


@pytest.fixture
def no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the background flush away, so that the n-th call is always the same one."""
    monkeypatch.setattr(syncer, "watch", lambda ledger: None)


def agent(store: FileStore, strict: bool = False) -> str:
    """Do what agents do: notes, a step, a tool, a large value, an artifact, a context pack, an explicit sync."""

    @playhead.tool(effects=["write"])
    def search(query: str) -> str:
        return query * 400

    with playhead.record("agent", input={"q": 1}, store=store, strict=strict) as run:
        playhead.note("one")
        with playhead.step("plan"):
            assert search("x") == "x" * 400
        playhead.note("large", data="y" * 40_000)
        playhead.artifact("logs/a.txt", "content")
        playhead.context_pack({"rules": ["be kind"]})
        run.sync()
        playhead.note("last")
        run.output = "done"
    return "agent finished"


WARNED = re.compile(r"(\d+) × \w+")


@contextlib.contextmanager
def told() -> Iterator[list[str]]:
    """Collect what the recorder warns about."""
    out: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield out
    out += [str(item.message) for item in caught if issubclass(item.category, playhead.RecordingWarning)]


def check_accounts(root: Path, messages: list[str], offered: int) -> None:
    """Whatever happened: intact, and every offered event of each run is present, declared lost, or warned about."""
    store = FileStore(root)
    for run in store.runs():
        found = judge(store, run)
        assert found.integrity.verdict == "intact", found.integrity
        assert found.integrity.reason is None, "half a line was left behind"
        assert "torn_tail" not in found.gaps, "half a line was left behind and then set aside"
        got = events(store, run)
        kept = sum(event.kind != "gap.noted" for event in got)
        mine = [message for message in messages if run in message or "is not recorded" in message]
        warned = sum(int(number) for message in mine for number in WARNED.findall(message))
        if not any("is not recorded" in message for message in mine):
            assert offered <= kept + declared(got) + warned <= offered + 1, (kept, declared(got), warned, messages)
        assert kept <= offered
        if declared(got):
            assert found.completeness.verdict == "missing"


def calls_of(root: Path) -> tuple[list[str], int]:
    """Return the calls that an undisturbed recording makes, and how many events it records."""
    disk = FaultyDisk()
    store = FileStore(root, disk=disk)
    agent(store)
    (run,) = store.runs()
    assert judge(store, run).completeness.verdict == "complete"
    return disk.names, len(events(store, run))


def test_the_recording_uses_every_write_side_call(tmp_path: Path, no_background: None) -> None:
    names, _ = calls_of(tmp_path / "store")
    assert set(names) == set(CALLS) - {"truncate"}  # only a torn line is cut off


@pytest.mark.parametrize("mode", [errno.EIO, errno.ENOSPC, "short", "full"])
def test_every_call_that_fails_once_leaves_a_sound_timeline_and_a_counted_loss(
    tmp_path: Path, no_background: None, mode: int | str
) -> None:
    names, offered = calls_of(tmp_path / "baseline")
    for nth in range(1, len(names) + 1):
        if isinstance(mode, str) and names[nth - 1] != "write":
            continue
        root = tmp_path / f"store{nth}"
        with told() as messages:
            assert agent(FileStore(root, disk=FaultyDisk(nth, mode))) == "agent finished"
        check_accounts(root, messages, offered)
        if mode == "short":
            assert messages == []
        with told() as later:  # and the store is as good as before
            agent(FileStore(root, disk=FaultyDisk()))
        assert later == []
        *_, last = FileStore(root).runs()
        assert judge(FileStore(root), last).completeness.verdict == "complete"
        assert (root / ".gitignore").read_bytes() == b"*\n"


@pytest.mark.parametrize("mode", [errno.EIO, errno.ENOSPC])
def test_every_call_that_fails_once_raises_when_the_agent_asked_for_it(
    tmp_path: Path, no_background: None, mode: int
) -> None:
    names, offered = calls_of(tmp_path / "baseline")
    silent = []
    for nth, name in enumerate(names, 1):
        root = tmp_path / f"store{nth}"
        try:
            agent(FileStore(root, disk=FaultyDisk(nth, mode)), strict=True)
        except (OSError, PlayheadError):
            assert (
                list(FileStore(root).runs()) == []
                or judge(FileStore(root), *FileStore(root).runs()).integrity.verdict == "intact"
            )
        else:
            silent.append(name)
            check_accounts(root, [], offered)
        assert lanes._open == 0, "what a recording changes in the interpreter is put back"
    assert set(silent) == {"lock"}, "only letting go of a lock may fail and be made good in silence"


def test_a_joining_writer_whose_every_call_fails_once_leaves_a_sound_timeline(
    tmp_path: Path, no_background: None
) -> None:
    """The same for a run with a torn tail, which the writer must cut off."""

    def attempt(nth: int, mode: int | str) -> tuple[FaultyDisk, int, int, FileStore, str]:
        root = tmp_path / f"{nth}{mode}"
        store = FileStore(root)
        run = new_run_id()
        first = store.ledger(run, create=True)
        first.append("note.added", b'{"text":"first"}')
        first.close()
        with (root / "runs" / run / "timeline.jsonl").open("ab") as file:
            file.write(b'{"v":1,"torn')
        disk = FaultyDisk(nth, mode)
        lost = pending = 0
        with contextlib.suppress(PlayheadError):
            writer = FileStore(root, disk=disk).ledger(run)
            for number in range(3):
                try:
                    writer.append("note.added", b'{"text":"%d"}' % number)
                except (PlayheadError, OSError):
                    writer.lose("write_failed")
                    lost += 1
            pending = writer.pending_losses.get("write_failed", 0)
            writer.close()
        return disk, lost, pending, store, run

    disk, _, _, store, run = attempt(0, errno.EIO)
    assert "truncate" in disk.names
    assert judge(store, run).gaps == {"torn_tail": 1}
    for mode in (errno.EIO, errno.ENOSPC, "short", "full"):
        for nth in range(1, len(disk.names) + 1):
            _, lost, pending, store, run = attempt(nth, mode)
            found = judge(store, run)
            assert found.integrity.verdict == "intact", (nth, mode, found.integrity)
            got = events(store, run)
            if len(texts(got)) > 1:
                assert found.gaps.get("write_failed", 0) + pending == lost
                assert len(texts(got)) - 1 + lost == 3, (nth, mode)
                assert found.gaps["torn_tail"] >= 1


def test_a_failed_background_flush_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "SYNC_INTERVAL_S", 0.001)
    failed, main = threading.Event(), threading.get_ident()

    class NoSync(Disk):
        def sync(self, descriptor: int) -> None:
            if threading.get_ident() != main and not failed.is_set():
                failed.set()
                raise OSError(errno.EIO, "no")
            super().sync(descriptor)

    store = FileStore(tmp_path / "store", disk=NoSync())
    with playhead.record("agent", store=store) as run:
        playhead.note("a")
        assert failed.wait(10)
        for _ in range(1000):
            playhead.note("b")
            if any(event.kind == "gap.noted" for event in events(store, str(run.id))):
                break
    found = judge(store, str(run.id))
    assert (found.integrity.verdict, found.completeness.verdict, found.gaps) == (
        "intact",
        "complete",
        {"sync_failed": 0},
    )


def test_two_threads_that_flush_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    run = new_run_id()
    writer = store.ledger(run, create=True)
    problems: list[BaseException] = []

    def flush() -> None:
        try:
            for _ in range(30):
                writer.sync()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=flush) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(200):
        store.put_blob(b"%d" % number * 10)
    for thread in threads:
        thread.join()
    writer.close()
    assert problems == []


def test_a_fork_that_cannot_open_the_file_for_itself_writes_nothing_unlocked(tmp_path: Path) -> None:
    """Without a descriptor of its own a child shares its parent's lock, and both could write one seq."""
    disk = FaultyDisk()
    store = FileStore(tmp_path / "store", disk=disk)
    run = new_run_id()
    writer = store.ledger(run, create=True)
    writer.append("note.added", b'{"text":"parent"}')
    disk.refused = {"open"}
    with pytest.raises(OSError, match="error"):
        writer.after_fork()
    with pytest.raises(PlayheadError):
        writer.append("note.added", b'{"text":"lost"}')
    disk.refused = set()
    writer.append("note.added", b'{"text":"after"}')  # as soon as it can, it goes on
    writer.close()
    assert texts(events(store, run)) == ["parent", "after"]
    assert judge(store, run).integrity.verdict == "intact"


def test_a_timeline_cut_under_its_recording_leaves_no_reference_to_what_is_gone(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    long = "lorem ipsum " * 50
    with playhead.record("agent", store=store) as run:
        timeline = store.folder(str(run.id)) / "timeline.jsonl"
        start = timeline.stat().st_size
        playhead.note("one", data={"a": long, "m": [long, 1]})
        playhead.note("two", data={"a": long, "m": [long, 1, 2]})
        os.truncate(timeline, start)
        playhead.note("three", data={"b": long, "m": [long, 1, 2, 3]})
        playhead.note("four", data={"c": long, "m": [long, 1, 2, 3, 4]})
    got = events(store, str(run.id))
    assert texts(got) == ["four"], "the third referred to what was gone: it is counted instead"
    assert judge(store, str(run.id)).gaps == {
        "timeline_cut": 3,
        "write_failed": 1,
    }  # the cut is an effect of the agent's
    assert next(event for event in got if event.kind == "note.added").data["data"] == {
        "c": long,
        "m": [long, 1, 2, 3, 4],
    }


def test_text_that_is_not_unicode_is_recorded_whatever_its_length(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    odd = ["\ud800", "\udfff" * 300, "x\ud800" * 9000, {"\ud800" * 300: "\ud800" * 40_000}]
    with playhead.record("agent", store=store, strict=True) as run:
        for value in odd:
            playhead.note("odd", data=value)
    got = [restore(event.data["data"]) for event in events(store, str(run.id)) if event.kind == "note.added"]
    assert got == odd
