from __future__ import annotations

import html.parser
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import HOSTILE

import playhead
from playhead.capture.record import Record
from playhead.cli.audit_markdown import code
from playhead.views.audit.findings import RULES

TARGET = f"/etc/<script>alert('x')</script> | `code` @bob [a](https://evil.example) {HOSTILE}"


@playhead.tool(effects=["read"])
def look(run: Any) -> None:
    run.record("effect.observed", {"what": "file.written", "target": TARGET, "detail": {"mode": "w"}})


@pytest.fixture
def audited(store: Path) -> str:
    """Record a run that wrote something with a hostile name, in a tool that says it reads, and was denied something."""

    def policy(capability: str, resource: str | None, context: Any) -> dict[str, str]:
        return {"decision": "deny" if resource == "/etc" else "allow", "rule": "only-here", "reason": "not yours"}

    with playhead.record("fix-login", store=store, policy=policy) as run:
        with playhead.step("plan"):
            look(run)
        playhead.check("fs.write", resource="src/")
        with pytest.raises(playhead.PolicyDenied):
            playhead.check("fs.write", resource="/etc")
        return run.id


def seq_of(run: str, kind: str) -> int:
    return next(event.seq for event in playhead.load(run).events() if event.kind == kind)


def test_the_state_of_the_record_stands_on_top_then_rules_then_findings_with_their_events(ask, audited):
    said = ask("audit", "@last")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == f"✓ fix-login  {audited}  ok"
    assert [line.split()[:2] for line in lines[1:3]] == [["integrity", "intact"], ["completeness", "complete:"]]
    assert "rule        findings  high  medium  low  info" in lines
    at = seq_of(audited, "effect.observed")
    assert any(re.match(rf"  medium  event {at}  file write: /etc/<script>", line) for line in lines)
    assert any(
        "tool look declares read, and wrote /etc/" in line and "  in step plan / tool look" in line for line in lines
    )
    assert any("fs.write on /etc: denied by the rule only-here (not yours)" in line for line in lines)
    assert any(
        re.match(r"  ✓ allow event \d+  fs.write on src/, by the rule only-here \(enforce\)", line) for line in lines
    )


def test_json_has_the_documented_shape(ask, audited):
    found = ask("audit", audited, "--json").json
    assert {"runs", "integrity", "findings", "counts"} <= set(found)
    assert found["integrity"]["verdict"] == "intact"
    assert found["completeness"]["verdict"] == "complete"
    assert [one["run"] for one in found["runs"]] == [audited]
    assert set(found["counts"]) == set(RULES)
    assert (found["counts"]["write"], found["counts"]["undeclared"], found["counts"]["deny"]) == (1, 1, 1)
    for one in found["findings"]:
        assert {"rule", "severity", "run", "seq", "detail"} <= set(one)
        assert one["seq"] in one["seqs"]
    written = next(one for one in found["findings"] if one["rule"] == "write")
    assert written["target"] == TARGET
    assert [one["decision"] for one in found["policy"]] == ["allow", "deny"]


def test_fail_on_decides_the_exit_code_by_rule_and_by_severity(ask, audited):
    assert ask("audit", audited, "--fail-on", "network,delete").code == 0
    said = ask("audit", audited, "--fail-on", "network, deny,undeclared")
    assert said.code == 1
    assert "fails on deny (1), undeclared (1)" in said.out
    assert ask("audit", audited, "--fail-on", "high").code == 1
    for form in ("md", "html", "terminal"):
        said = ask("audit", audited, "--fail-on", "deny", "--format", form, "-o", "audit.out")
        assert (said.code, said.err.splitlines()[1:]) == (1, ["fails on deny (1)"]), form
        assert "fails on deny (1)" in Path("audit.out").read_text(), form
        ask("audit", audited, "--fail-on", "delete", "--format", form, "-o", "audit.out")
        assert "fails on" not in Path("audit.out").read_text(), form
    assert ask("audit", audited, "--rule", "network", "--fail-on", "write", "--json").json["failed"] == {"write": 1}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name one or more runs"),
        (["@last", "--since", "2h"], "two questions"),
        (["@last", "--all"], "two questions"),
        (["@last", "--fail-on", "writes"], "write, delete, process"),
        (["@last", "--rule", ""], "write, delete, process"),
        (["@last", "--limit", "-1"], "number of rows"),
        (["--name", "nobody"], "no run matches"),
        (["@last", "-o", "."], "cannot write"),
        (["@last", "--format", "md", "--json"], "both want stdout"),
        (["nobody"], "no run answers"),
    ],
)
def test_a_wrong_question_is_told_how_to_ask(ask, audited, arguments, told):
    said = ask("audit", *arguments)
    assert said.code == 2
    assert told in said.err + said.out


