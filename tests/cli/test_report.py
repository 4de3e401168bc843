from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import record_sample
from tests.ledger.timelines import OTHER, RUN, finish, ledger

import playhead
from playhead.store import layout


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        *((name, "<!doctype html>") for name in ("a.html", "a.HTM", "a", "a.2026-11-19", "tmp.kT3xbQ90aa")),
        *((name, "## Playhead") for name in ("a.md", "a.markdown")),
        ("a.json", '{\n  "format"'),
    ],
)
def test_what_is_written_follows_the_name_of_the_file(ask, sample, name, begins):
    said = ask("report", "@last", "-o", name)
    assert (said.code, said.err) == (0, "")
    assert Path(name).read_text().startswith(begins)
    assert said.out.startswith(f"{name}  ")


def test_a_file_that_says_it_is_of_another_form_is_not_written_unless_the_form_is_said(ask, sample):
    said = ask("report", "@last", "-o", "a.pdf")
    assert (said.code, said.out) == (2, "")
    assert "a report is no .pdf file" in said.err
    assert all(ending in said.err for ending in (".html", ".htm", ".md", ".markdown", ".json"))
    assert not Path("a.pdf").exists()
    assert ask("report", "@last", "-o", "a.txt", "--format", "md").code == 0
    assert Path("a.txt").read_text().startswith("## Playhead")


def test_two_runs_are_compared(ask, store):
    runs = [record_sample(store), record_sample(store, issue=7)]
    found = ask("report", *runs, "--json").json
    assert [run["id"] for run in found["runs"]] == runs
    assert found["diff"]["identical"] is False
    assert "### Differences" in ask("report", *runs, "--format", "md").out


def test_what_is_ignored_of_two_runs_is_ignored_in_their_report(ask, store):
    runs = [record_sample(store), record_sample(store, issue=7)]
    assert "the final output differs" in ask("report", *runs, "--format", "md").out
    assert "the final output differs" not in ask("report", *runs, "--ignore", "/output", "--format", "md").out
    found = ask("report", *runs, "--ignore", "/output", "--json").json["diff"]
    assert {**found, "problem": None} == ask("diff", *runs, "--ignore", "/output", "--json").json
    assert ask("report", *runs, "--ignore", "input").code == 2


def test_its_data_is_what_the_other_commands_say(ask, store):
    runs = [record_sample(store), record_sample(store, issue=7)]
    found = ask("report", *runs, "--json").json
    for run, told in zip(runs, found["runs"], strict=True):
        shown = ask("show", run, "--json").json
        assert (told["summary"], told["timeline"]) == (shown["run"], shown["timeline"])
        assert told["verify"] == ask("verify", run, "--json").json
        assert told["metrics"] == ask("stats", run, "--by", "model", "--json").json
        assert told["lines"] == layout.timeline(layout.run_dir(store, run)).read_text().splitlines()
    diff, audit = ask("diff", *runs, "--json").json, ask("audit", *runs, "--json").json
    assert (diff.pop("problem"), audit.pop("failed")) == (None, {})
    assert (found["diff"], found["audit"]) == (diff, audit)


def test_what_goes_to_stdout_is_the_same_whatever_the_encoding_there(shell, store, record):
    run = record(store, issue="é 😀 \u202e")
    for form in ("html", "md"):
        assert ask_ascii(shell, run, form) == shell("report", run, "--format", form).out
    assert json.loads(ask_ascii(shell, run, "json")) == shell("report", run, "--format", "json").json


def ask_ascii(shell, run, form):
    return shell("report", run, "--format", form, env={"PYTHONIOENCODING": "ascii"}).out


def test_what_a_run_and_its_baseline_did_is_not_done_twice(ask, store):
    @playhead.tool(effects=["irreversible"])
    def send(to: str) -> None: ...

    runs = []
    for _ in range(2):
        with playhead.record("mails", store=store) as run:
            send("bob")
        runs.append(run.id)
    assert ask("report", *runs, "--json").json["audit"]["counts"]["repeated"] == 0


def test_bad_questions_are_refused(ask, sample):
    assert ask("report", sample, sample, sample).code == 2
    assert ask("report", sample, "--json", "--format", "md").code == 2
    assert ask("report", sample, "--json", "--format", "md", "-o", "-").code == 2
    assert ask("report", "nothing").code == 2
    said = ask("report", sample, "-o", "no/such/folder/a.html")
    assert (said.code, "cannot write" in said.err) == (2, True)


