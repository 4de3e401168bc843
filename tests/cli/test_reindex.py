from __future__ import annotations

import shutil


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
