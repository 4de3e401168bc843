from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

import playhead

PROGRAM = """
import os, random, sys, threading, time
now = time.time()
name = os.environ.get("SAMPLE")
sys.stdout.write(repr(now) + "\\n")
sys.stdout.flush()
open("made.txt", "w").close()
threads = [threading.Thread(target=lambda: time.time_ns()) for _ in range(2)]
for thread in threads:
    thread.start()
    thread.join()
text = open("given.txt").read()
os.urandom(6)
"""
TEXT = "a line of the file that was given\n" * 100


@pytest.fixture
def recorded(shell: Callable[..., Any], store, tmp_path) -> str:
    """Record a program that reads a bit of everything, and give what it printed: the time."""
    (tmp_path / "given.txt").write_text(TEXT)
    (tmp_path / "program.py").write_text(PROGRAM)
    said = shell("record", "--quiet", "--", sys.executable, "program.py", env={"SAMPLE": "blue"})
    assert said.code == 0, said.err
    return str(said.out).strip()


def test_reads_are_told_in_one_line_each_with_their_lane_and_module(ask, recorded):
    lines = ask("show", "@last", "--reads").out.splitlines()
    assert any(f"0       time.time → {recorded}  ← __main__" in line for line in lines)
    assert any('os.environ → {SAMPLE: "blue"}  ← __main__' in line for line in lines)
    assert [line.split()[-2:] for line in lines if "lane.ended" in line] == [["0.1", "ok"], ["0.2", "ok"]]


def test_a_long_value_is_cut_at_the_edge_and_whole_in_json(ask, recorded, tmp_path):
    (line,) = ask("show", "@last", "--reads", "--source", "open").out.splitlines()
    assert len(line) <= 100
    assert f"{tmp_path}/given.txt"[:20] in line
    assert "…  ← __main__" in line
    (found,) = ask("show", "@last", "--reads", "--source", "open", "--json").json
    assert set(found) == {"seq", "lane", "of", "by", "via", "value"}
    assert found["value"]["content"] == TEXT


def test_reads_can_be_chosen_by_source_lane_and_what_they_hold(ask, recorded):
    def of(*options: str) -> list[str]:
        return [read["of"] for read in ask("show", "@last", "--reads", "--json", *options).json]

    assert of("--source", "environ") == ["os.environ"]
    assert of("--lane", "0.2") == ["time.time_ns"]
    assert of("--lane", "0", "--source", "time.time") == ["time.time"]
    assert of("--grep", "that was given") == ["open"]
    assert of("--grep", recorded) == ["time.time"]
    assert of("--grep", "blue", "--lane", "0.1") == []
    assert "time.time" in of("--grep", "__main__")


def test_the_reads_of_one_event_are_those_of_that_event(ask, recorded):
    everything = ask("show", "@last", "--reads", "--json").json
    seqs = sorted({read["seq"] for read in everything})
    assert len(seqs) > 2
    for seq in seqs:
        found = ask("show", "@last", "--reads", "--event", str(seq), "--json").json
        assert found == [read for read in everything if read["seq"] == seq]
    until = ask("show", "@last", "--reads", "--at", str(seqs[1]), "--json").json
    assert until == [read for read in everything if read["seq"] <= seqs[1]]


def test_an_event_without_reads_says_so(ask, recorded):
    said = ask("show", "@last", "--reads", "--event", "0")
    assert (said.code, said.out) == (0, "")
    assert "event 0 is run.started and holds no reads" in said.err
    assert ask("show", "@last", "--reads", "--event", "0", "--json").json == []


def test_a_filter_that_nothing_fits_is_told_apart_from_a_run_without_reads(ask, recorded, store):
    assert "none of what was read is like that" in ask("show", "@last", "--reads", "--grep", "no such text").err
    with playhead.record("nothing", store=store):
        pass
    assert "holds no reads" in ask("show", "nothing", "--reads").err


def test_the_limit_holds_for_reads_and_says_that_there_are_more(ask, recorded):
    said = ask("show", "@last", "--reads", "--limit", "2")
    assert len(said.out.splitlines()) == 3
    assert "--limit 0 shows all" in said.out
    assert len(ask("show", "@last", "--reads", "--limit", "2", "--json").json) == 2
    exact = ask("show", "@last", "--reads", "--lane", "0.1", "--limit", "1")
    assert "--limit" not in exact.out


def test_bytes_are_marked_in_json(ask, recorded):
    (found,) = ask("show", "@last", "--reads", "--source", "os.urandom", "--json").json
    assert list(found["value"]) == ["$bytes"]
    assert json.dumps(found)


@pytest.mark.parametrize("option", ["--source", "--lane", "--grep"])
def test_a_filter_of_reads_without_reads_is_a_usage_error(ask, sample, option):
    said = ask("show", "@last", option, "x")
    assert said.code == 2
    assert "Add `--reads`" in said.err


def test_files_that_are_too_much_for_a_line_are_still_named_in_the_timeline(ask, store, tmp_path):
    names = [f"in{number}.txt" for number in range(5)]
    for name in names:
        (tmp_path / name).write_text(name * 2000)
    playhead.install()
    try:
        with playhead.record("many", store=store):
            for name in names:
                (tmp_path / name).read_text()
    finally:
        playhead.uninstall()
    assert any("read in0.txt, in1.txt, in2.txt" in line for line in ask("show", "many").out.splitlines())
