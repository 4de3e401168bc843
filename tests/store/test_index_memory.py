"""What an index has seen of a run is not forgotten because the index, or the run, is read again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.index_timelines import Timeline, line, rich

from playhead.store import index_database, layout
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