def test_rules_and_rows_can_be_chosen(ask, audited):
    said = ask("audit", audited, "--rule", "undeclared,write").out
    assert "\nundeclared  " in said
    assert "\npolicy" not in said
    assert "\ngap" not in said
    with playhead.record("many") as run:
        for number in range(5):
            run.record("effect.observed", {"what": "file.written", "target": f"/etc/{number}"})
    assert "3 more; --limit 0 shows all" in ask("audit", "many", "--limit", "2").out
    assert "more; --limit" not in ask("audit", "many", "--limit", "0").out


def test_runs_are_chosen_as_in_ls(ask, audited):
    with playhead.record("other"):
        pass
    assert [one["name"] for one in ask("audit", "--all", "--json").json["runs"]] == ["fix-login", "other"]
    assert [one["name"] for one in ask("audit", "--name", "other", "--since", "1h", "--json").json["runs"]] == ["other"]
    several = ask("audit", "fix-login", "other").out
    assert re.search(rf"  medium  {audited[:16]}\w* event \d+  file write", several)


def test_what_unrelated_runs_did_is_done_twice_only_where_they_are_named_together(ask, store):
    @playhead.tool(effects=["irreversible"])
    def send(to: str) -> None: ...

    ids = []
    for origin in (None, None, {"mode": "resume"}):
        made = origin and {"run": ids[0], "at": 2, **origin}
        with Record("daily", store=store, origin=made) as run:
            if made is not None:
                playhead.note("past the tape", data={"left_tape": 2, "whole": True})
            send("bob")
        ids.append(run.id)

    def attempts(*asked: str) -> list[list[str]]:
        found = ask("audit", *asked, "--rule", "repeated", "--json").json["findings"]
        return [[one["run"] for one in each["attempts"]] for each in found]

    assert attempts(*ids[:2]) == [ids[:2]]
    assert attempts("--all") == [[ids[0], ids[2]]]
    assert attempts("--name", "daily") == [[ids[0], ids[2]]]


def test_an_altered_record_is_told_first_and_audited_as_far_as_it_can_be_read(ask, audited, store, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(store / "runs" / audited, copy)
    lines = (copy / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"plan", b"plot")
    lines[2] = b"garbage\n"
    (copy / "timeline.jsonl").write_bytes(b"".join(lines))
    said = ask("audit", str(copy))
    assert said.code == 1
    assert said.out.splitlines()[1].startswith("  integrity     broken: event 1 was edited")
    assert "nothing vouches for what stands from event 1 on" in said.out
    assert "line 3 of the record cannot be read" in said.out
    assert "file write: /etc/" in said.out
    assert ask("audit", str(copy), "--json").json["integrity"]["at"] == 1


@pytest.mark.parametrize("form", ["md", "html"])
@pytest.mark.parametrize("others", [0, 11])
def test_whether_the_record_can_be_relied_on_stands_above_what_was_found(ask, audited, store, form, others):
    for number in range(others):
        with playhead.record(f"more-{number}", store=store):
            pass
    timeline = store / "runs" / audited / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b"only-here", b"anywhere!", 1))
    said = ask("audit", "--all", "--format", form, "--fail-on", "deny").out
    order = ["broken: event", " findings: ", "fails on deny", "undeclared"]
    assert sorted(order, key=said.index) == order
    assert all(f"more-{number}" in said for number in range(others) if form == "html")


