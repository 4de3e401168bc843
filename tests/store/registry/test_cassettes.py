from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.store.packed import FORMS, packed, record_family

from playhead._api.reading import Run
from playhead._ids import is_cassette_id, new_run_id
from playhead.errors import Altered, BadCassette, NotFound, UsageError
from playhead.store import layout
from playhead.store.cassettes.reading import Cassette
from playhead.store.files import FileStore
from playhead.store.registry.cassettes import Shelf, StoredCassette
from playhead.store.registry.database import Registry


@pytest.fixture
def shelf(registry: Registry) -> Shelf:
    return Shelf(registry, "default")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cassette of several parts, of a run that came from outside."""
    folder = tmp_path_factory.mktemp("recorded")
    store, run = FileStore(folder / "store"), new_run_id()
    ledger = store.ledger(run, create=True)
    ledger.append("run.started", b'{"name":"login","external_id":"trace-9"}', span="root")
    for number in range(300):
        ledger.append("note.added", b'{"text":"%d %s"}' % (number, b"x" * 500))
    ledger.append("run.finished", _last)
    ledger.close()
    return packed(Run(store, run), folder, ".cassette.jsonl")


def _last(seq: int, root: str) -> bytes:
    return b'{"status":"ok","events":%d,"root":"%s"}' % (seq + 1, root.encode())


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhead._limits.CASSETTE_PART_BYTES", 5000)


@pytest.fixture
def stored(shelf: Shelf, file: Path, small_parts: None) -> StoredCassette:
    return shelf.add(file, name="fixed", by="key1")


@pytest.fixture
def outsider(stored: StoredCassette, root: Path) -> Iterator[sqlite3.Connection]:
    """Open the file as anybody would who has the sqlite3 shell."""
    connection = sqlite3.connect(layout.registry(root), isolation_level=None)
    yield connection
    connection.close()


@pytest.mark.parametrize("form", FORMS)
def test_what_is_extracted_is_what_was_added_byte_for_byte(
    shelf: Shelf, tmp_path: Path, form: str, small_parts: None
) -> None:
    run, children = record_family(FileStore(tmp_path / "elsewhere"))
    source, target = packed(run, tmp_path, form), tmp_path / f"out{form}"
    kept = shelf.add(source, name="family", by="key1")
    assert is_cassette_id(kept.id)
    assert shelf.get(kept.id) == kept == shelf.extract(kept.id, target)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o600
    opened = Cassette(target)
    opened.check()
    assert (kept.form, kept.bytes) == (form, source.stat().st_size)
    assert kept.digest == hashlib.sha256(source.read_bytes()).hexdigest()
    assert (kept.run, kept.runs, kept.run_name) == (run.id, 1 + len(children), "rich")
    assert (kept.head_seq, kept.head_hash) == opened.head(run.id)
    assert kept.events == sum(sum(1 for _ in opened.lines(taped)) for taped in opened.runs())
    assert kept.parts == -(-kept.bytes // 5000) > 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


def test_what_a_cassette_says_of_its_run_is_kept(stored: StoredCassette) -> None:
    told = (stored.name, stored.by, stored.external_id, stored.run_name, stored.project, stored.events)
    assert told == ("fixed", "key1", "trace-9", "login", "default", 302)
    assert stored.parts > 2


def test_two_copies_are_two_cassettes_listed_newest_first_page_by_page(shelf: Shelf, file: Path) -> None:
    ids = [shelf.add(file, name=None, by=None).id for _ in range(5)]
    first, after = shelf.list(2)
    second, then = shelf.list(2, after)
    last, end = shelf.list(2, then)
    assert [kept.id for kept in (*first, *second, *last)] == ids[::-1]
    assert end is None
    assert shelf.list(5)[1] is None
    for limit, start in ((0, None), (1001, None), (2, "x"), (2, "cas_\ud800")):
        with pytest.raises(UsageError, match="page"):
            shelf.list(limit, start)


def test_another_project_does_not_see_a_cassette(stored: StoredCassette, registry: Registry, tmp_path: Path) -> None:
    other = Shelf(registry, "mail")
    assert other.list() == ([], None)
    for ask in (lambda: other.get(stored.id), lambda: other.extract(stored.id, tmp_path / "x.cassette")):
        with pytest.raises(NotFound):
            ask()
    for wrong in ("", "cas_x", stored.id[:-1] + "u", "cas_" + "\ud800" * 26):
        with pytest.raises(NotFound):
            Shelf(registry, "default").get(wrong)
    assert not (tmp_path / "x.cassette").exists()


CHANGES: dict[str, Callable[[str], str]] = {
    "update": lambda id: "UPDATE cassettes SET name = 'x'",
    "update of the id": lambda id: "UPDATE cassettes SET id = 'cas_x'",
    "update or replace": lambda id: "UPDATE OR REPLACE cassettes SET digest = 'x'",
    "update or ignore": lambda id: "UPDATE OR IGNORE cassettes SET digest = 'x'",
    "delete": lambda id: "DELETE FROM cassettes",
    "replace": lambda id: "REPLACE INTO cassettes SELECT * FROM cassettes",
    "insert or replace": lambda id: "INSERT OR REPLACE INTO cassettes SELECT * FROM cassettes",
    "insert or ignore": lambda id: "INSERT OR IGNORE INTO cassettes SELECT * FROM cassettes",
    "upsert": lambda id: "INSERT INTO cassettes SELECT * FROM cassettes WHERE 1 ON CONFLICT DO UPDATE SET name = 'x'",
    "update of a part": lambda id: "UPDATE cassette_parts SET content = x'00'",
    "update or replace of a part": lambda id: "UPDATE OR REPLACE cassette_parts SET number = 0 WHERE number = 1",
    "delete of a part": lambda id: "DELETE FROM cassette_parts WHERE number = 0",
    "replace of a part": lambda id: f"REPLACE INTO cassette_parts VALUES ('{id}', 0, x'00')",
    "insert or replace of a part": lambda id: f"INSERT OR REPLACE INTO cassette_parts VALUES ('{id}', 0, x'00')",
    "one more part": lambda id: f"INSERT INTO cassette_parts VALUES ('{id}', 99, x'00')",
    "the next part": lambda id: (
        f"INSERT INTO cassette_parts SELECT cassette, max(number) + 1, x'00' FROM cassette_parts WHERE cassette = '{id}'"
    ),
    "upsert of a part": lambda id: (
        f"INSERT INTO cassette_parts VALUES ('{id}', 0, x'00') ON CONFLICT DO UPDATE SET content = x'00'"
    ),
    "a row by number": lambda id: "REPLACE INTO cassettes (rowid, id) VALUES (1, 'x')",
    "a cassette without its parts": lambda id: (
        "INSERT INTO cassettes SELECT 'cas_y', project, name, run, external_id, run_name, head_seq, head_hash, runs,"
        " events, form, bytes, digest, parts, created_us, by FROM cassettes"
    ),
}


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_the_database_itself_refuses_every_change_of_a_cassette(
    outsider: sqlite3.Connection, stored: StoredCassette, change: str, recursive: bool, shelf: Shelf, tmp_path: Path
) -> None:
    outsider.execute(f"PRAGMA recursive_triggers = {int(recursive)}")
    refusal = "immutable|whole or not at all|no column named rowid"
    with pytest.raises(sqlite3.DatabaseError, match=refusal):
        outsider.execute(CHANGES[change](stored.id))
    assert shelf.list() == ([stored], None)
    shelf.extract(stored.id, tmp_path / "same.cassette.jsonl")


def test_a_change_by_somebody_who_removed_the_rules_first_is_found_before_anybody_uses_it(
    outsider: sqlite3.Connection, stored: StoredCassette, shelf: Shelf, tmp_path: Path
) -> None:
    target = tmp_path / "out.cassette.jsonl"
    target.write_bytes(b"what was there")
    outsider.execute("DROP TRIGGER cassette_parts_are_not_updated")
    changes = (
        "content = zeroblob(length(content)) WHERE number = 1",
        "number = -number",
        "content = 7 WHERE number = 0",
    )
    for change in changes:
        outsider.execute(f"UPDATE cassette_parts SET {change}")
        with pytest.raises(Altered):
            shelf.extract(stored.id, target)
        assert target.read_bytes() == b"what was there"
        assert not list(tmp_path.glob(".out*"))


def test_a_part_that_is_gone_is_found(
    outsider: sqlite3.Connection, stored: StoredCassette, shelf: Shelf, tmp_path: Path
) -> None:
    outsider.execute("DROP TRIGGER cassette_parts_are_not_deleted")
    outsider.execute("DELETE FROM cassette_parts WHERE number = 2")
    with pytest.raises(Altered):
        shelf.extract(stored.id, tmp_path / "x.cassette")
    assert not (tmp_path / "x.cassette").exists()


def test_what_fails_half_way_leaves_nothing(
    shelf: Shelf, file: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch, small_parts: None
) -> None:
    def failing(*_: object) -> Iterator[bytes]:
        yield b"x"
        raise OSError("the disk of the upload is gone")

    with monkeypatch.context() as patch:
        patch.setattr("playhead.store.registry.cassettes._parts", failing)
        with pytest.raises(OSError, match="gone"):
            shelf.add(file, name=None, by=None)
    with registry.reading() as connection:
        assert connection is not None
        assert connection.execute("SELECT count(*) FROM cassette_parts").fetchone() == (0,)
    assert shelf.list() == ([], None)
    assert shelf.add(file, name=None, by=None)


def test_one_that_is_too_large_for_the_database_is_refused(
    shelf: Shelf, file: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setattr("playhead._limits.CASSETTE_STORED_BYTES_MAX", 1000)
    with pytest.raises(BadCassette, match="1,000 are kept"):
        shelf.add(file, name=None, by=None)
    assert not root.exists()
