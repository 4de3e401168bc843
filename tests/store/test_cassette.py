"""A cassette holds everything, byte for byte, reads as the run does, and is the same file each time."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from tests.store.packed import FORMS, packed, record_family, record_rich

import playhead
from playhead import _limits
from playhead._api.packing import pack_run, unpack_file
from playhead._api.reading import Run
from playhead.capture.record import Record
from playhead.errors import Altered, BadCassette, BadName, MissingContent, RunNotFound, StoreError, UsageError
from playhead.store import layout
from playhead.store.cassettes.reading import Cassette
from playhead.store.family import children
from playhead.store.files import FileStore


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def everything(run: Run) -> list[Any]:
    return [event.data for event in run.events()]


def tree(root: Path) -> dict[str, bytes]:
    """Return every file of the runs and blobs below a store."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for folder in ("runs", "blobs")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }


def test_a_cassette_reads_as_the_run_does(store: FileStore, tmp_path: Path, form: str) -> None:
    run = record_rich(store)
    loaded = playhead.load(packed(run, tmp_path, form))
    assert (loaded.id, loaded.name, loaded.status, loaded.input) == (run.id, run.name, run.status, run.input)
    assert list(loaded.lines()) == list(run.lines())
    assert everything(loaded) == everything(run)
    assert loaded.event(3) == run.event(3)
    for name in ("patch.diff", "logs/[x].bin", "üñï x'.txt"):
        assert loaded.artifact(name) == run.artifact(name)
    assert loaded.playback().payload == {"fixed": True}
    assert loaded.readiness() == run.readiness()
    assert loaded.path is None
    told = loaded.verify(deep=True)
    assert (told.integrity.verdict, told.completeness.verdict, told.root_checked) == ("intact", "complete", True)


def test_the_same_run_gives_the_same_bytes(store: FileStore, tmp_path: Path, form: str) -> None:
    run, _ = record_family(store)
    first = pack_run(run, tmp_path / f"a{form}").file.read_bytes()
    assert pack_run(run, tmp_path / f"b{form}").file.read_bytes() == first


def test_what_is_unpacked_is_what_was_packed(store: FileStore, tmp_path: Path, form: str) -> None:
    run, family = record_family(store)
    file = packed(run, tmp_path, form)
    unpack_file(file, tmp_path / "other")
    other = FileStore(tmp_path / "other")
    assert sorted(other.runs()) == sorted([run.id, *family])
    there = tree(store.root)
    assert tree(other.root) == {
        name: data for name, data in there.items() if name.startswith("blobs/") or name.split("/")[1] in other.runs()
    }
    for id in other.runs():
        assert Run(other, id).verify(deep=True).completeness.verdict == "complete"
    again = pack_run(Run(other, run.id), tmp_path / f"again{form}").file
    assert again.read_bytes() == file.read_bytes()


def test_one_form_can_be_made_of_the_other(store: FileStore, tmp_path: Path) -> None:
    run, _ = record_family(store)
    zipped, lined = packed(run, tmp_path, FORMS[0]), packed(run, tmp_path, FORMS[1])
    assert pack_run(playhead.load(zipped), tmp_path / "x.cassette.jsonl").file.read_bytes() == lined.read_bytes()
    assert pack_run(playhead.load(lined), tmp_path / "x.cassette").file.read_bytes() == zipped.read_bytes()


def test_children_and_theirs_go_in_and_replays_do_not(store: FileStore, tmp_path: Path, form: str) -> None:
    run, family = record_family(store)
    assert children(store, run.id) == family
    loaded = playhead.load(packed(run, tmp_path, form))
    assert loaded.id == run.id
    assert sorted(loaded.store.runs()) == sorted([run.id, *family])
    child = playhead.load(family[0], store=loaded.store)
    assert everything(child) == everything(Run(store, family[0]))
    with pytest.raises(RunNotFound):
        loaded.store.lines("run_00000000000000000000000000")


def test_a_run_whose_first_line_cannot_be_read_is_nobodys_child(store: FileStore) -> None:
    run, family = record_family(store)
    layout.timeline(store.folder(family[1])).write_bytes(b'{"v":1,"run":\n')
    assert children(store, run.id) == family[:1]


