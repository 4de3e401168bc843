"""The contract over every store, and what only files can be asked."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.store.contract import StoreContract

from playhead._ids import new_run_id
from playhead.errors import BadName, MissingContent, StoreError, StoreTooNew
from playhead.store import layout
from playhead.store.base import Store
from playhead.store.files import FileStore, OneRun
from playhead.store.memory import MemoryStore
from playhead.store.reader import RunReader


class TestFiles(StoreContract):
    def make(self, folder: Path) -> Store:
        return FileStore(folder / "store")

    def lose_blob(self, store: Any, digest: str) -> None:
        layout.blob(store.root, digest).unlink()


class TestMemory(StoreContract):
    def make(self, folder: Path) -> Store:
        return MemoryStore()

    def lose_blob(self, store: Any, digest: str) -> None:
        del store._blobs[digest]


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "deep" / "store")


@pytest.fixture
def run(store: FileStore) -> str:
    run = new_run_id()
    store.ledger(run, create=True).close()
    return run


def test_nothing_is_created_before_the_first_run(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    assert list(store.runs()) == []
    assert store.version() == 1
    assert not (tmp_path / "store").exists()


def test_the_layout_is_the_one_of_the_design(store: FileStore, run: str) -> None:
    folder = store.root / "runs" / run
    assert sorted(path.name for path in folder.iterdir()) == [
        "artifacts", "context_pack.json", "policy_snapshot.json", "timeline.jsonl",
    ]  # fmt: skip
    assert (store.root / ".gitignore").read_bytes() == b"*\n"
    assert (store.root / "format").read_bytes() == b"1\n"
    assert (store.root / "blobs").is_dir()


def test_a_store_is_for_its_owner_alone(store: FileStore, run: str) -> None:
    before = os.umask(0)
    try:
        other = new_run_id()
        store.ledger(other, create=True).close()
        store.put_file(other, "artifacts/a/b", b"x")
        digest = store.put_blob(b"blob")
    finally:
        os.umask(before)
    for path in (store.root, store.folder(other), layout.artifacts_dir(store.folder(other)) / "a"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (
        layout.timeline(store.folder(other)),
        layout.artifact(store.folder(other), "a/b"),
        layout.blob(store.root, digest),
    ):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "run", ["", "x", "run_", "../x", "run_" + "u" * 26, "run_" + "0" * 25 + "/", "RUN_" + "0" * 26]
)
def test_what_is_no_run_id_is_refused(tmp_path: Path, run: str) -> None:
    with pytest.raises(StoreError):
        FileStore(tmp_path / "store").ledger(run, create=True)
    assert not (tmp_path / "store").exists()


def test_other_folders_among_the_runs_are_not_runs(store: FileStore, run: str) -> None:
    (store.root / "runs" / "notes").mkdir()
    (store.root / "runs" / ".DS_Store").write_bytes(b"")
    assert list(store.runs()) == [run]


def test_a_newer_store_is_read_and_not_written(store: FileStore, run: str) -> None:
    writer = store.ledger(run)
    writer.append("note.added", b"{}")
    writer.close()
    (store.root / "format").write_text("2\n")
    assert len(list(store.lines(run))) == 1
    with pytest.raises(StoreTooNew):
        store.ledger(run)
    with pytest.raises(StoreTooNew):
        store.ledger(new_run_id(), create=True)


@pytest.mark.parametrize("text", ["", "\n", "rubbish", "\xff"])
def test_a_damaged_format_file_does_not_stop_anything(store: FileStore, run: str, text: str) -> None:
    (store.root / "format").write_bytes(text.encode("latin-1"))
    store.ledger(run).close()


def test_a_store_that_was_half_made_is_made_whole(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.mkdir()
    store = FileStore(root)
    store.ledger(new_run_id(), create=True).close()
    assert (root / ".gitignore").read_bytes() == b"*\n"
    assert store.blob(store.put_blob(b"x")) == b"x"


# Links and other things planted in artifacts/


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(b"secret")
    return folder


def test_a_planted_link_to_a_file_is_neither_followed_nor_replaced(store: FileStore, run: str, outside: Path) -> None:
    link = layout.artifacts_dir(store.folder(run)) / "a"
    link.symlink_to(outside / "secret")
    (layout.artifacts_dir(store.folder(run)) / "new").symlink_to(outside / "new")
    assert store.put_file(run, "artifacts/a", b"mine") == "artifacts/a~2"
    assert store.put_file(run, "artifacts/new", b"mine") == "artifacts/new~2"
    assert store.put_file(run, "artifacts/a", b"secret") == "artifacts/a~3"
    assert link.is_symlink()
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"
    with pytest.raises((BadName, MissingContent)):
        store.file(run, "artifacts/a")


def test_a_planted_link_to_a_folder_is_not_gone_through(store: FileStore, run: str, outside: Path) -> None:
    (layout.artifacts_dir(store.folder(run)) / "d").symlink_to(outside)
    assert store.put_file(run, "artifacts/d/x", b"mine") == "artifacts/d~2/x"
    assert store.file(run, "artifacts/d~2/x") == b"mine"
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    with pytest.raises((BadName, MissingContent)):
        store.file(run, "artifacts/d/secret")


def test_a_link_in_place_of_artifacts_is_not_gone_through(store: FileStore, run: str, outside: Path) -> None:
    folder = layout.artifacts_dir(store.folder(run))
    folder.rmdir()
    folder.symlink_to(outside)
    with pytest.raises(OSError, match="artifacts"):
        store.put_file(run, "artifacts/x", b"mine")
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    with pytest.raises((BadName, MissingContent)):
        store.file(run, "artifacts/secret")


def test_a_link_in_place_of_a_pack_is_replaced_and_not_written_through(
    store: FileStore, run: str, outside: Path
) -> None:
    pack = layout.context_pack(store.folder(run))
    pack.unlink()
    pack.symlink_to(outside / "secret")
    store.put_file(run, "context_pack.json", b"{}")
    assert not pack.is_symlink()
    assert (outside / "secret").read_bytes() == b"secret"


def test_a_planted_pipe_blocks_nobody(store: FileStore, run: str) -> None:
    os.mkfifo(layout.artifacts_dir(store.folder(run)) / "p")
    assert store.put_file(run, "artifacts/p", b"x") == "artifacts/p~2"
    with pytest.raises(MissingContent):
        store.file(run, "artifacts/p")


def test_a_folder_that_cannot_be_opened_is_an_error_and_not_an_endless_search(
    store: FileStore, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store._disk.open

    def refuse(path: Any, flags: int, mode: int = 0o600, dir_fd: int | None = None) -> int:
        if path == "d":
            raise PermissionError(13, "no", "d")
        return real(path, flags, mode, dir_fd)

    monkeypatch.setattr(store._disk, "open", refuse)
    with pytest.raises(PermissionError):
        store.put_file(run, "artifacts/d/x", b"x")


# One run anywhere, private values, sync


def test_one_run_is_read_wherever_it_lies(store: FileStore, run: str, tmp_path: Path) -> None:
    digest = store.put_blob(b"blob")
    writer = store.ledger(run)
    writer.append("note.added", b'{"text":"x"}')
    writer.close()
    away = tmp_path / "away"
    store.folder(run).rename(away)
    one = OneRun(away, run, blobs_from=store.root)
    assert [event.data for event in RunReader(one, run).events()] == [{"text": "x"}]
    assert list(one.runs()) == [run]
    assert one.blob(digest) == b"blob"
    with pytest.raises(MissingContent):
        one.blob("0" * 64)
    with pytest.raises(StoreError):
        one.ledger(run)


def test_an_erasable_value_is_read_while_it_exists_and_checked(store: FileStore, run: str) -> None:
    data = b"s" * 32 + b'{"name":"Ada"}'
    commitment = hashlib.sha256(data).hexdigest()
    folder = layout.private_dir(store.folder(run))
    folder.mkdir()
    (folder / commitment).write_bytes(data)
    writer = store.ledger(run)
    writer.append("note.added", b'{"text":{"$commit":"%b","len":14}}' % commitment.encode())
    writer.close()
    assert RunReader(store, run).event(0).data == {"text": {"name": "Ada"}}
    (folder / commitment).write_bytes(data + b" ")
    with pytest.raises(MissingContent):
        RunReader(store, run).event(0)
    (folder / commitment).unlink()
    assert RunReader(store, run).event(0).data == {"text": {"$commit": commitment, "len": 14}}
    assert store.private(run, "../../../etc/passwd") is None


def test_a_torn_last_line_is_left_out_by_readers_and_yielded_by_the_store(store: FileStore, run: str) -> None:
    writer = store.ledger(run)
    writer.append("note.added", b"{}")
    writer.close()
    with layout.timeline(store.folder(run)).open("ab") as file:
        file.write(b'{"v":1,"run')
    assert [line[-1:] for line in store.lines(run)] == [b"\n", b"n"]
    assert len(list(RunReader(store, run).events())) == 1


def test_sync_brings_blobs_and_folders_to_the_disk_before_the_lines_that_name_them(tmp_path: Path) -> None:
    from playhead.store.disk import Disk

    order: list[str] = []

    class Watching(Disk):
        def sync(self, descriptor: int) -> None:
            order.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            super().sync(descriptor)

        def sync_folder(self, path: Any) -> None:
            order.append(str(path))
            super().sync_folder(path)

    store = FileStore(tmp_path / "store", disk=Watching())
    run = new_run_id()
    writer = store.ledger(run, create=True)
    digest = store.put_blob(b"x" * 1000)
    store.put_file(run, "artifacts/logs/a", b"y")
    writer.append("note.added", b"{}")
    writer.sync()
    first = list(order)
    timeline = str(layout.timeline(store.folder(run)))
    assert first[-1] == timeline
    for path in (layout.blob(store.root, digest), layout.artifact(store.folder(run), "logs/a")):
        assert str(path) in first
        assert str(path.parent) in first
    assert str(store.folder(run)) in first, "the entry of the timeline"
    assert str(layout.runs_dir(store.root)) in first, "the entry of the run"
    order.clear()
    writer.sync()
    assert order == [timeline], "what is on the disk is not brought there again"
    writer.close()
