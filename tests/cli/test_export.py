from __future__ import annotations

import csv
import io
import json

import pytest

import playhead
from playhead.ledger.verify import verify


def test_jsonl_is_byte_for_byte_the_timeline_and_verifies(shell, sample, store, tmp_path):
    timeline = (store / "runs" / sample / "timeline.jsonl").read_bytes()
    assert shell("export", sample).out.encode() == timeline
    target = tmp_path / "out.jsonl"
    said = shell("export", sample, "-o", str(target), "--json")
    assert target.read_bytes() == timeline
    assert said.json["bytes"] == len(timeline)
    assert said.json["events"] == len(timeline.splitlines())
    with target.open("rb") as file:
        assert verify(iter(file), sample).completeness.verdict == "complete"


def test_a_torn_tail_is_exported_too(shell, sample, store):
    timeline = store / "runs" / sample / "timeline.jsonl"
    torn = timeline.read_bytes()[:-40]
    timeline.write_bytes(torn)
    assert shell("export", sample).out.encode() == torn


def test_json_holds_every_value_as_it_was(ask, sample, store, record):
    other = record(store, issue=7)
    document = ask("export", sample, other, "--format", "json").json
    assert [run["id"] for run in document["runs"]] == [sample, other]
    events = document["runs"][0]["events"]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert "$same" not in json.dumps(events)
    assert "$extends" not in json.dumps(events)
    second = [event for event in events if event["kind"] == "model.invoked"][1]
    assert second["data"]["request"]["messages"][0]["content"] == "Please fix the login. " * 30
    assert ask("export", sample, "--json").json["runs"][0]["id"] == sample


def test_resolved_lines_say_the_same_in_full(ask, sample):
    lines = [json.loads(line) for line in ask("export", sample, "--resolve").out.splitlines()]
    assert [line["data"] for line in lines] == [event.data for event in playhead.load(sample).events()]


def test_fields_of_a_newer_playhead_survive(ask, store, sample):
    timeline = store / "runs" / sample / "timeline.jsonl"
    line = json.loads(timeline.read_text().splitlines()[1])
    newer = {**line, "novelty": 1, "data": {**line["data"], "new": {"$same": "0#/name"}}}
    timeline.write_text(json.dumps(newer) + "\n")
    event = ask("export", sample, "--format", "json").json["runs"][0]["events"][0]
    assert event["novelty"] == 1


def test_csv_has_a_row_for_each_event_and_no_formula(ask, store):
    with playhead.record("=cmd|' /C calc'!A0", store=store), playhead.step("@SUM(A1)"):
        playhead.note("-2+3")
    rows = list(csv.DictReader(io.StringIO(ask("export", "@last", "--format", "csv").out)))
    kinds = [row["kind"] for row in rows]
    assert kinds == ["run.started", "step.started", "note.added", "step.finished", "run.finished"]
    assert rows[0]["name"] == "'=cmd|' /C calc'!A0"
    assert rows[1]["name"] == "'@SUM(A1)"
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert json.loads(rows[2]["data"]) == {"text": "-2+3"}
    assert rows[3]["status"] == "ok"


def test_a_failed_export_leaves_no_file(ask, sample, store, tmp_path):
    timeline = store / "runs" / sample / "timeline.jsonl"
    lines = timeline.read_bytes().splitlines(keepends=True)
    timeline.write_bytes(b"".join(lines[:5]) + b"garbage\n")
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "out.json"
    target.write_text("before")
    assert ask("export", sample, "--format", "json", "-o", str(target)).code == 3
    assert target.read_text() == "before"
    assert list(folder.iterdir()) == [target]


def test_a_line_that_is_none_never_ends_up_in_a_document(ask, sample, store):
    (store / "runs" / sample / "timeline.jsonl").write_bytes(b"garbage without a reference\n")
    assert ask("export", sample, "--format", "json").code == 3


def test_json_and_csv_do_not_share_stdout(ask, sample):
    assert ask("export", sample, "--format", "csv", "--json").code == 2


@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_an_altered_run_is_exported_with_a_warning(ask, store, record, tmp_path, form):
    sound, altered = record(store), record(store)
    timeline = store / "runs" / altered / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b"boo", b"foo"))
    for more in ([], ["-o", str(tmp_path / "out")]):
        said = ask("export", sound, altered, "--format", form, *more)
        assert said.code == 0
        assert said.err.count("this record was altered: event 12 (line 13 of timeline.jsonl)") == 1
        assert f"`playhead verify {altered}` says more" in said.err


def test_half_a_line_stands_only_at_the_end_of_an_export(ask, store, record, tmp_path):
    torn, whole = record(store), record(store)
    timeline = store / "runs" / torn / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes()[:-40])
    target = tmp_path / "two.jsonl"
    ask("export", torn, whole, "-o", str(target))
    assert [run["integrity"]["verdict"] for run in ask("verify", str(target), "--json").json["runs"]] == ["intact"] * 2
