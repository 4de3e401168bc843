from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

from tests.ledger.timelines import hash_of, resealed

import playhead


def test_the_index_is_built_again_and_says_how_many_runs(ask, store, record):
    ids = [record(store) for _ in range(3)]
    said = ask("reindex")
    assert said.code == 0
    assert said.out.startswith("indexed 3 runs in ")
    assert [run["id"] for run in ask("ls", "--json").json] == ids[::-1]
    assert ask("reindex", "--json").json["runs"] == 3


def test_a_run_that_was_copied_in_by_hand_is_found(ask, store, record, tmp_path):
    record(store)
    ask("ls")
    brought = record(tmp_path / "other")
    shutil.copytree(tmp_path / "other" / "runs" / brought, store / "runs" / brought)
    assert len(ask("ls", "--json").json) == 1
    assert ask("reindex", "--json").json["runs"] == 2
    assert len(ask("ls", "--json").json) == 2


def test_an_index_full_of_rubbish_is_replaced(ask, store, sample):
    (store / "playhead.db").write_bytes(b"rubbish" * 1000)
    assert ask("reindex", "--json").json["runs"] == 1
    assert (store / "playhead.db").read_bytes().startswith(b"SQLite format 3")


def test_without_a_store_nothing_is_made(ask, store):
    assert ask("reindex").code == 2
    assert not store.exists()


def reseal(timeline: Path, **changes: Any) -> None:
    """Write a whole chain anew with another event 2, as somebody who knows the format can."""
    lines = timeline.read_bytes().splitlines(keepends=True)
    lines[2] = resealed(lines[2], **changes)
    for number in range(3, len(lines)):
        lines[number] = resealed(lines[number], prev=hash_of(lines[number - 1]))
    timeline.write_bytes(b"".join(lines))


def test_a_run_that_was_written_anew_is_named_and_stays_broken(ask, store, record):
    forged, sound = record(store), record(store)
    timeline = store / "runs" / forged / "timeline.jsonl"
    original = timeline.read_bytes()
    ask("ls")
    reseal(timeline, data={"text": "forged"})
    assert "rewritten" in ask("verify", forged).out
    for _ in range(2):  # nothing is forgotten the second time either
        said = ask("reindex")
        assert said.code == 1
        assert f"{forged}: it was written anew: event " in said.err
        assert sound not in said.err
        assert ask("verify", forged, "--json").json["integrity"]["reason"] == "rewritten"
        assert ask("verify", "--all").code == 1
    assert [one["run"] for one in ask("reindex", "--json").json["altered"]] == [forged]
    timeline.write_bytes(original)
    assert ask("reindex").code == 0
    assert ask("verify", "--all").code == 0


def test_a_run_that_was_cut_or_removed_is_named_and_remembered(ask, store, record):
    cut, emptied, gone, grown = (record(store) for _ in range(4))
    ask("ls")
    timeline = store / "runs" / cut / "timeline.jsonl"
    timeline.write_bytes(b"".join(timeline.read_bytes().splitlines(keepends=True)[:-3]))
    (store / "runs" / emptied / "timeline.jsonl").write_bytes(b"")
    shutil.rmtree(store / "runs" / gone)
    playhead.load(grown, store).invalidate("why not")
    said = ask("reindex")
    assert said.code == 1
    assert f"{cut}: its end was cut off" in said.err
    assert f"{emptied}: its end was cut off" in said.err
    assert f"{gone}: it is gone" in said.err
    assert grown not in said.err
    for run in (cut, emptied):
        assert ask("verify", run, "--json").json["completeness"]["verdict"] == "missing"
    found = {one["run"]: one["completeness"]["verdict"] for one in ask("verify", "--all", "--json").json["runs"]}
    assert found == {cut: "missing", emptied: "missing", gone: "missing", grown: "complete"}


def test_what_was_seen_is_forgotten_when_asked(ask, store, record):
    forged, gone = record(store), record(store)
    ask("ls")
    reseal(store / "runs" / forged / "timeline.jsonl", data={"text": "forged"})
    shutil.rmtree(store / "runs" / gone)
    assert ask("reindex").code == 1
    assert ask("reindex", "--forget").code == 0
    assert ask("verify", "--all").code == 0


def test_a_run_that_was_pruned_is_not_missed(ask, store, record):
    removed, _ = record(store), record(store)
    ask("ls")
    playhead.load(removed, store).store.delete(removed)
    assert ask("reindex").code == 0
    assert ask("verify", "--all").code == 0


def test_a_store_that_was_put_back_from_an_older_backup_is_taken_as_it_is_when_asked(ask, store, record, tmp_path):
    run = record(store)
    shutil.copytree(store / "runs", tmp_path / "backup")
    playhead.load(run, store).invalidate("why not")
    lost = record(store)
    ask("ls")
    shutil.rmtree(store / "runs")
    shutil.copytree(tmp_path / "backup", store / "runs")
    for argv, named in ((("verify", run), "cut tail"), (("verify", "--all"), f"{lost}")):
        said = ask(*argv)
        assert said.code == 1
        assert named in said.out
        assert "`playhead reindex --forget` takes the runs as they are" in said.out
    assert ask("reindex", "--forget").code == 0
    assert ask("verify", "--all").code == 0


def test_an_index_of_a_newer_playhead_that_cannot_forget_says_so(ask, store, record):
    gone = record(store)
    ask("ls")
    connection = sqlite3.connect(store / "playhead.db")
    connection.execute("INSERT INTO migrations VALUES ('9999_later', '')")
    connection.commit()
    connection.close()
    shutil.rmtree(store / "runs" / gone)
    assert ask("verify", "--all").code == 1
    said = ask("reindex", "--forget")
    assert "it forgets nothing" in said.err
    assert "delete the file" in said.err
    (store / "playhead.db").unlink()
    assert ask("verify", "--all").code == 0


def test_one_changed_digit_in_the_index_stops_neither_verify_nor_replay(ask, store, record):
    run = record(store)
    ask("ls")
    connection = sqlite3.connect(store / "playhead.db")
    connection.execute("UPDATE runs SET head_hash = 'f' || substr(head_hash, 2) WHERE substr(head_hash, 1, 1) != 'f'")
    connection.execute("UPDATE runs SET head_hash = 'e' || substr(head_hash, 2) WHERE changes() = 0")
    connection.commit()
    connection.close()
    for argv in (("verify", run), ("verify", "--all"), ("replay", run), ("reindex",)):
        assert ask(*argv).code == 0, argv


def test_showing_another_run_does_not_hide_that_the_last_one_was_removed(ask, store, record):
    record(store)
    removed = record(store)
    ask("ls")
    shutil.rmtree(store / "runs" / removed)
    for argv in (("verify", "--all"), ("show", "@last"), ("verify", "--all"), ("reindex",), ("verify", "--all")):
        said = ask(*argv)
        assert said.code == (0 if argv[0] == "show" else 1), argv
    assert "the run directory is gone" in said.out