def test_lines_can_be_read_in_a_review(store: FileStore, tmp_path: Path) -> None:
    run = record_rich(store)
    lines = packed(run, tmp_path, ".cassette.jsonl").read_bytes().splitlines()
    documents = [json.loads(line) for line in lines]
    head = documents[0]["runs"][0]["head"]
    events = len(list(run.lines()))
    assert (head["seq"], lines[1 : events + 1]) == (events - 1, list(run.lines()))
    assert lines[events].endswith(b'"hash":"%b"}' % head["hash"].encode())
    contents = documents[events + 1 : -1]
    forms = {form for content in contents for form in content if form in ("text", "json", "base64")}
    assert forms == {"text", "json", "base64"}
    patch = next(one for one in contents if one.get("names") == [f"{run.id}/artifacts/patch.diff"])
    assert patch["text"] == "--- a\n+++ b\n"
    assert documents[-1] == {"end": "cassette", "lines": len(lines) - 1}


def test_what_a_terminal_would_act_on_is_no_text(store: FileStore, tmp_path: Path) -> None:
    assert b"\\u001b" not in packed(record_rich(store), tmp_path, ".cassette.jsonl").read_bytes().split(b"\n")[-5:][0]
    lines = packed(record_rich(store), tmp_path / "..", ".cassette.jsonl").read_bytes()
    assert b'"text":"\\u0000' not in lines


def test_a_zip_is_one_for_every_program(store: FileStore, tmp_path: Path) -> None:
    run = record_rich(store)
    with ZipFile(packed(run, tmp_path, ".cassette")) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert archive.read(names[1]) == layout.timeline(store.folder(run.id)).read_bytes()
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names[:2] == ["cassette.json", f"timelines/{run.id}.jsonl"]
    assert names[2:] == sorted(names[2:])


def test_nothing_is_ever_written_to_a_cassette(store: FileStore, tmp_path: Path, form: str) -> None:
    file = packed(record_rich(store), tmp_path, form)
    before = file.read_bytes()
    loaded = playhead.load(file)
    with pytest.raises(StoreError, match="nothing is ever written to it"):
        loaded.invalidate("because")
    for write in (
        lambda: loaded.store.ledger(loaded.id),
        lambda: loaded.store.put_blob(b"x"),
        lambda: loaded.store.put_file(loaded.id, "artifacts/x", b"x"),
        lambda: loaded.store.delete(loaded.id),
    ):
        with pytest.raises(StoreError):
            write()
    assert file.read_bytes() == before


def test_files_are_asked_for_by_sound_names_only(store: FileStore, tmp_path: Path, form: str) -> None:
    loaded = playhead.load(packed(record_rich(store), tmp_path, form))
    for name in ("artifacts/../x", "/etc/passwd", "timeline.jsonl"):
        with pytest.raises(BadName):
            loaded.store.file(loaded.id, name)
    with pytest.raises(MissingContent):
        loaded.store.file(loaded.id, "artifacts/none.txt")
    with pytest.raises(MissingContent):
        loaded.store.blob("0" * 64)


def test_no_file_stays_open(store: FileStore, tmp_path: Path, form: str) -> None:
    file = packed(record_rich(store), tmp_path, form)
    before = os.listdir("/proc/self/fd")
    loaded = playhead.load(file)
    assert everything(loaded)
    assert os.listdir("/proc/self/fd") == before


# What is packed


def test_it_is_pinned_to_the_head_it_had(store: FileStore, tmp_path: Path, form: str) -> None:
    run = record_rich(store)
    file = packed(run, tmp_path, form)
    run.invalidate("found to be wrong")
    assert playhead.load(file).readiness().replayable
    later = pack_run(run, tmp_path / f"later{form}")
    assert "manually_invalidated" in playhead.load(later.file).readiness().reasons
    assert later.header.runs[0].head.seq == len(list(run.lines())) - 1


