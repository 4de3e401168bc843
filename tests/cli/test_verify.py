from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import playhead


def timeline_of(store: Path, run: str) -> Path:
    return store / "runs" / run / "timeline.jsonl"


def test_an_intact_and_complete_run_is_a_yes_with_three_claims(shell, sample):
    said = shell("verify", "@last")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].split() == [sample, "self-consistent"]
    assert [line.split()[:2] for line in lines[1:]] == [
        ["integrity", "intact"], ["completeness", "complete"], ["fidelity", "not"],
    ]  # fmt: skip


def test_json_has_the_documented_shape(ask, sample):
    found = ask("verify", sample, "--json").json
    assert found["run"] == sample
    assert found["level"] == "self-consistent"
    assert {"verdict", "at", "reason"} <= set(found["integrity"])
    assert found["integrity"]["verdict"] == "intact"
    assert set(found["completeness"]) == {"verdict", "detail"}
    assert found["fidelity"] == {"verdict": "not_compared"}


def test_an_edited_line_is_a_no_that_names_event_and_line(shell, sample, store):
    timeline = timeline_of(store, sample)
    timeline.write_bytes(timeline.read_bytes().replace(b"src/login.py", b"src/logon.py", 1))
    said = shell("verify", sample)
    assert said.code == 1
    assert "broken       edited: event 4 (line 5 of timeline.jsonl) was edited" in said.out
    assert "completeness not judged   the chain is broken at event 4" in said.out
    found = shell("verify", sample, "--json")
    assert found.code == 1
    assert (found.json["integrity"]["verdict"], found.json["integrity"]["at"]) == ("broken", 4)
    assert found.json["completeness"]["verdict"] == "unfinished"


def test_a_deleted_artifact_is_missing(ask, sample, store):
    (store / "runs" / sample / "artifacts" / "patch.diff").unlink()
    said = ask("verify", sample, "--json")
    assert said.code == 1
    assert said.json["completeness"]["verdict"] == "missing"
    assert said.json["integrity"]["verdict"] == "intact"


