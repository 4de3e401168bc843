from __future__ import annotations

import shutil
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
