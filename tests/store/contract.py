"""What every store must do. A driver's test class inherits this and says how to make a store: six lines.

class TestFiles(StoreContract):
    def make(self, folder: Path) -> Store:
        return FileStore(folder / "store")
"""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import orjson
import pytest

from playhead._ids import new_run_id
from playhead.errors import BadName, MissingContent, PlayheadError, RunNotFound, StoreError
from playhead.ledger.verify import verify
from playhead.store.base import Store, content_check
from playhead.store.reader import RunReader

# Names that an agent may choose in order to get out, or that no file can have.
BAD_NAMES = [
    "", ".", "..", "/", "//", "../x", "../../x", "a/../../x", "a/..", "./x", "a/./b", "a//b", "/etc/passwd", "//etc/passwd", "a/",
    "/a", "\x00", "a\x00b", "a\nb", "a\x7fb", "\x1b[31m", "a\\b", "..\\x", "C:x", "C:/x", "x:stream", "a*b", "a?b", 'a"b', "<x>", "a|b",
    "con", "CON", "con.txt", "NUL", "aux/x", "x/prn", "com1", "LPT9.log", "x.", "a..", "x ", " x", "a/ b", "...", "\ud800", "a\udfffb",
    "x" * 201, "é" * 101, "/".join("abcdefghi"), "\u00a0x", "x\u3000", "~/../x/..", "\t",
]  # fmt: skip

# Names that look dangerous and must stay inside, unchanged.
ODD_NAMES = [
    "a", "patch.diff", "logs/test.txt", "a/b/c/d/e/f/g/h", "..a", "a..b/c", "~", "~root", "-rf", "--help", "$HOME", "%2e%2e%2fx",
    "．．／x", "‥", "․․", "a\u202egpj.exe", "ünï/cødé", "e\u0301", "é", "😀.txt", "x" * 200, ".gitignore", ".hidden/x", "timeline.jsonl",
    "context_pack.json", "a;b", "a&b", "a'b", "{}", "[x]", "#", "nul0", "console", "a b", "a~2", "\u200d",
]  # fmt: skip