def test_a_cut_run_that_nobody_remembers_could_not_be_told(ask, sample, store, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(store / "runs" / sample, copy)
    lines = timeline_of(store, sample).read_bytes().splitlines(keepends=True)
    (copy / "timeline.jsonl").write_bytes(b"".join(lines[:-1]))
    said = ask("verify", str(copy), "--json")
    assert said.code == 3
    assert said.json["completeness"]["verdict"] == "unfinished"


def test_a_cut_run_that_the_index_remembers_is_missing(ask, sample, store):
    ask("ls")
    lines = timeline_of(store, sample).read_bytes().splitlines(keepends=True)
    timeline_of(store, sample).write_bytes(b"".join(lines[:-3]))
    assert ask("verify", sample, "--json").json["completeness"]["verdict"] == "missing"
    assert ask("verify", "--all").code == 1


def test_a_directory_with_an_empty_a_garbage_or_no_timeline_gets_the_verify_shape(ask, sample, store, tmp_path):
    for content, code in ((b"", 3), (b"\x00\xff garbage \n" * 9, 1), (b"not even a line", 3), (None, 1)):
        copy = tmp_path / f"damaged-{code}-{len(content or '')}"
        shutil.copytree(store / "runs" / sample, copy)
        if content is None:
            (copy / "timeline.jsonl").unlink()
        else:
            (copy / "timeline.jsonl").write_bytes(content)
        said = ask("verify", str(copy), "--json")
        assert said.code == code, content
        assert {"run", "level", "integrity", "completeness", "fidelity"} <= set(said.json)
        assert ask("verify", str(copy)).code == code


def test_all_runs_are_judged_and_the_store_is_summed_up(ask, store, record):
    intact, edited, gone, emptied = (record(store) for _ in range(4))
    assert ask("verify", "--all").code == 0
    timeline = timeline_of(store, edited)
    timeline.write_bytes(timeline.read_bytes().replace(b"src/login.py", b"src/logon.py", 1))
    shutil.rmtree(store / "runs" / gone)
    timeline_of(store, emptied).unlink()
    said = ask("verify", "--all", "--json")
    assert said.code == 1
    found = {run["run"]: run for run in said.json["runs"]}
    assert found[intact]["integrity"]["verdict"] == "intact"
    assert found[edited]["integrity"]["at"] == 4
    assert "the run directory is gone" in found[gone]["completeness"]["detail"]
    assert found[emptied]["completeness"]["verdict"] == "missing"
    about = said.json["store"]
    assert (about["runs"], about["format"]) == (4, 1)
    assert about["integrity"] == {"intact": 1, "broken": 3}
    assert sum(about["completeness"].values()) == 4
    shown = ask("verify", "--all").out
    assert "4 runs: 1 intact and complete, 3 broken or missing" in shown


def test_an_unfinished_run_makes_all_of_the_store_a_could_not_tell(ask, store, sample):
    with playhead.record("open", store=store):
        assert ask("verify", "--all").code == 3
    assert ask("verify", "--all").code == 0


def test_deep_recomputes_the_root(ask, sample):
    assert ask("verify", sample, "--json").json["root_checked"] is False
    assert ask("verify", sample, "--deep", "--json").json["root_checked"] is True


def test_several_runs_are_judged_one_after_the_other(ask, store, record):
    ids = [record(store), record(store)]
    assert [run["run"] for run in ask("verify", *ids, "--json").json["runs"]] == ids
    assert ask("verify", *ids).out.count("integrity") == 2


def test_nothing_to_verify_never_reads_as_success(ask, store):
    assert ask("verify").code == 2
    assert ask("verify", "--all").code == 2
    assert ask("verify", "nobody").code == 2
    assert ask("verify", "x", "--all").code == 2


def test_a_file_with_several_runs_is_judged_run_by_run(ask, store, record, tmp_path):
    ids = [record(store), record(store)]
    two = tmp_path / "two.jsonl"
    ask("export", *ids, "-o", str(two))
    said = ask("verify", str(two), "--json")
    assert said.code == 0
    assert [(run["run"], run["completeness"]["verdict"]) for run in said.json["runs"]] == [
        (id, "complete") for id in ids
    ]
    lines = two.read_bytes().splitlines(keepends=True)
    count = len(lines) // 2
    edited = lines[count + 4].replace(b"src/login.py", b"src/logon.py")
    two.write_bytes(b"".join([*lines[: count + 4], edited, *lines[count + 5 :]]))
    said = ask("verify", str(two))
    assert said.code == 1
    assert said.out.count("integrity    intact") == 1
    assert f"event 4 (line {count + 5} of two.jsonl) was edited" in said.out
    two.write_bytes(b"".join(lines[:-1]))
    assert ask("verify", str(two)).code == 3


def test_an_export_as_json_is_no_timeline_and_not_called_edited(ask, store, record, tmp_path):
    ids = [record(store), record(store)]
    document, lines = tmp_path / "runs.json", tmp_path / "runs.jsonl"
    ask("export", *ids, "--format", "json", "-o", str(document))
    ask("export", *ids, "-o", str(lines))
    for command in ("verify", "show"):
        said = ask(command, str(document))
        assert (said.code, said.out) == (2, "")
        assert "runs.json was exported as JSON" in said.err
        assert "edited" not in said.err
        assert "-o run.jsonl" in said.err
    header = document.read_bytes().splitlines(keepends=True)[0]
    lines.write_bytes(header + lines.read_bytes())  # sealed lines are judged, whatever stands before them
    assert ask("verify", str(lines)).code == 1


def test_runs_that_are_mixed_or_doubled_in_a_file_stay_broken(ask, store, record, tmp_path):
    first, second = ((store / "runs" / record(store) / "timeline.jsonl").read_bytes() for _ in range(2))
    a, b = first.splitlines(keepends=True), second.splitlines(keepends=True)
    for name, lines in {
        "one inside": [*a[:3], b[0], *a[3:]],
        "one at the end": [*a, b[3]],
        "again": [*a, *b, *a],
        "twice": [*a, *a],
        "without a start": [*a, *b[1:]],
    }.items():
        mixed = tmp_path / "mixed.jsonl"
        mixed.write_bytes(b"".join(lines))
        said = ask("verify", str(mixed), "--json")
        assert said.code == 1, name
        assert said.json["integrity"]["verdict"] == "broken", name


def test_one_run_of_a_file_with_several_cannot_be_meant(ask, store, record, tmp_path):
    ids = [record(store), record(store)]
    two = tmp_path / "two.jsonl"
    ask("export", *ids, "-o", str(two))
    for command in ("show", "replay"):
        said = ask(command, str(two))
        assert said.code == 2
        assert f"holds 2 runs: {ids[0]}, {ids[1]}" in said.err
        taking = re.search(r"`(grep .* > )one\.jsonl`", said.err)
        assert taking is not None
    subprocess.run(["sh", "-c", taking[1] + str(tmp_path / "one")], check=True)
    assert ask("replay", str(tmp_path / "one")).json["original_run_id"] == ids[0]


def test_an_exported_timeline_without_its_blobs_is_missing_something(ask, store, tmp_path):
    with playhead.record("large", store=store) as run:
        playhead.artifact("notes.txt", "x")
        run.output = "y" * 50_000
    away = tmp_path / "away" / "run.jsonl"
    away.parent.mkdir()
    ask("export", run.id, "-o", str(away))
    elsewhere = ["--store", str(tmp_path / "no" / "store")]
    said = ask("verify", str(away), *elsewhere)
    assert said.code == 1
    assert "completeness missing      gone: blob " in said.out
    assert "artifacts are no part of an exported timeline and were not looked at" in said.out
    assert ask("replay", str(away), *elsewhere).code == 1
    shutil.copytree(store / "blobs", away.parent / "blobs")
    said = ask("verify", str(away), *elsewhere)
    assert said.code == 0
    assert "every blob; artifacts are no part" in said.out


def test_a_context_pack_that_was_rolled_back_is_found(ask, store, sample):
    (store / "runs" / sample / "context_pack.json").write_bytes(b"{}\n")
    recorded = next(event.seq for event in playhead.load(sample).events() if event.data.get("role") == "context_pack")
    said = ask("verify", sample)
    assert said.code == 1
    assert f"is not what event {recorded} (line {recorded + 1} of timeline.jsonl) recorded" in said.out


def test_a_run_that_is_being_recorded_is_said_to_run(ask, store):
    with playhead.record("open", store=store) as run:
        playhead.note("so far")
        said = ask("verify", run.id)
    assert said.code == 3
    assert "unfinished   it is still running: a writer holds it" in said.out


def test_the_open_tail_of_a_crashed_run_is_all_of_it(ask, store, sample, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(store / "runs" / sample, copy)
    lines = timeline_of(store, sample).read_bytes().splitlines(keepends=True)
    (copy / "timeline.jsonl").write_bytes(b"".join(lines[:-1]))
    said = ask("verify", str(copy), "--json").json
    assert (said["level"], said["open_tail"]) == ("open tail", len(lines) - 1)
    assert "came after" not in ask("verify", str(copy)).out
