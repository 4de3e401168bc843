from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.children import command, environment
from tests.store.index_timelines import Timeline, line

import playhead
from playhead import _limits
from playhead.capture.record import Record
from playhead.errors import StoreError, UsageError
from playhead.store import layout, search_words
from playhead.store.files import FileStore
from playhead.store.search import Hit, TextIndex
from playhead.store.search_texts import texts_of

CATCH_UP = """
import sys
from pathlib import Path
from playhead.store.search import TextIndex
sys.stdin.readline()
TextIndex(Path(sys.argv[1])).catch_up()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / ".playhead"
    root.mkdir()
    return root


@pytest.fixture
def index(root: Path) -> Iterator[TextIndex]:
    with TextIndex(root) as index:
        yield index


def note(run: Timeline, *texts: str) -> Timeline:
    for text in texts:
        run.add("note.added", {"text": text})
    return run


def places(index: TextIndex, query: str, limit: int = 50, before: str | None = None) -> list[tuple[str, int]]:
    """Return where something is found, after reading what is new."""
    assert index.catch_up()
    return [(hit.run, hit.seq) for hit in index.find(query, limit, before)]


def texts(line: bytes) -> list[str]:
    return texts_of(line, lambda digest, form: None)[1]


# What is found.


def test_a_word_is_found_in_the_newest_run_first_and_there_the_last_event_first(root: Path, index: TextIndex) -> None:
    old, new = Timeline(root, 1), Timeline(root, 2)
    note(old, "the refund failed")
    note(new, "refund", "nothing", "a REFUND again")
    note(old, "one more refund")  # written last, in a run that began first
    assert places(index, "refund") == [(new.id, 3), (new.id, 1), (old.id, 2), (old.id, 1)]


def test_words_are_all_there_phrases_stand_together_and_minus_words_are_not(root: Path, index: TextIndex) -> None:
    run = note(
        Timeline(root, 1), "could not refund", "not refund could", "could not", "refunded src/login.py", "gpt-5 login"
    )

    def seqs(query: str) -> list[int]:
        return sorted(seq for _, seq in places(index, query))

    assert run.seq == 6
    assert seqs("could refund") == [1, 2]
    assert seqs('"could not refund"') == [1]
    assert seqs('"could not"') == [1, 3]
    assert seqs('could -"not refund"') == [3]
    assert seqs("could -refund") == [3]
    assert seqs("refund*") == [1, 2, 4]
    assert seqs('"not refu"*') == [1, 2]
    assert seqs("refund -refunded") == [1, 2]
    assert seqs("src/login.py") == [4]
    assert seqs("login/src") == []
    assert seqs("gpt-5") == [5]
    assert seqs("COULD NOT") == [1, 2, 3], "no operators"
    assert seqs("“could not refund”") == [1]
    assert seqs('"could not') == [1, 3], "a quote that is never closed goes to the end"


def test_accents_and_capitals_make_no_difference(root: Path, index: TextIndex) -> None:
    run = note(Timeline(root, 1), "Größe des Cafés", "Ǆ İstanbul straße")
    assert places(index, "grosse") == []
    assert places(index, "GRÖßE") == places(index, "große") == places(index, "cafes") == [(run.id, 1)]
    hit = index.find("cafes")[0]
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["Cafés"]


def test_a_phrase_does_not_go_from_one_text_to_the_next(root: Path, index: TextIndex) -> None:
    run = Timeline(root, 1).add("tool.returned", {"status": "ok", "output": ["green", "apples"], "name": "pick"})
    assert places(index, "green apples ok pick") == [(run.id, 1)]
    assert places(index, '"green apples"') == []


def test_names_and_texts_at_any_depth_are_found_and_names_of_fields_are_not(root: Path, index: TextIndex) -> None:
    run = Timeline(root, 1, name="fix-login", tags={"team": "search"})
    run.add("tool.called", {"name": "lookup", "input": {"deep": [{"er": ["needle"]}], "issue": 1842}})
    assert places(index, "fix-login search") == [(run.id, 0)]
    assert places(index, "lookup needle") == [(run.id, 1)]
    assert places(index, "deep") == places(index, "team") == []


def test_what_nobody_looks_for_is_not_kept() -> None:
    noise = {
        "digest": "a" * 64, "key": "k1:" + "0f" * 32, "image": {"$bytes": "aGVsbG8="}, "same": {"$same": "1#/a"},
        "secret": {"$redacted": "rule"}, "gone": {"$commit": "b" * 64, "len": 3}, "nan": {"$float": "nan"},
        "url": "data:image/png;base64," + "iVBORw0KGgo" * 40, "text": "word", "list": {"$extends": "1#/x", "keep": 2, "then": ["more"]},
        "base64": ("Ab0" * 25 + "\n") * 9, "rule": "-" * 300, "date": {"$date": "2026-01-01"}, "commit": "c0ffee12" * 5,
    }  # fmt: skip
    assert texts(line("r", 0, "note.added", noise)) == ["word", "more", "-" * 300, "2026-01-01", "c0ffee12" * 5]


def test_text_that_is_json_is_found_without_its_escapes(root: Path, index: TextIndex) -> None:
    arguments = json.dumps({"diff": 'a\nFAILED "twice"', "name": "Größe \U0001f600"})
    run = note(Timeline(root, 1), arguments, 'C:\\new "folder"', f"data: {arguments}")
    assert places(index, '"failed twice"') == places(index, "größe") == [(run.id, 3), (run.id, 1)]
    assert places(index, "C:\\new") == [(run.id, 2)]
    assert index.find("failed")[0].snippet.count("a FAILED") == 1


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"1", b'{"data":1}', b'{"data":{"a":' + b"[" * 900 + b"]" * 900 + b"}}", b"\xff\xfe"]
)
def test_a_line_that_is_none_has_no_texts(raw: bytes) -> None:
    assert texts(raw) == []


def test_large_values_are_found_wherever_they_are_said(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "s")
    long = "once upon a time " * 3000 + "zebra crossing"
    with Record("tales", store=store, capture=False) as run:
        playhead.note("text", {"text": long})
        playhead.note("again", {"text": long})
        playhead.note("json", {"list": [{"number": n, "word": f"giraffe{n}"} for n in range(3000)]})
    index = TextIndex(store.root)
    assert len(places(index, '"zebra crossing"')) == 2
    hit = index.find('"zebra crossing"')[0]
    assert hit.snippet.endswith("zebra crossing")
    assert (hit.run, hit.kind) == (run.id, "note.added")
    assert len(places(index, "giraffe2999")) == 1
    index.close()


def test_of_a_very_large_value_the_beginning_is_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhead._limits.SEARCH_BLOB_BYTES_MAX", 100)
    FileStore(root).make_root()
    for form, content in (("text", "alpha " + "x" * 100 + " omega"), ("json", '["beta\\ngamma","' + "x" * 100 + '"]')):
        run = Timeline(root, 1 if form == "text" else 2)
        digest = FileStore(root).put_blob(content.encode())
        run.add("note.added", {"text": {"$blob": digest, "len": len(content), "as": form}})
    index = TextIndex(root)
    assert [len(places(index, word)) for word in ("alpha", "omega", "beta", "gamma")] == [1, 0, 1, 1]
    index.close()


def test_an_erasable_value_is_never_copied_into_the_search(root: Path, index: TextIndex) -> None:
    run = Timeline(root, 1).add("note.added", {"text": {"$commit": "c" * 64, "len": 6}})
    private = layout.private_dir(run.directory)
    private.mkdir()
    (private / ("c" * 64)).write_bytes(b"0" * 32 + b"secret")
    assert places(index, "secret") == []


# Questions.


@given(
    st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
    | st.text("ab \"*-()^:{}+,.ANDORT'", max_size=40)
)
def test_no_text_is_a_mistake_of_syntax(query: str) -> None:
    try:
        asked = search_words.read(query)
    except UsageError:
        return
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(texts, content='')")
    connection.execute("INSERT INTO words (rowid, texts) VALUES (1, 'a b')")
    connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (asked.expression(),)).fetchall()
    connection.close()


@pytest.mark.parametrize(
    "query", ["", "   ", '""', "*", "-", "()", "-only", '-"only this"', "😀", "\ud800", "a " * 3000]
)
def test_a_question_for_nothing_is_refused_with_a_hint(root: Path, index: TextIndex, query: str) -> None:
    with pytest.raises(UsageError) as caught:
        index.find(query)
    assert "that must" in caught.value.hint


def test_a_question_with_too_many_words_is_refused(index: TextIndex) -> None:
    many = " ".join(f"w{number}" for number in range(_limits.SEARCH_WORDS_MAX))
    assert index.find(many) == []
    with pytest.raises(UsageError, match="at most 32 words"):
        index.find(many + " more")


def test_pages_follow_each_other_without_gap_or_repetition(root: Path, index: TextIndex) -> None:
    for number in range(5):
        note(Timeline(root, number + 1), *["same word"] * 4)
    whole = places(index, "word")
    found: list[tuple[str, int]] = []
    before = None
    while page := index.find("word", 3, before):
        found += [(hit.run, hit.seq) for hit in page]
        before = page[-1].cursor
        note(Timeline(root, 100 + len(found)), "a newer word")  # does not shift what comes after
        index.catch_up()
    assert found == whole
    assert len(found) == 20
    for wrong in (
        "x",
        "run_1:2",
        f"{whole[0][0]}:x",
        f"{whole[0][0]}:-1",
        f"{whole[0][0]}:{2**23}",
        f"{whole[0][0]}:²",
    ):
        with pytest.raises(UsageError, match="no page"):
            index.find("word", 3, wrong)
    with pytest.raises(UsageError):
        index.find("word", 0)


def test_a_page_goes_on_where_its_run_is_gone(root: Path, index: TextIndex) -> None:
    runs = [note(Timeline(root, number + 1), "word") for number in range(3)]
    assert [run for run, _ in places(index, "word")] == [run.id for run in runs[::-1]]
    cursor = index.find("word", 2)[-1].cursor
    shutil.rmtree(runs[1].directory)
    assert places(index, "word", before=cursor) == [(runs[0].id, 1)]
    runs[1].note("pruned")
    assert places(index, "word", before=cursor) == [(runs[0].id, 1)]


def test_a_snippet_shows_the_place_and_marks_the_words(root: Path, index: TextIndex) -> None:
    note(
        Timeline(root, 1),
        f"{'lorem ipsum ' * 100}we could not\n  refund_order the customer {'dolor sit ' * 100}",
        "refund",
    )
    index.catch_up()
    assert [hit.seq for hit in index.find("refund")] == [2, 1]
    assert index.find("refund")[0].snippet == "refund"
    (long,) = index.find('"could not refund" customer')
    assert long.snippet.startswith("…")
    assert long.snippet.endswith("…")
    assert "could not refund_order the customer" in long.snippet
    assert len(long.snippet) <= _limits.SNIPPET_CHARACTERS_MAX
    assert [long.snippet[start:end] for start, end in long.marks] == ["could not refund", "customer"]
    assert (long.kind, long.seq) == ("note.added", 1)


def test_the_runs_that_hold_something_are_named_newest_first(root: Path, index: TextIndex) -> None:
    runs = [note(Timeline(root, number), "word", "word" if number % 2 else "other") for number in range(1, 6)]
    index.catch_up()
    assert index.runs_with("word") == [run.id for run in runs[::-1]]
    assert index.runs_with("other") == [runs[3].id, runs[1].id]


# Following the runs.


def test_what_is_appended_is_found_and_read_once(root: Path, index: TextIndex) -> None:
    run = note(Timeline(root, 1), "first")
    assert places(index, "first") == [(run.id, 1)]
    raw = line(run.id, run.seq, "note.added", {"text": "second"})
    run.append(raw[:-20])
    run.note("close")
    assert places(index, "second") == []
    run.append(raw[-20:])
    run.note("close")
    assert places(index, "second") == [(run.id, 2)]
    assert places(index, "first") == [(run.id, 1)]


def test_a_run_that_is_still_written_is_followed(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "s")
    index = TextIndex(store.root)
    with Record("live", store=store, capture=False):
        playhead.note("alpha")
        assert len(places(index, "alpha")) == 1
        playhead.note("beta")
        assert len(places(index, "beta")) == 1
        assert len(places(index, "alpha")) == 1
    index.close()


def test_pruned_and_deleted_runs_are_never_found(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "s")
    ids = []
    for _ in range(3):
        with Record("noted", store=store, capture=False) as run:
            playhead.note("word")
            ids.append(run.id)
    index = TextIndex(store.root)
    assert [run for run, _ in places(index, "word")] == ids[::-1]
    assert ids[1] is not None
    store.delete(ids[1])
    assert [hit.run for hit in index.find("word")] == [ids[2], ids[0]], "even before anybody caught up"
    assert index.runs_with("word") == [ids[2], ids[0]]
    shutil.rmtree(store.folder(str(ids[0])))  # which no journal tells of
    assert [hit.run for hit in index.find("word")] == [ids[2]]
    assert places(index, "word")[0][0] == ids[2]
    assert index.runs_with("word") == [ids[2]]
    index.close()


def test_a_run_that_was_written_anew_is_read_again(root: Path, index: TextIndex) -> None:
    run = note(Timeline(root, 1), "old words", "more")
    assert len(places(index, "old")) == 1
    first = run.path.read_bytes().splitlines(keepends=True)[0]
    run.path.write_bytes(first + line(run.id, 1, "note.added", {"text": "new words"}))
    assert index.find("old") == [], "not even where nobody noted it"
    assert [hit.seq for hit in index.find("words")] == [1]
    assert places(index, "new") == [(run.id, 1)]
    run.path.write_bytes(first)
    run.note("open")
    assert places(index, "words") == []


def test_a_run_that_comes_late_is_found_at_its_place(root: Path, index: TextIndex) -> None:
    runs = {number: note(Timeline(root, number), "word") for number in (1, 3)}
    index.catch_up()
    runs[2] = note(Timeline(root, 2), "word")  # unpacked, say
    assert places(index, "word") == [(runs[number].id, 1) for number in (3, 2, 1)]


def test_runs_of_one_millisecond_are_all_found(root: Path, index: TextIndex) -> None:
    for number in range(4):
        run = note(Timeline(root, number + 1), "word")
        text = run.path.read_bytes().replace(run.id.encode(), f"run_01hf7ydvn0000000000000000{number}".encode())
        run.path.write_bytes(text)
        run.directory.rename(run.directory.with_name(f"run_01hf7ydvn0000000000000000{number}"))
    layout.journal(root).unlink()
    assert len(places(index, "word")) == 4


def test_reading_can_be_limited_and_goes_on_where_it_stopped(
    root: Path, index: TextIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead._limits.SEARCH_BATCH_EVENTS", 5)
    for number in range(6):
        note(Timeline(root, number + 1), *["word"] * 8)
    looks, found = 0, [0]
    while not index.catch_up(0):
        looks += 1
        found.append(len(index.find("word")))
        assert looks < 100
    assert found == sorted(found)
    assert 0 < found[1] < found[-1]
    assert looks > 8
    assert len(index.find("word")) == 48
    assert index.find("word")[0].run == max(os.listdir(layout.runs_dir(root)))


def test_what_is_new_is_read_before_what_is_left_of_the_old(
    root: Path, index: TextIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead._limits.SEARCH_BATCH_EVENTS", 5)
    for number in range(6):
        note(Timeline(root, number + 1), *["word"] * 8)
    assert not index.catch_up(0)
    new = note(Timeline(root, 100), "brand new")
    assert not index.catch_up(0)
    assert [hit.run for hit in index.find("brand")] == [new.id]
    note(new, "word").note("close")
    assert index.catch_up()
    assert len(index.find("word")) == 49


def test_words_of_runs_that_are_gone_do_not_pile_up(
    root: Path, index: TextIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.store.search_follow._DEAD_MIN", 50)
    stays = note(Timeline(root, 1), "stays")
    gone = [note(Timeline(root, number), *["goes"] * 30) for number in (2, 3)]
    index.catch_up()
    with sqlite3.connect(layout.search(root)) as before:
        before.execute("CREATE TABLE mark (a)")
    before.close()
    for run in gone:
        shutil.rmtree(run.directory)
        run.note("pruned")
        index.catch_up()
    assert places(index, "stays") == [(stays.id, 1)]
    index.close()
    held = layout.search(root).read_bytes()
    assert b"stays" in held
    assert b"goes" not in held
    assert b"mark" not in held


# The file.


def test_asking_leaves_nothing_behind_in_a_folder_that_is_no_store(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for root in (folder, tmp_path / "nowhere"):
        with TextIndex(root) as index:
            assert index.catch_up()
            assert index.find("word") == []
    assert not (tmp_path / "nowhere").exists()
    assert list(folder.iterdir()) == []


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, 16384),
    "of somebody else": lambda path: path.write_bytes(b"hello " * 5000),
    "overwritten": lambda path: path.write_bytes(path.read_bytes()[:16384] + b"\xa5" * (path.stat().st_size - 16384)),
    "of an older form": lambda path: _run_sql(path, "PRAGMA user_version = 0"),
    "without a table": lambda path: _run_sql(path, "DROP TABLE lines"),
    "with other values": lambda path: _run_sql(path, "UPDATE runs SET bytes = 'x'"),
}


def _run_sql(path: Path, sql: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(sql)
    connection.close()


@pytest.mark.parametrize("opened", [True, False], ids=["while it is open", "before it is opened"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_damaged_or_gone_is_built_again(root: Path, damage: str, opened: bool) -> None:
    run = note(Timeline(root, 1), "word", *["other"] * 2000)
    path = layout.search(root)
    index = TextIndex(root)
    index.catch_up()
    if not opened or damage in ("overwritten", "cut"):
        index.close()  # what is in the memory of a connection cannot be damaged in the file
    DAMAGES[damage](path)
    note(run, "word")
    run.note("close")
    assert places(index, "word") == [(run.id, 2002), (run.id, 1)]
    assert path.stat().st_mode & 0o777 == 0o600
    index.close()


def test_a_store_that_cannot_be_written_is_searched_all_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = note(Timeline(root, 1), "word")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with TextIndex(root) as index:
        assert places(index, "word") == [(run.id, 1)]
    assert not layout.search(root).exists()


def test_the_file_of_a_newer_playhead_is_left_alone(root: Path) -> None:
    run = note(Timeline(root, 1), "word")
    with TextIndex(root) as index:
        index.catch_up()
    _run_sql(layout.search(root), "PRAGMA user_version = 99")
    before = layout.search(root).read_bytes()
    with TextIndex(root) as index:
        assert places(index, "word") == [(run.id, 1)]
    assert layout.search(root).read_bytes() == before


def test_the_file_can_be_built_again_on_demand(root: Path, index: TextIndex) -> None:
    run = note(Timeline(root, 1), "word")
    index.catch_up()
    _run_sql(layout.search(root), "CREATE TABLE mark (a)")
    index.rebuild()
    assert b"mark" not in layout.search(root).read_bytes()
    assert [(hit.run, hit.seq) for hit in index.find("word")] == [(run.id, 1)]


def test_a_good_file_is_opened_and_not_built_again(root: Path) -> None:
    run = note(Timeline(root, 1), "word")
    for time in range(3):
        with TextIndex(root) as index:
            assert places(index, "word") == [(run.id, 1)]
        if time == 0:
            _run_sql(layout.search(root), "CREATE TABLE mark (a)")
    assert b"mark" in layout.search(root).read_bytes()


def test_whoever_waits_too_long_is_told(root: Path, index: TextIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    note(Timeline(root, 1), "word")
    index.catch_up()
    index.close()
    monkeypatch.setattr("playhead._limits.INDEX_WAIT_S", 0.05)
    note(Timeline(root, 2), "word")
    other = sqlite3.connect(layout.search(root), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="updating the search"):
        index.catch_up()
    assert len(index.find("word")) == 1, "what was read is found meanwhile"
    other.close()


def test_processes_that_catch_up_at_once_read_every_line_once(root: Path) -> None:
    runs = [note(Timeline(root, number + 1), *["word"] * 300) for number in range(20)]
    processes = [
        subprocess.Popen(command(CATCH_UP, root), env=environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 4
    with TextIndex(root) as index:
        found = places(index, "word", 10_000)
    assert len(found) == len(set(found)) == 20 * 300
    assert {run for run, _ in found} == {run.id for run in runs}


def test_threads_share_one(root: Path, index: TextIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhead._limits.SEARCH_BATCH_EVENTS", 50)
    for number in range(10):
        note(Timeline(root, number + 1), *["word"] * 100)
    seen: list[list[Hit]] = []
    threads = [threading.Thread(target=index.catch_up) for _ in range(3)]
    threads += [threading.Thread(target=lambda: seen.append(index.find("word", 5000))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 5
    assert len(places(index, "word", 5000)) == 1000


def test_a_fork_opens_its_own(root: Path, index: TextIndex) -> None:
    note(Timeline(root, 1), "word")
    index.catch_up()
    child = os.fork()
    if child == 0:
        try:
            note(Timeline(root, 2), "word")
            os._exit(0 if len(places(index, "word")) == 2 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert len(places(index, "word")) == 2
