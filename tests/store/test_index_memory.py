"""What an index has seen of a run is not forgotten because the index, or the run, is read again."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.index_timelines import Timeline, line, rich

from playhead.store import index_database, index_follow, layout, presence
from playhead.store.disk import Disk
from playhead.store.index import Index


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".playhead").mkdir()
    return tmp_path / ".playhead"


def head_of(run: Timeline) -> tuple[int, str]:
    return run.seq - 1, run.path.read_bytes()[-67:-3].decode()


def write_anew(run: Timeline) -> None:
    run.path.write_bytes(b"".join(line(run.id, seq, "note.added", {"text": "other"}) for seq in range(run.seq)))


def lose_a_table(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE calls")
    connection.close()


def spoil_the_place_in_the_journal(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE state SET value = 'x' WHERE name = 'journal_offset'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("state", ["closed", "open"])
@pytest.mark.parametrize("damage", [lose_a_table, spoil_the_place_in_the_journal])
def test_a_damaged_index_that_is_built_again_still_knows_what_it_saw(
    root: Path, damage: Callable[[Path], None], state: str
) -> None:
    sound, forged = rich(root, 1), rich(root, 2)
    seen = head_of(forged)
    index = Index(root)
    index.catch_up()
    if state == "closed":
        index.close()
    write_anew(forged)
    damage(layout.index(root))
    assert index.head(forged.id) == seen
    assert index.heads() == {forged.id: seen, sound.id: head_of(sound)}
    index.close()
    with Index(root) as again:
        assert again.head(forged.id) == seen


def test_an_index_that_was_deleted_has_no_memory(root: Path) -> None:
    run = rich(root)
    with Index(root) as index:
        index.catch_up()
    write_anew(run)
    layout.index(root).unlink()
    with Index(root) as index:
        assert index.remembered() == {}
        assert index.head(run.id) == head_of(run)


def test_a_run_that_is_read_again_from_its_start_is_remembered_as_it_was(root: Path) -> None:
    run = rich(root)
    seen, original = head_of(run), run.path.read_bytes()
    with Index(root) as index:
        index.catch_up()
        for _ in range(2):  # forged twice: what was seen first is what counts
            write_anew(run)
            run.add("note.added", {"text": "more"})
            run.note("close")
            assert index.head(run.id) == seen
        run.path.write_bytes(original)
        run.note("close")
        assert index.remembered() == {}


def test_a_run_that_only_grew_is_not_remembered(root: Path) -> None:
    run = rich(root)
    with Index(root) as index:
        index.catch_up()
        run.add("note.added", {"text": "late"})
        index.rebuild()
        assert index.remembered() == {}
        assert index.head(run.id) == head_of(run)


def test_a_memory_that_two_places_of_a_damaged_index_disagree_on_accuses_nobody(root: Path) -> None:
    run, other = rich(root, 1), rich(root, 2)
    with Index(root) as index:
        index.catch_up()
    connection = sqlite3.connect(layout.index(root))
    connection.execute("UPDATE runs SET head_hash = ? WHERE id = ?", ("0" * 64, run.id))
    connection.execute("UPDATE runs SET head_seq = 9999 WHERE id = ?", (other.id,))
    connection.execute("DROP TABLE calls")
    connection.commit()
    connection.close()
    with Index(root) as index:
        assert index.remembered() == {}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE runs SET head_hash = replace(head_hash, substr(head_hash, 7, 1), 'x')",
        "UPDATE runs SET head_hash = substr(head_hash, 2) || CASE substr(head_hash, 1, 1) WHEN '0' THEN '1' ELSE '0' END",
        "UPDATE runs SET head_seq = head_seq + 4",
        "UPDATE runs SET head_seq = head_seq - 4",
        "UPDATE runs SET head_seq = NULL",
        "UPDATE runs SET events = events + 1",
        "UPDATE progress SET tail = replace(tail, substr(tail, 20, 1), 'x')",
        "UPDATE progress SET run = replace(run, 'run_0', 'run_1')",
        "UPDATE runs SET id = replace(id, 'run_0', 'run_1')",
    ],
)
def test_a_byte_that_changed_in_the_index_accuses_nobody(root: Path, change: str) -> None:
    run, other = rich(root, 1), rich(root, 2)
    truth = {run.id: head_of(run), other.id: head_of(other)}
    with Index(root) as index:
        assert index.heads() == truth
    connection = sqlite3.connect(layout.index(root))
    table = change.split()[1]
    column = "id" if table == "runs" else "run"
    connection.execute(f"{change} WHERE {column} = ?", (run.id,))
    connection.commit()
    connection.close()
    before = layout.index(root).read_bytes()
    with Index(root) as index:
        assert index.head(run.id) in (truth[run.id], None)
    layout.index(root).write_bytes(before)
    with Index(root) as index:
        assert index.heads() == truth
        assert index.remembered() == {}


def test_a_timeline_with_lines_that_cannot_be_read_does_not_damage_the_index(root: Path) -> None:
    torn, short, odd = rich(root, 1), rich(root, 2), Timeline(root, 3)
    torn.append(b"rubbish\n")
    short.path.write_bytes(b"".join(one for one in short.path.read_bytes().splitlines(keepends=True)[2:]))
    odd.append(line(odd.id, 1, "note.added", {})[:-2] + b' , "more": 1 }\n')
    with Index(root) as index:
        index.catch_up()
        identity = os.stat(layout.index(root)).st_ino
        assert set(index.heads()) == {short.id}
        assert os.stat(layout.index(root)).st_ino == identity, "it was not built again"


@pytest.mark.parametrize("seen", ["closed", "open"])
def test_a_question_about_a_run_that_was_removed_does_not_wipe_out_what_was_seen(root: Path, seen: str) -> None:
    sound, removed = rich(root, 1), Timeline(root, 2, name="fix-login", envelope_hash="e" * 64)
    holder = presence.hold(removed.directory)
    if seen == "open":
        with Index(root) as index:
            index.catch_up()
    removed.finish()
    os.close(holder)
    with Index(root) as index:
        if seen == "closed":
            index.catch_up()
        head = (
            index.heads()[removed.id]
            if seen == "closed"
            else (0, removed.path.read_bytes().splitlines()[0][-66:-2].decode())
        )
        shutil.rmtree(removed.directory)
        assert index.latest() == index.latest("fix-login") == index.find_envelope("e" * 64) == sound.id
        assert index.heads() == {sound.id: head_of(sound), removed.id: head}
        index.rebuild()
        assert index.remembered() == {removed.id: head}
        index.rebuild(forget=True)
        assert index.heads() == {sound.id: head_of(sound)}


class Flushed(Disk):
    """A disk that knows what a power loss would leave of each file and folder."""

    def __init__(self) -> None:
        self.files: dict[int, int] = {}
        self.folders: set[Path] = set()

    def sync(self, descriptor: int) -> None:
        self.files[os.fstat(descriptor).st_ino] = os.fstat(descriptor).st_size

    def sync_folder(self, path: str | os.PathLike[str]) -> None:
        self.folders.add(Path(path))


def test_what_the_index_has_seen_no_power_loss_can_take_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, finished = Timeline(root, 1), rich(root, 2)
    disk = Flushed()
    monkeypatch.setattr(index_follow, "_disk", disk)
    holder = presence.hold(run.directory)
    with Index(root) as index:
        for _ in range(3):
            run.add("note.added", {"text": "more"})
            assert index.head(run.id) == head_of(run)
            assert disk.files[os.stat(run.path).st_ino] == os.stat(run.path).st_size
        assert disk.folders == {run.directory, run.directory.parent}
        assert disk.files[os.stat(finished.path).st_ino] == os.stat(finished.path).st_size
        disk.files.clear()
        index.catch_up()
        assert disk.files == {}, "nothing was new"
    os.close(holder)


def test_a_disk_that_cannot_be_flushed_is_read_all_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Disk):
        def sync(self, descriptor: int) -> None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    run = rich(root)
    monkeypatch.setattr(index_follow, "_disk", Refusing())
    with Index(root) as index:
        assert index.head(run.id) == head_of(run)


def test_a_rebuild_that_is_killed_loses_no_memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [rich(root, number) for number in range(3)]
    seen = head_of(runs[1])
    index = Index(root)
    index.catch_up()
    write_anew(runs[1])

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.rebuild(stop)
    index.close()
    with Index(root) as again:
        assert again.remembered() == {runs[1].id: seen}


READER = """
import ctypes, os, sys
from pathlib import Path
if os.getuid() == 0:
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, none) == 0
from playhead.store.index import Index
with Index(Path(sys.argv[1])) as index:
    print(index.remembered())
"""


@pytest.mark.skipif(sys.platform != "linux" and os.getuid() == 0, reason="root may write everywhere")
def test_the_index_of_a_store_that_cannot_be_written_is_asked_what_it_saw(root: Path) -> None:
    run = rich(root)
    seen = head_of(run)
    with Index(root) as index:
        index.catch_up()
    write_anew(run)
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = subprocess.run([sys.executable, "-c", READER, str(root)], capture_output=True, text=True)
    finally:
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)
    assert (done.stdout, done.stderr) == (f"{ ({run.id: seen}) }\n", "")


def test_an_index_of_before_there_was_a_memory_is_taken_over(root: Path) -> None:
    run = rich(root)
    seen = head_of(run)
    with Index(root) as index:
        index.catch_up()
    connection = sqlite3.connect(layout.index(root))
    connection.execute("DROP TABLE remembered")
    connection.close()
    write_anew(run)
    with Index(root) as index:
        assert index.remembered() == {run.id: seen}
    assert "remembered" in index_database.INTERNAL_TABLES
