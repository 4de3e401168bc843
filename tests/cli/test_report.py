from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import record_sample

from playhead.store import layout


@pytest.mark.parametrize(
    ("name", "begins"), [("a.html", "<!doctype html>"), ("a.md", "## Playhead"), ("a.json", '{\n  "format"')]
)
def test_what_is_written_follows_the_name_of_the_file(ask, sample, name, begins):
    said = ask("report", "@last", "-o", name)
    assert (said.code, said.err) == (0, "")
    assert Path(name).read_text().startswith(begins)
    assert said.out.startswith(f"{name}  ")


def test_two_runs_are_compared(ask, store):
    runs = [record_sample(store), record_sample(store, issue=7)]
    found = ask("report", *runs, "--json").json
    assert [run["id"] for run in found["runs"]] == runs
    assert found["diff"]["identical"] is False
    assert "### Differences" in ask("report", *runs, "--format", "md").out


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
    assert 'integrity: <b class="bad">broken</b>' in Path("a.html").read_text()


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


@pytest.mark.parametrize(("more", "form", "begins"), [([], "html", "<!doctype"), (["--format", "md"], "md", "## ")])
def test_a_file_has_its_form_and_json_is_about_it(ask, sample, more, form, begins):
    found = ask("report", sample, "-o", "x.html", "--json", *more).json
    assert found == {"file": "x.html", "format": form, "bytes": Path("x.html").stat().st_size}
    assert Path("x.html").read_text().lower().startswith(begins)
