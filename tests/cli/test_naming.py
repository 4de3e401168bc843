"""What a command lists can be named to the next one."""

from __future__ import annotations

import pytest
from tests.cli.loops import record_loop

import playhead
from playhead.capture.record import Record
from playhead.errors import UsageError
from playhead.replay.onwards import answer_at
from playhead.store.reader import RunReader


def test_every_name_that_show_lists_is_accepted(ask, store):
    run = record_loop(store)
    listed = ask("show", run, "--json").json["timeline"]
    counted: dict[str, int] = {}
    for row in listed:
        if row["name"]:
            counted[row["name"]] = counted.get(row["name"], 0) + 1
            named = f"{row['name']}#{counted[row['name']]}"
            found = ask("show", run, "--at", named, "--json").json["seq"]
            assert found == (row["end_seq"] if row["kind"] in ("tool", "model") else row["seq"]), named
        if row["kind"] == "step":
            assert ask("show", run, "--step", row["name"], "--json").json["seq"] == row["end_seq"]
    assert counted["read_ticket"] == 2
    assert {"turn 1", "turn 2", "list_tickets"} <= counted.keys()
    for row in ask("stats", run, "--by", "step", "--json").json["groups"]:
        assert ask("show", run, "--step", row["name"]).code == 0


def test_points_of_the_timeline_are_named_too(ask, sample):
    for name, kind in (("repo.write", "policy.checked"), ("patch.diff", "artifact.created"), ("note.added", "note.")):
        assert f": {kind}" in ask("show", sample, "--at", name).out


def test_a_number_can_belong_to_the_name(ask, store):
    with playhead.record("r", store=store), playhead.step("fix #1842"):
        pass
    assert ask("show", "@last", "--at", "fix #1842", "--json").json["seq"] == 1
    assert ask("show", "@last", "--step", "fix #1842", "--json").json["seq"] == 2


def test_what_was_read_off_the_traffic_is_neither_run_alone_nor_edited(ask, store):
    run = record_loop(store)
    said = ask("replay", run, "--mode", "step", "--step", "turn 2")
    assert said.code == 2
    assert "turn 2 is no step of the program" in said.err
    reader = RunReader(playhead.load(run).store, run)
    tool = next(event.seq for event in reader.events() if event.kind == "tool.called")
    for seq in (tool, tool + 1):
        with pytest.raises(UsageError, match="was read off the traffic"):
            answer_at(reader, seq)


def test_a_name_counts_back_over_its_own_runs(ask, store, record):
    runs = [record(store, name) for name in ("a", "b", "a", "a", "b")]
    with Record("a", store=store, origin={"run": runs[2], "mode": "exact", "at": 3}):
        pass
    assert [playhead.load(f"a~{back}").id for back in range(3)] == [runs[3], runs[2], runs[0]]
    assert playhead.load("b~1").id == runs[1]
    said = ask("show", "a~3")
    assert (said.code, said.out) == (2, "")
    assert "There are not so many: `playhead ls --name a` lists them." in said.err


def test_where_only_other_runs_are_there_it_is_said_which_last_passes_over(ask, store):
    with Record("ci", store=store, origin={"mode": "import", "source": "junit"}):
        pass
    passes = "@last passes over replays, forks, child runs and what was imported. `playhead ls` lists all runs."
    for named in ("@last", "@last~0"):
        assert passes in ask("show", named).err
    assert f"There are not so many: {passes}" in ask("show", "@last~1").err


def test_a_run_of_exactly_that_name_comes_first(store, record):
    record(store, "a")
    named = record(store, "a~1")
    record(store, "a")
    assert playhead.load("a~1").id == named
    assert playhead.load("a~1~0").id == named


@pytest.mark.parametrize(("wrong", "right"), [("@lst", "@last"), ("@lats~1", "@last~1"), ("fix-logn~2", "fix-login~2")])
def test_what_was_mistyped_is_guessed(ask, sample, wrong, right):
    assert f"Did you mean {right}?" in ask("show", wrong).err


def test_below_the_folder_of_the_store_every_command_says_where_it_is(ask, sample, store, tmp_path, monkeypatch):
    monkeypatch.delenv("PLAYHEAD_DIR")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    hint = f"There are runs in {store}: add `--store {store}`."
    assert hint in ask("ls").out
    for arguments in (["show", "fix-login"], ["show", sample], ["diff", "@last", "@last"], ["audit", "fix-login"]):
        said = ask(*arguments)
        assert (said.code, hint in said.err) == (2, True), arguments
    assert ask("show", "fix-login", "--store", str(store)).code == 0
    assert not (tmp_path / "a" / "b" / ".playhead").exists()
