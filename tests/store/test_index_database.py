from __future__ import annotations

import logging
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.index_timelines import every_row, rich

from playhead.store import index_database, layout
from playhead.store.index import Index


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".playhead").mkdir()
    for number in range(20):
        rich(tmp_path / ".playhead", number)
    return tmp_path / ".playhead"


def damage_randomly(path: Path) -> None:
    data = bytearray(path.read_bytes())
    chance = random.Random(7)
    for start in range(0, len(data), 1024):
        data[start : start + 700] = chance.randbytes(len(data[start : start + 700]))
    path.write_bytes(data)


def drop_a_table(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE calls")
    connection.close()


def make_another_database(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE somebody_elses (x)")
    connection.commit()
    connection.close()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("this is not a database\n" * 5000),
    "short text": lambda path: path.write_text("hello"),
    "random": lambda path: path.write_bytes(random.Random(1).randbytes(100_000)),
    "random in places": damage_randomly,
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "header only": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a few bytes": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "a table gone": drop_a_table,
    "another database": make_another_database,
}


@pytest.mark.parametrize("state", ["closed", "open"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_rebuilt_without_a_word(
    root: Path, damage: str, state: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, "playhead")
    index = Index(root)
    good = every_row(index)
    if state == "closed":
        index.close()
    DAMAGES[damage](layout.index(root))
    assert len(index.list_runs()) == 20
    assert every_row(index) == good
    index.close()
    with Index(root) as again:
        assert every_row(again) == good
    assert capfd.readouterr() == ("", "")
    assert all(record.levelno == logging.INFO for record in caplog.records)
    if damage not in ("deleted", "empty") and state == "closed":
        assert "rebuilt" in caplog.text


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_never_break_an_answer(root: Path, seed: int) -> None:
    index = Index(root)
    good = every_row(index)
    index.close()
    data = bytearray(layout.index(root).read_bytes())
    chance = random.Random(seed)
    for _ in range(2000):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    layout.index(root).write_bytes(data)
    index.list_runs(limit=-1)
    assert index.rebuild() == 20
    assert every_row(index) == good
    index.close()


def test_a_log_left_behind_by_a_deleted_index_does_no_harm(root: Path) -> None:
    with Index(root) as index:
        good = every_row(index)
        for suffix in ("-wal", "-shm"):
            shutil.copy(f"{layout.index(root)}{suffix}", root / f"kept{suffix}")
    layout.index(root).unlink()
    for suffix in ("-wal", "-shm"):
        (root / f"kept{suffix}").rename(f"{layout.index(root)}{suffix}")
    with Index(root) as index:
        assert every_row(index) == good


@pytest.mark.parametrize("what", ["link", "link to nothing", "pipe", "folder"])
def test_what_lies_in_place_of_the_index_and_is_no_file_is_left_alone(root: Path, what: str) -> None:
    place, elsewhere = layout.index(root), root.parent / "elsewhere"
    if what == "link":
        elsewhere.write_text("somebody else's")
        elsewhere.chmod(0o644)
    if what.startswith("link"):
        place.symlink_to(elsewhere)
    elif what == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with Index(root) as index:
        assert len(index.list_runs()) == 20
        assert index.rebuild() == 20
    assert not place.is_file() or place.is_symlink()
    if what == "link":
        assert (elsewhere.read_text(), elsewhere.stat().st_mode & 0o777) == ("somebody else's", 0o644)
    assert elsewhere.exists() == (what == "link")


def test_a_store_that_is_not_there_is_empty_and_stays_away(tmp_path: Path) -> None:
    with Index(tmp_path / ".playhead") as index:
        assert index.list_runs() == []
        assert index.latest() is None
        assert not (tmp_path / ".playhead").exists()
        (tmp_path / ".playhead").mkdir()
        rich(tmp_path / ".playhead")
        assert len(index.list_runs()) == 1
        assert layout.index(tmp_path / ".playhead").exists()  # from now on there is something to keep


# Root may write everywhere; without its capabilities it is bound by the permissions like anybody else.
READER = """
import ctypes, os, sys
from pathlib import Path
if os.getuid() == 0:
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, none) == 0
from playhead.store.index import Index
with Index(Path(sys.argv[1])) as index:
    print(len(index.list_runs()), index.query("SELECT count(*) FROM calls")[1][0][0], index.rebuild())
"""


@pytest.mark.skipif(sys.platform != "linux" and os.getuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("existing", ["without an index", "with an index"])
def test_a_store_that_cannot_be_written_answers_from_memory(root: Path, existing: str) -> None:
    if existing == "with an index":
        with Index(root) as index:
            index.catch_up()
    before = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = subprocess.run([sys.executable, "-c", READER, str(root)], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("20 80 20\n", "")
        assert {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()} == before
    finally:
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)


def test_an_index_of_a_newer_version_is_left_as_it_is(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "playhead")
    with Index(root) as index:
        good = every_row(index)
    connection = sqlite3.connect(layout.index(root))
    connection.execute("INSERT INTO migrations VALUES ('9999_from_the_future', 'then')")
    connection.execute("DELETE FROM runs")
    connection.commit()
    connection.close()
    before = layout.index(root).read_bytes()
    with Index(root) as index:
        assert every_row(index) == good
        assert index.rebuild() == 20
    assert layout.index(root).read_bytes() == before
    assert "newer" in caplog.text


def test_migrations_are_taken_in_order_and_recorded(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index(root) as index:
        index.catch_up()
    inode = layout.index(root).stat().st_ino
    folder = tmp_path / "migrations"
    known = index_database._known()
    shutil.copytree(index_database.MIGRATIONS, folder)
    (folder / "9002_second.sql").write_text("INSERT INTO added VALUES ('a;b');\n")
    (folder / "9001_first.sql").write_text("-- why; not\nCREATE TABLE added (\n  x TEXT\n);\n")
    monkeypatch.setattr(index_database, "MIGRATIONS", folder)
    with Index(root) as index:
        assert index.query("SELECT x FROM added")[1] == [("a;b",)]
        names = [name for (name,) in index.query("SELECT name FROM migrations ORDER BY name")[1]]
        assert names == [*known, "9001_first", "9002_second"]
        assert len(index.list_runs()) == 20
    assert layout.index(root).stat().st_ino == inode  # taken over, not built again


def test_an_index_of_before_is_read_again_and_forgets_nothing_that_it_saw(root: Path) -> None:
    with Index(root) as index:
        good, heads = every_row(index), index.heads()
    (gone, *_) = heads
    shutil.rmtree(layout.run_dir(root, gone))
    with sqlite3.connect(layout.index(root)) as old:
        for column in ("attempt", "taped"):
            old.execute(f"ALTER TABLE calls DROP COLUMN {column}")
        old.execute("UPDATE runs SET name = 'old', head_hash = 'f' WHERE id = ?", (list(heads)[1],))
        old.execute("DELETE FROM migrations WHERE name > '0001_tables'")
    with Index(root) as index:
        assert every_row(index) == {table: [row for row in rows if gone not in row] for table, rows in good.items()}
        assert index.remembered() == {gone: heads[gone]}


def test_a_migration_that_fails_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_bad.sql").write_text("CREATE TABLE a (x);\nCREATE TABLE a (x);\n")
    monkeypatch.setattr(index_database, "MIGRATIONS", folder)
    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        index_database._migrate(connection, [])
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    connection.close()


def test_the_file_has_large_pages_and_a_write_ahead_log(root: Path) -> None:
    with Index(root) as index:
        index.catch_up()
    connection = sqlite3.connect(layout.index(root))
    assert connection.execute("PRAGMA page_size").fetchone() == (16384,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_listing_imports_no_heavy_module(root: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from playhead.store.index import Index\n"
        "Index(Path(sys.argv[1])).list_runs()\n"
        "heavy = 'msgspec', 'rich', 'logging', 'playhead.event.kinds', 'playhead.event.envelope', 'httpx'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, env=os.environ)
    assert (done.stdout, done.stderr) == ("[]\n", "")