def test_an_unfinished_run_is_packed_only_when_asked_and_says_so(store: FileStore, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"x{form}"
    with Record("open", store=store, capture=False) as recording:
        playhead.note("here")
        assert recording.id is not None
        run = Run(store, recording.id)
        with pytest.raises(UsageError, match="is still running") as refused:
            pack_run(run, file)
        assert "--unfinished" in refused.value.hint
        assert not file.exists()
        done = pack_run(run, file, unfinished=True)
        playhead.note("after")
    assert [taped.finished for taped in done.header.runs] == [False]
    loaded = playhead.load(file)
    assert loaded.verify().completeness.verdict == "unfinished"
    assert [event.data["text"] for event in loaded.events() if event.kind == "note.added"] == ["here"]


def test_a_child_without_an_end_counts_too(store: FileStore, tmp_path: Path) -> None:
    run, family = record_family(store)
    timeline = layout.timeline(store.folder(family[1]))
    timeline.write_bytes(b"".join(timeline.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(UsageError, match=f"{family[1]}, which {run.id} started, did not finish"):
        pack_run(run, tmp_path / "x.cassette")


def test_a_torn_tail_stays_behind(store: FileStore, tmp_path: Path, form: str) -> None:
    run = record_rich(store)
    timeline = layout.timeline(store.folder(run.id))
    whole = timeline.read_bytes()
    timeline.write_bytes(whole[:-30])
    done = pack_run(run, tmp_path / f"x{form}", unfinished=True)
    assert b"".join(line + b"\n" for line in playhead.load(done.file).lines()) == whole[: whole[:-1].rindex(b"\n") + 1]


def test_a_line_that_was_set_aside_goes_in(store: FileStore, tmp_path: Path, form: str) -> None:
    run = record_rich(store)
    timeline = layout.timeline(store.folder(run.id))
    torn = timeline.read_bytes()[:-30]
    timeline.write_bytes(torn)
    run.invalidate("the next writer sets the torn line aside")
    gap = next(event for event in run.events() if event.kind == "gap.noted")
    done = pack_run(run, tmp_path / f"x{form}", unfinished=True)
    aside = gap.data["detail"]["blob"]
    assert torn.endswith(playhead.load(done.file).store.blob(aside))
    unpack_file(done.file, tmp_path / "other")
    assert FileStore(tmp_path / "other").blob(aside)
    layout.blob(store.root, aside).unlink()
    assert playhead.load(pack_run(run, tmp_path / f"y{form}", unfinished=True).file).id == run.id


def test_a_blob_that_only_the_agent_named_does_not_go_in(store: FileStore, tmp_path: Path) -> None:
    store.make_root()
    other = store.put_blob(b"of another run, and none of this one's business")
    with Record("curious", store=store, capture=False) as recording:
        playhead.note("mine", {"blob": other, "$blob": other, "text": f'{{"$blob":"{other}","len":1,"as":"json"'})
    assert recording.id is not None
    done = pack_run(Run(store, recording.id), tmp_path / "x.cassette.jsonl")
    assert b"none of this one" not in done.file.read_bytes()


@pytest.mark.parametrize("what", ["line", "blob", "artifact", "tail"])
def test_a_run_that_was_altered_is_not_packed(store: FileStore, tmp_path: Path, what: str) -> None:
    run = record_rich(store)
    folder = store.folder(run.id)
    playhead.load(run.id, store=store.root).verify()
    if what == "tail":
        from playhead._api.reading import open_index

        with open_index(store) as index:
            index.list_runs()
        path = layout.timeline(folder)
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    else:
        blobs = sorted((store.root / "blobs").rglob("?" * 64))
        path = {"line": layout.timeline(folder), "blob": blobs[0], "artifact": folder / "artifacts" / "patch.diff"}[
            what
        ]
        path.write_bytes(path.read_bytes().replace(path.read_bytes()[5:6], b"~", 1))
    with pytest.raises(Altered, match="is not packed"):
        pack_run(run, tmp_path / "x.cassette", unfinished=True)
    assert list(tmp_path.glob("*.cassette")) == []


def test_a_run_that_lacks_something_is_not_packed(store: FileStore, tmp_path: Path) -> None:
    run = record_rich(store)
    (store.folder(run.id) / "artifacts" / "patch.diff").unlink()
    with pytest.raises(MissingContent, match=r"patch\.diff is gone"):
        pack_run(run, tmp_path / "x.cassette")


# The file


def test_it_is_readable_for_all_and_nothing_else_is_left(store: FileStore, tmp_path: Path, form: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    before = os.umask(0o077)
    try:
        file = packed(record_rich(store), folder, form)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(folder.iterdir()) == [file]


def test_a_file_that_is_there_stays_unless_forced(store: FileStore, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"x{form}"
    file.write_bytes(b"mine")
    run = record_rich(store)
    with pytest.raises(UsageError, match="there already"):
        pack_run(run, file)
    assert file.read_bytes() == b"mine"
    pack_run(run, file, force=True)
    assert playhead.load(file).id == run.id


@pytest.mark.parametrize("name", ["x.zip", "x.jsonl", ".cassette", "none/x.cassette", "folder.cassette"])
def test_a_target_that_cannot_be_one_is_refused(store: FileStore, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.cassette").mkdir()
    with pytest.raises(UsageError):
        pack_run(record_rich(store), tmp_path / name, force=True)


def test_what_fails_leaves_the_old_file(store: FileStore, tmp_path: Path, form: str, monkeypatch: Any) -> None:
    run = record_rich(store)
    file = packed(run, tmp_path, form)
    before = file.read_bytes()
    monkeypatch.setattr(_limits, "CASSETTE_BYTES_MAX", 1000)
    with pytest.raises(BadCassette, match=r"packed.*is not written: its parts have more than 1,000 bytes"):
        pack_run(run, file, force=True)
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, "store"]


def test_what_compresses_too_well_is_not_compressed(store: FileStore, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(_limits, "CASSETTE_RATIO_BYTES_MIN", 1000)
    with Record("zeros", store=store, capture=False) as recording:
        playhead.artifact("zeros.bin", bytes(3_000_000))
    assert recording.id is not None
    done = pack_run(Run(store, recording.id), tmp_path / "x.cassette")
    assert done.bytes > 3_000_000
    assert playhead.load(done.file).artifact("zeros.bin") == bytes(3_000_000)


# Unpacking


def test_the_same_run_again_is_fine_and_mends_blobs(store: FileStore, tmp_path: Path, form: str) -> None:
    run = record_rich(store)
    file = packed(run, tmp_path, form)
    before = tree(store.root)
    next(iter((store.root / "blobs").rglob("?" * 64))).unlink()
    (placed,) = unpack_file(file, store.root).runs
    assert (placed.there, placed.more) == (True, 0)
    assert tree(store.root) == before
    run.invalidate("later")
    (placed,) = unpack_file(file, store.root).runs
    assert (placed.there, placed.more) == (True, 1)
    assert "manually_invalidated" in run.readiness().reasons


@pytest.mark.parametrize("what", ["shorter", "edited", "artifact", "gone", "empty"])
def test_another_record_of_that_id_is_never_touched(store: FileStore, tmp_path: Path, what: str, form: str) -> None:
    run, family = record_family(store)
    file = packed(run, tmp_path, form)
    folder = store.folder(family[0])
    timeline, patch = layout.timeline(folder), folder / "artifacts" / "patch.diff"
    match what:
        case "shorter":
            timeline.write_bytes(b"".join(timeline.read_bytes().splitlines(keepends=True)[:-1]))
        case "edited":
            timeline.write_bytes(timeline.read_bytes().replace(b"rich", b"poor"))
        case "artifact":
            patch.write_bytes(b"forged")
        case "gone":
            patch.unlink()
        case "empty":
            timeline.unlink()
    store.delete(run.id)
    before = tree(store.root)
    with pytest.raises(StoreError) as refused:
        unpack_file(file, store.root)
    assert "--store" in refused.value.hint
    assert tree(store.root) == before, "not even the runs that are not there"


def test_an_unpacked_run_is_found_by_name_at_once(store: FileStore, tmp_path: Path, form: str) -> None:
    run = record_rich(store)
    file = packed(run, tmp_path, form)
    assert playhead.runs(store=store.root)
    store.delete(run.id)
    assert playhead.runs(store=store.root) == []
    unpack_file(file, store.root)
    assert playhead.load("rich", store=store.root).id == run.id
    assert playhead.verify(playhead.load("@last", store=store.root)).integrity.verdict == "intact"


def test_what_a_killed_unpack_left_is_removed_by_the_next(store: FileStore, tmp_path: Path) -> None:
    run = record_rich(store)
    file = packed(run, tmp_path, ".cassette")
    left = layout.unpacked_dir(tmp_path / "other", run.id, "dead")
    FileStore(tmp_path / "other").make_root()
    left.mkdir()
    (left / "half").write_bytes(b"x")
    unpack_file(file, tmp_path / "other")
    assert not left.exists()
    assert os.listdir(tmp_path / "other" / "runs") == [run.id]


def test_what_fails_in_the_middle_leaves_no_half_of_a_run(store: FileStore, tmp_path: Path, monkeypatch: Any) -> None:
    run = record_rich(store)
    file = packed(run, tmp_path, ".cassette")
    monkeypatch.setattr(Cassette, "file", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        unpack_file(file, tmp_path / "other")
    assert os.listdir(tmp_path / "other" / "runs") == []
    monkeypatch.undo()
    unpack_file(file, tmp_path / "other")
    assert os.listdir(tmp_path / "other" / "runs") == [run.id]


def test_a_newer_store_is_not_written(store: FileStore, tmp_path: Path) -> None:
    file = packed(record_rich(store), tmp_path, ".cassette")
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "format").write_text("99\n")
    with pytest.raises(StoreError, match="format 99"):
        unpack_file(file, tmp_path / "newer")
    assert os.listdir(tmp_path / "newer") == ["format"]