def test_an_altered_run_is_reported_as_one(ask, sample, store):
    path = layout.timeline(layout.run_dir(store, sample))
    path.write_bytes(path.read_bytes().replace(b"normalise", b"normalize"))
    said = ask("report", sample, "-o", "a.html")
    assert said.code == 3
    assert "altered" in said.err
    assert 'integrity: <b class="bad" id="integrity-0">broken</b>' in Path("a.html").read_text()


def test_what_a_broken_chain_leaves_open_is_not_judged_in_every_form(ask, sample, store):
    path = layout.timeline(layout.run_dir(store, sample))
    path.write_bytes(path.read_bytes().replace(b"normalise", b"normalize"))
    assert "completeness not judged" in ask("verify", sample).out
    assert "| broken | not judged |" in ask("report", sample, "--format", "md").out
    assert 'completeness: <b class="dim">not judged</b>' in ask("report", sample).out
    assert ask("report", sample, "--json").json["runs"][0]["verify"]["completeness"]["verdict"] == "unfinished"


def test_a_run_with_lines_that_cannot_be_read_is_reported_up_to_them(ask, sample, store):
    path = layout.timeline(layout.run_dir(store, sample))
    lines = path.read_bytes().split(b"\n")
    lines[6] = b"\xff not <b>JSON"
    path.write_bytes(b"\n".join(lines))
    for name in ("a.html", "a.md", "a.json"):
        said = ask("report", sample, "-o", name)
        assert (said.code, "altered" in said.err) == (3, True)
    found = json.loads(Path("a.json").read_text())["runs"][0]
    assert found["verify"]["integrity"]["verdict"] == "broken"
    assert found["lines"][6] == "\ufffd not <b>JSON"
    assert found["timeline"]
    assert max(row["seq"] for row in found["timeline"]) < 6


ALIEN = [
    ("artifact.created", {"name": ["a"], "digest": "0" * 64}),
    ("ambient.read", {"packed": 5, "reads": True}),
    ("model.invoked", {"request": {"$extends": "99#/request", "keep": 1, "then": []}}),
    ("tool.called", {"name": "t", "input": {"$blob": "no digest"}}),
    ("tool.called", {"name": "t", "input": {"$same": "99#/input"}}),
]


def test_what_no_playhead_writes_is_reported_and_compared_too(ask, store):
    for run in (RUN, OTHER):
        writer, log, _ = ledger(run)
        writer.append("run.started", b'{"input":{"payload":1}}', opens=True)
        for kind, data in ALIEN:
            writer.append(kind, json.dumps(data).encode(), parent="0", opens=kind != "artifact.created")
        finish(writer)
        path = layout.timeline(layout.run_dir(store, run))
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(log.buffer))
    for runs in ([RUN], [RUN, OTHER]):
        for form in ("html", "md", "json"):
            said = ask("report", *runs, "--format", form, "-o", "a")
            assert (said.code, said.err) == (0, "")


@pytest.mark.parametrize(("more", "form", "begins"), [([], "html", "<!doctype"), (["--format", "md"], "md", "## ")])
def test_a_file_has_its_form_and_json_is_about_it(ask, sample, more, form, begins):
    found = ask("report", sample, "-o", "x.html", "--json", *more).json
    assert found == {"file": "x.html", "format": form, "bytes": Path("x.html").stat().st_size}
    assert Path("x.html").read_text().lower().startswith(begins)


def test_fields_are_ignored_in_a_report_of_two_runs_alone(ask, sample):
    said = ask("report", "@last", "--ignore", "/output", "-o", "a.html")
    assert (said.code, "Name the run to compare with" in said.err) == (2, True)


def test_a_comment_says_which_of_two_runs_is_the_left_one(ask, store):
    runs = [record_sample(store), record_sample(store, issue=7)]
    told = ask("report", *runs, "--format", "md").out
    for side, run in zip(("left", "right"), runs, strict=True):
        assert f"| {side}: fix\\-login `{run}` |" in told
        assert f"<summary>Timeline of {side}, fix-login: " in told