def test_a_run_without_an_end_could_not_be_told(ask, audited, store, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(store / "runs" / audited, copy)
    lines = (copy / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "timeline.jsonl").write_bytes(b"".join(lines[:-1]))
    assert ask("audit", str(copy)).code == 3
    assert ask("audit", str(copy), "--fail-on", "write").code == 1


def test_programs_that_a_run_started_are_audited_with_it(ask, audited, store):
    at = seq_of(audited, "tool.called")
    with Record("child", store=store, origin={"run": audited, "mode": "child", "at": at}) as child:
        pass
    found = ask("audit", audited, "--json").json
    assert [(one["name"], one["origin"] is None) for one in found["runs"]] == [("fix-login", True), ("child", False)]
    assert child.id in ask("audit", audited).out
    assert len(ask("audit", audited, "--no-children", "--json").json["runs"]) == 1


def test_what_a_child_did_is_its_tools_doing_whichever_is_named_first(ask, audited, store):
    at = seq_of(audited, "tool.called")
    with Record("child", store=store, origin={"run": audited, "mode": "child", "at": at}) as child:
        child.record("effect.observed", {"what": "file.deleted", "target": "/etc/hosts"})
    for named in ([audited, child.id], [child.id, audited]):
        found = ask("audit", *named, "--rule", "undeclared", "--json").json
        assert [one["run"] for one in found["runs"]] == named
        assert "tool look declares read, and deleted /etc/hosts" in [one["detail"] for one in found["findings"]]


def test_a_cassette_is_audited_and_a_copy_of_a_run_counts_once(ask, audited, tmp_path):
    assert ask("pack", audited, "-o", str(tmp_path / "x.cassette")).code == 0
    found = ask("audit", str(tmp_path / "x.cassette"), audited, "--json").json
    assert [one["run"] for one in found["runs"]] == [audited]
    assert found["counts"]["write"] == 1


def test_a_run_that_nobody_watched_says_that_nothing_is_known_of_it(ask, store):
    with playhead.record("blind", store=store, capture=False):
        Path("written").write_text("x")
    found = ask("audit", "blind", "--json").json
    assert (found["counts"]["write"], found["counts"]["gap"]) == (0, 2)
    assert {(one["what"], one["severity"]) for one in found["findings"]} == {("effects", "medium"), ("reads", "info")}


def test_what_was_denied_is_named_where_a_text_as_long_comes_again(ask, store):
    command = f"deploy {'x' * 300}"
    refuse = lambda *_: {"decision": "deny", "rule": "r", "reason": f"no {command}"}  # noqa: E731
    with playhead.record("long", store=store, policy=refuse) as run:
        for _ in range(2):
            with pytest.raises(playhead.PolicyDenied):
                playhead.check("process.exec", resource=command)
    assert '"resource":{"$same":' in (run.path / "timeline.jsonl").read_text()
    found = ask("audit", "long", "--json").json
    assert [(one["resource"], len(one["seqs"])) for one in found["policy"]] == [(command, 2)]
    assert [(one["target"], one["count"]) for one in found["findings"] if one["rule"] == "deny"] == [(command, 2)]
    rows = ask("query", "SELECT resource, reason FROM policy_checks", "--json").json
    assert rows == [{"resource": command, "reason": f"no {command}"}] * 2


def test_python_takes_a_run_a_name_or_several(audited):
    assert playhead.audit(playhead.load(audited)).counts == playhead.audit("fix-login").counts
    assert len(playhead.audit([audited, "fix-login"]).runs) == 1
    with pytest.raises(playhead.PlayheadError, match="no run to audit"):
        playhead.audit([])


@pytest.mark.parametrize("form", ["terminal", "json", "md", "html", "sarif"])
def test_a_hostile_name_is_inert_in_every_form(ask, audited, form, tmp_path):
    said = ask("audit", audited, "--format", form).out
    assert "alert" in said
    assert not any(
        sign in said for sign in ("\x1b", "\x9b", "\u202e", "<script>alert" if form in ("md", "html") else "\0")
    )
    assert ask("audit", audited, "--format", form, "-o", str(tmp_path / "x")).code == 0
    assert (tmp_path / "x").read_text("utf-8") == said


def test_no_text_ends_its_place_in_markdown():
    assert code("a [b](https://c) @d <e>") == "`a [b](https://c) @d <e>`"
    assert code("a|b` c\n<d>") == "<code>a&#124;b&#96; c&#9166;&#60;d&#62;</code>"
    assert code("\t ") == ""


def test_markdown_has_a_table_for_each_rule_with_as_many_cells_as_columns(ask, audited):
    rows = [line for line in ask("audit", audited, "--format", "md").out.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {4, 5, 7}


def test_markdown_says_whose_a_decision_is_where_there_are_several_runs(ask, audited):
    with playhead.record("other") as other:
        playhead.check("fs.write", resource="src/")
    said = ask("audit", audited, other.id, "--format", "md").out
    decided = [line for line in said.splitlines() if line.startswith(("| `allow`", "| `deny`"))]
    assert decided
    for line in decided:
        named = re.match(r"\| `\w+` \| `(run_\w+)` events? \d", line)
        assert named
        assert audited.startswith(named[1]) != other.id.startswith(named[1])
    assert "| `allow` | event " in ask("audit", audited, "--format", "md").out


def test_markdown_fits_a_comment_whatever_was_found(ask, store):
    for number in range(12):
        with playhead.record("|" * 2000 + str(number), store=store) as run:
            for what in ("file.written", "file.deleted", "socket.connected", "process.started"):
                for target in range(30):
                    run.record("effect.observed", {"what": what, "target": f"/{'|' * 300}{target}"})
        timeline = store / "runs" / run.id / "timeline.jsonl"
        timeline.write_bytes(timeline.read_bytes().replace(b"file.deleted", b"file.erased!", 1))
    said = ask("audit", "--all", "--format", "md")
    assert len(said.out) <= 65_536
    assert "\n- 2 more of these\n" in said.out
    assert len(ask("audit", "--all", "--format", "md", "--limit", "0").out) > 65_536


class _Page(html.parser.HTMLParser):
    tags: list[tuple[str, dict[str, str | None]]]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags = [*getattr(self, "tags", []), (tag, dict(attrs))]


def test_html_asks_nobody_for_anything(ask, audited):
    page = _Page()
    said = ask("audit", audited, "--format", "html").out
    page.feed(said)
    assert {"html", "table"} <= {tag for tag, _ in page.tags}
    assert not {"script", "img", "link", "iframe", "object", "form"} & {tag for tag, _ in page.tags}
    assert all(attrs["href"].startswith("#") for _, attrs in page.tags if "href" in attrs)
    assert "default-src 'none'" in said
    assert not re.search(r"url\(|@import", said)


def test_sarif_has_what_the_schema_requires_and_points_to_the_line(ask, audited, store):
    found = ask("audit", audited, "--format", "sarif").json
    assert found["version"] == "2.1.0"
    assert found["$schema"].endswith("sarif-2.1.0.json")
    (run,) = found["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "Playhead"
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    assert run["invocations"] == [{"executionSuccessful": True}]
    lines = (store / "runs" / audited / "timeline.jsonl").read_text().splitlines()
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert "](" not in result["message"]["text"]  # which is a link
        (place,) = result["locations"]
        physical = place["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == f".playhead/runs/{audited}/timeline.jsonl"
        seq = json.loads(lines[physical["region"]["startLine"] - 1])["seq"]
        assert place["logicalLocations"][0]["fullyQualifiedName"] == f"playhead://{audited}/{seq}"
        assert re.fullmatch("[0-9a-f]{32}", result["partialFingerprints"]["playheadAudit/v1"])
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert (levels["undeclared"], levels["write"], levels["gap"]) == ("error", "warning", "note")


def test_sarif_takes_no_brace_for_a_placeholder(ask, store):
    with playhead.record("braces", store=store) as run:
        run.record("effect.observed", {"what": "file.written", "target": "/etc/{0}", "detail": {"mode": "w"}})
    results = ask("audit", "braces", "--format", "sarif").json["runs"][0]["results"]
    (told,) = (one["message"]["text"] for one in results if one["ruleId"] == "write")
    assert "/etc/{{0}}" in told


def test_sarif_gives_addresses_that_are_ones_whatever_the_folder_is_called(ask, audited, store, tmp_path, monkeypatch):
    copy = tmp_path / "a b#50%:é" / "copy"
    shutil.copytree(store / "runs" / audited, copy)
    for folder, begins in ((tmp_path, "a%20b%2350%25%3A%C3%A9/"), (store, "file:///")):
        monkeypatch.chdir(folder)
        (run,) = ask("audit", str(copy), "--format", "sarif", "--store", str(store)).json["runs"]
        places = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}
        assert all(place.startswith(begins) and not set(" #:é") & set(place[7:]) for place in places), places


def test_of_many_runs_a_comment_names_those_that_cannot_be_relied_on(ask, audited, store):
    for number in range(11):
        with playhead.record(f"more-{number}", store=store):
            playhead.check("fs.write", resource=f"file-{number}")
    said = ask("audit", "--all", "--format", "md", "--limit", "5").out
    assert "\n- 12 runs: 12 intact and complete, 0 not\n" in said
    assert said.count("✅") == 0
    assert "8 more.\n\n</details>\n" in said  # decisions
    timeline = store / "runs" / audited / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b"only-here", b"anywhere!", 1))
    said = ask("audit", "--all", "--format", "md").out
    assert "\n- 12 runs: 11 intact and complete, 1 not\n" in said
    assert re.findall("- ❌ `([^`]+)`", said) == ["fix-login"]


def test_sarif_says_which_record_cannot_be_relied_on(ask, audited, store):
    timeline = store / "runs" / audited / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b"only-here", b"anywhere!", 1))
    (told,) = ask("audit", audited, "--format", "sarif").json["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert told["level"] == "error"
    assert "was edited" in told["message"]["text"]


@pytest.mark.parametrize(
    ("name", "form", "begins"),
    [("x.md", "md", "## "), ("x.html", "html", "<!doctype"), ("x.sarif", "sarif", "{"), ("x", "json", "{")],
)
def test_a_file_has_the_form_of_its_name_and_json_is_about_it(ask, audited, name, form, begins):
    assert ask("audit", audited, "-o", name, "--json").json["format"] == form
    assert Path(name).read_text().lower().startswith(begins)
    assert ask("audit", audited, "-o", name, "--json", "--format", "terminal").json["format"] == "terminal"


def test_a_file_that_says_it_is_of_another_form_is_not_written_unless_the_form_is_said(ask, sample):
    said = ask("audit", "@last", "-o", "a.pdf")
    assert (said.code, "an audit is no .pdf file" in said.err, Path("a.pdf").exists()) == (2, True, False)
    assert ask("audit", "@last", "-o", "a.txt").code == 0
    assert "integrity" in Path("a.txt").read_text()
    assert ask("audit", "@last", "-o", "a.pdf", "--format", "html").code == 0