class StoreContract:
    """The promises, in tests."""

    def make(self, folder: Path) -> Store:
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return self.make(tmp_path / "1" / "2" / "3")  # so that a name that gets out is still seen

    @pytest.fixture
    def run(self, store: Store) -> str:
        run = new_run_id()
        store.ledger(run, create=True).close()
        return run

    # Runs

    def test_a_new_store_is_empty(self, store: Store) -> None:
        assert list(store.runs()) == []

    def test_runs_are_listed_oldest_first(self, store: Store) -> None:
        runs = [new_run_id(_At(second)) for second in (3, 1, 2)]
        for run in runs:
            store.ledger(run, create=True).close()
        assert list(store.runs()) == sorted(runs)

    def test_a_run_is_created_once(self, store: Store, run: str) -> None:
        with pytest.raises(StoreError):
            store.ledger(run, create=True)
        store.ledger(run).close()

    def test_a_run_that_is_not_there_is_not_found(self, store: Store) -> None:
        missing = new_run_id()
        with pytest.raises(RunNotFound):
            store.ledger(missing)
        with pytest.raises(RunNotFound):
            list(store.lines(missing))
        with pytest.raises(RunNotFound):
            store.delete(missing)
        assert list(store.runs()) == []

    def test_what_one_writer_appends_another_continues(self, store: Store, run: str) -> None:
        for number in range(4):
            writer = store.ledger(run)
            writer.append("note.added", b'{"text":"%d"}' % number)
            writer.sync()
            writer.close()
        assert [orjson.loads(line)["seq"] for line in store.lines(run)] == [0, 1, 2, 3]
        assert verify(store.lines(run), run, check=content_check(store, run)).integrity.verdict == "intact"

    def test_lines_come_with_their_newline_from_any_offset(self, store: Store, run: str) -> None:
        writer = store.ledger(run)
        for number in range(5):
            writer.append("note.added", b'{"text":"%d\\r\\u2028"}' % number)
        lines = list(store.lines(run))
        assert len(lines) == 5
        assert all(line.endswith(b"\n") for line in lines)
        start = 0
        for number, line in enumerate(lines):
            assert list(store.lines(run, start)) == lines[number:]
            start += len(line)
        assert list(store.lines(run, start)) == []
        writer.close()

    def test_a_reader_finds_any_event_and_follows_a_run_that_grows(self, store: Store, run: str) -> None:
        writer = store.ledger(run)
        reader = RunReader(store, run)
        for number in range(6):
            writer.append("note.added", orjson.dumps({"text": str(number)}))
            assert reader.event(number).data == {"text": str(number)}
        assert [event.seq for event in reader.events()] == list(range(6))
        assert reader.event(0).data == {"text": "0"}
        for seq in (-1, 6, 999):
            with pytest.raises(RunNotFound):
                reader.event(seq)
        writer.close()

    def test_a_deleted_run_is_gone_with_its_files_and_its_blobs_stay(self, store: Store, run: str) -> None:
        digest = store.put_blob(b"shared")
        store.put_file(run, "artifacts/a", b"x")
        store.delete(run)
        assert list(store.runs()) == []
        with pytest.raises(PlayheadError):
            store.file(run, "artifacts/a")
        with pytest.raises(RunNotFound):
            store.delete(run)
        assert store.blob(digest) == b"shared"

    # Blobs

    @pytest.mark.parametrize("data", [b"", b"x", b"\x00\xff" * 100_000])
    def test_a_blob_is_kept_under_its_digest(self, store: Store, run: str, data: bytes) -> None:
        digest = store.put_blob(data)
        assert digest == hashlib.sha256(data).hexdigest()
        assert store.put_blob(data) == digest
        assert store.blob(digest) == data

    def test_a_blob_that_is_not_there_is_missing(self, store: Store, run: str) -> None:
        with pytest.raises(MissingContent):
            store.blob("0" * 64)

    @pytest.mark.parametrize(
        "digest",
        ["", "..", "../../etc/passwd", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "/" * 64, "\x00" * 64, "٣" * 64],
    )
    def test_what_is_no_digest_is_refused(self, store: Store, run: str, digest: str) -> None:
        with pytest.raises((BadName, MissingContent)):
            store.blob(digest)

    # Files

    def test_both_packs_exist_from_the_start_and_are_replaced(self, store: Store, run: str) -> None:
        for name in ("context_pack.json", "policy_snapshot.json"):
            assert orjson.loads(store.file(run, name)) == {}
            assert store.put_file(run, name, b'{"a":1}') == name
            assert store.put_file(run, name, b'{"a":2}') == name
            assert store.file(run, name) == b'{"a":2}'

    @pytest.mark.parametrize(
        "name", ["timeline.jsonl", "x", "", "../x", "artifacts", "artifact/x", "private/x", "/artifacts/x"]
    )
    def test_no_other_file_can_be_written_or_read(self, store: Store, run: str, name: str) -> None:
        with pytest.raises(BadName):
            store.put_file(run, name, b"x")
        with pytest.raises(BadName):
            store.file(run, name)

    @pytest.mark.parametrize("name", BAD_NAMES, ids=itertools.count())
    def test_a_name_that_could_leave_the_run_is_refused(
        self, store: Store, run: str, name: str, tmp_path: Path
    ) -> None:
        before = _everything(tmp_path)
        with pytest.raises(BadName):
            store.put_file(run, f"artifacts/{name}", b"escaped")
        with pytest.raises((BadName, MissingContent)):
            store.file(run, f"artifacts/{name}")
        assert _everything(tmp_path) == before

    @pytest.mark.parametrize("name", ODD_NAMES, ids=itertools.count())
    def test_an_odd_name_stays_inside_as_it_is(self, store: Store, run: str, name: str) -> None:
        assert store.put_file(run, f"artifacts/{name}", b"kept") == f"artifacts/{name}"
        assert store.file(run, f"artifacts/{name}") == b"kept"

    def test_the_same_name_with_other_bytes_gets_a_number(self, store: Store, run: str) -> None:
        names = [store.put_file(run, "artifacts/logs/test.tar.gz", data) for data in (b"1", b"2", b"3", b"2", b"1")]
        assert names == [f"artifacts/logs/test{number}.tar.gz" for number in ("", "~2", "~3", "~2", "")]
        assert [store.file(run, name) for name in names] == [b"1", b"2", b"3", b"2", b"1"]

    @pytest.mark.parametrize("name", ["x" * 200, "d/" * 7 + "y" * 186, "z" * 190 + ".tar.gz", ".gitignore", "a.b.c"])
    def test_the_longest_names_get_numbers_too_and_are_read_back(self, store: Store, run: str, name: str) -> None:
        names = [store.put_file(run, f"artifacts/{name}", str(number).encode()) for number in range(12)]
        assert len(set(names)) == 12
        assert [store.file(run, got) for got in names] == [str(number).encode() for number in range(12)]

    def test_a_file_and_a_folder_of_one_name_do_not_get_in_each_others_way(self, store: Store, run: str) -> None:
        names = [
            store.put_file(run, f"artifacts/{name}", name.encode()) for name in ("a", "a/b", "a/b/c", "c/d", "c", "a/b")
        ]
        assert len(set(names)) == 5
        for got, name in zip(names, ("a", "a/b", "a/b/c", "c/d", "c", "a/b"), strict=True):
            assert store.file(run, got) == name.encode()

    def test_a_file_that_is_not_there_is_missing(self, store: Store, run: str) -> None:
        store.put_file(run, "artifacts/folder/x", b"x")
        for name in ("artifacts/nothing", "artifacts/folder", "artifacts/folder/x/y"):
            with pytest.raises(MissingContent):
                store.file(run, name)

    def test_files_of_one_run_are_not_those_of_another(self, store: Store, run: str) -> None:
        other = new_run_id()
        store.ledger(other, create=True).close()
        store.put_file(run, "artifacts/a", b"1")
        assert store.put_file(other, "artifacts/a", b"2") == "artifacts/a"
        assert (store.file(run, "artifacts/a"), store.file(other, "artifacts/a")) == (b"1", b"2")

    # What verify asks

    def test_verify_finds_every_named_content(self, store: Store, run: str) -> None:
        inner = store.put_blob(b"inner text " * 10)
        outer = store.put_blob(orjson.dumps([{"$blob": inner, "len": 110, "as": "text"}, '{"$blob":"']))
        mentions = orjson.dumps({"$blob": "0" * 64, "len": 1, "as": "json"})
        text = store.put_blob(b"a text that only mentions " + mentions)
        artifact = store.put_file(run, "artifacts/a", b"x").removeprefix("artifacts/")
        writer = store.ledger(run)
        digest = hashlib.sha256(b"x").hexdigest()
        writer.append("artifact.created", orjson.dumps({"name": artifact, "digest": digest, "size": 1}))
        writer.append("note.added", orjson.dumps({"text": {"$blob": outer, "len": 9, "as": "json"}}))
        writer.append("note.added", orjson.dumps({"text": {"$blob": text, "len": 9, "as": "text"}}))
        writer.append("note.added", orjson.dumps({"text": mentions.decode()}))
        writer.close()
        found = verify(store.lines(run), run, check=content_check(store, run))
        assert (found.integrity.verdict, found.missing) == ("intact", [])
        self.lose_blob(store, inner)
        assert verify(store.lines(run), run, check=content_check(store, run)).missing == [f"blob {outer[:12]}"]

    def lose_blob(self, store: Any, digest: str) -> None:
        """Remove a blob behind the store's back."""
        raise NotImplementedError


class _At:
    def __init__(self, second: int) -> None:
        self.second = second

    def wall_us(self) -> int:
        return self.second * 1_000_000

    def monotonic_us(self) -> int:
        return 0


def _everything(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}
