from __future__ import annotations

import hashlib
import html
import json
import re
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

import playhead
from playhead import _limits
from playhead._api.reporting import report
from playhead.views.report.markup import e

HOSTILE = (
    '</script><script>alert(1)</script><img src=x onerror=alert(2)> \u202e \x1b[31m & "quoted" `code` | <!-- @someone'
)
SCRIPT = Path(playhead.__file__).parent / "views" / "report" / "page.js"


@playhead.tool(effects=["write"])
def save(text: str) -> str:
    return text


def recorded(text: str = "fine", name: str = "agent") -> str:
    with playhead.record(name, input={"q": HOSTILE}) as run:
        with playhead.step("plan", why=HOSTILE):
            save(text)
            with playhead.model_call(
                provider="openai", model="gpt-4o", request=[{"role": "user", "content": HOSTILE}]
            ) as call:
                call.respond({"text": HOSTILE}, usage={"input": 10, "output": 2})
        playhead.note(HOSTILE)
        run.output = text
    return str(run.id)


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


@pytest.fixture(scope="module")
def engine() -> Any:
    with MiniRacer() as made:
        made.eval(SCRIPT.read_text())
        yield made


def checked(engine: Any, run: dict[str, Any]) -> Any:
    """Check lines as the page does, in a real engine."""
    return json.loads(str(engine.eval(f"JSON.stringify(check({json.dumps(run['id'])}, {json.dumps(run['lines'])}))")))


def test_the_page_asks_nobody_for_anything_and_holds_all() -> None:
    left, right = recorded(), recorded("other")
    page = report(left, right).html()
    tags = Tags(page).found
    for tag, attributes in tags:
        assert tag not in ("img", "link", "iframe", "object", "embed", "form", "base", "video", "audio")
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "action", "srcset", "background"), (tag, name)
            assert name != "href" or (value or "").startswith("#")
    assert not re.search(r"@import|url\(", page.partition("</style>")[0])
    policy = next(attributes["content"] for tag, attributes in tags if tag == "meta" and "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    found = data_of(page)
    assert found["format"] == "playhead-report/1"
    assert [run["id"] for run in found["runs"]] == [left, right]
    assert [line.encode() for line in found["runs"][0]["lines"]] == list(playhead.load(left).lines())
    assert found["diff"]["headline"]["name"] == "save"
    assert found["runs"][0]["metrics"]["groups"]
    assert "counts" in found["audit"]
    for part in ("diff", "timeline-0", "timeline-1", "metrics", "audit", "events-0", "events-1", "list-0", "list-1"):
        assert f'id="{part}"' in page


def test_the_page_of_two_runs_opens_with_how_they_differ_and_each_says_what_it_touched() -> None:
    found = report(recorded(), recorded("other"))
    head = found.html().partition('id="diff"')[0].partition("<body>")[2]
    assert head.index("The final output differs") < head.index("First: ") < head.index("left: agent")
    assert head.count('<th>touched</th><td><a href="#audit">') == 2
    alone = report(recorded()).html()
    assert "differ" not in alone.partition("<nav>")[0].partition("<body>")[2]


def test_what_was_touched_is_counted_for_each_run_and_the_worst_is_red() -> None:
    def of(run: str, rule: str, severity: str) -> dict[str, Any]:
        return {"run": run, "rule": rule, "severity": severity, "seq": 1, "detail": ""}

    found = report(recorded(), recorded())
    left, right = (run.id for run in found.runs)
    found.audit["findings"] = [of(left, "write", "low"), of(left, "deny", "high"), of(left, "write", "low")]
    page = found.html()
    assert '2 write, 1 deny</a>; <b class="bad">1 of high severity</b>' in page
    assert "nothing that an audit finds</a></td>" in page
    del found.runs[1]
    found.diff = None
    found.audit["runs"][1]["origin"] = {"run": left}  # as of a Python that it started
    found.audit["findings"].append(of(right, "network", "low"))
    assert "2 write, 1 network, 1 deny</a>" in found.html()


def test_the_metrics_of_a_page_have_tools_and_steps_too() -> None:
    page = report(recorded()).html().partition('id="metrics"')[2].partition('id="audit"')[0]
    for what in ("models", "tools", "steps"):
        assert f"<tr><th>{what}</th><td>1</td><td>0</td>" in page
    with playhead.record("nothing") as run:
        run.output = 1
    page = report(run.id).html().partition('id="metrics"')[2].partition('id="audit"')[0]
    assert "No model was asked, no tool called" in page


def test_the_metrics_of_a_model_are_told_as_money_and_times() -> None:
    page = report(recorded()).html().partition('id="metrics"')[2].partition('id="audit"')[0]
    titles = re.findall("<th>([^<]*)</th>", page[page.rindex("<table>") :])
    assert {"name", "calls", "tokens in", "in all", "p95"} <= set(titles)
    assert not any("ms" in title.split() or "models" in title for title in titles)
    assert re.search(r"<td>[0-9.,]+ (µs|ms|s)</td>", page[page.rindex("<table>") :])


def test_in_a_table_that_scrolls_no_number_is_broken_in_two() -> None:
    page = report(recorded()).html()
    assert page.count('<div class="wide"><table>') == 2
    selectors = re.findall(r"([^{}]*)\{ white-space: nowrap; overflow-wrap: normal; \}", page)
    assert any(".wide td" in told.split(", ") for told in map(str.strip, selectors))


def test_tokens_that_no_call_of_a_model_said_are_unknown_in_the_metrics_too() -> None:
    with playhead.record("two") as run:
        for model, usage in (("gpt-5", {"input": 10, "output": 2}), ("own", None)):
            with playhead.model_call(provider="openai", model=model, request="?") as call:
                call.respond("!", usage=usage)
    metrics = report(str(run.id)).html().partition('id="metrics"')[2].partition('id="audit"')[0]
    assert metrics.count("<td>unknown</td><td>unknown</td>") == 1
    assert "<td>10</td><td>2</td>" in metrics


def test_what_an_agent_said_is_not_acted_on() -> None:
    page = report(recorded()).html()
    assert "alert(1)</script>" not in page
    assert "<img" not in page
    assert "\u202e" not in page.partition('id="data">')[0]
    assert "\x1b" not in page
    assert [tag for tag, _ in Tags(page).found].count("script") == 2


def test_the_page_checks_every_line_itself(engine: Any) -> None:
    run = data_of(report(recorded()).html())["runs"][0]
    assert checked(engine, run) is None
    for seq in range(len(run["lines"])):
        line = run["lines"][seq]
        at = line.index('"time"') + 12
        altered = f"{line[:at]}{'1' if line[at] != '1' else '2'}{line[at + 1 :]}"
        assert checked(engine, {**run, "lines": [*run["lines"][:seq], altered, *run["lines"][seq + 1 :]]})["seq"] == seq
    assert checked(engine, {**run, "lines": [*run["lines"][:2], *run["lines"][3:]]})["seq"] == 2
    assert checked(engine, {**run, "lines": run["lines"][1:]})["seq"] == 0
    assert checked(engine, {**run, "id": "run_other"})["seq"] == 0


@pytest.mark.parametrize("text", ["", "abc", "é" * 40, "x" * 55, "x" * 56, "x" * 64, "🦉" * 100])
def test_the_page_hashes_as_everybody_does(engine: Any, text: str) -> None:
    assert engine.eval(f"sha256(utf8({json.dumps(text)}))") == hashlib.sha256(text.encode()).hexdigest()


def test_the_page_checks_in_slices_as_it_does_at_once(engine: Any) -> None:
    run = data_of(report(recorded()).html())["runs"][0]
    lines = [*run["lines"][:4], run["lines"][4].replace("seq", "sec"), *run["lines"][5:]]
    for given, found in ((run["lines"], [None] * 3), (lines, [None, None, 4])):
        engine.eval(f"var given = {json.dumps(given)}, state = starting({json.dumps(run['id'])})")
        ends = [2, 4, len(given)]
        told = [
            json.loads(str(engine.eval(f"JSON.stringify(check('{run['id']}', given, state, {at}))"))) for at in ends
        ]
        assert [one and one["seq"] for one in told] == found


def test_the_list_of_events_tells_what_a_line_is_and_shows_nothing_unseen(engine: Any) -> None:
    def entry(line: str) -> Any:
        return json.loads(str(engine.eval(f"JSON.stringify(entry({json.dumps(line)}))")))

    line = json.dumps({"kind": "tool.called", "data": {"name": HOSTILE}})
    assert entry(line) == {"kind": "tool.called", "name": entry(line)["name"]}
    assert not {"\u202e", "\x1b"} & set(entry(line)["name"])
    assert entry("not { json") == entry("7") == {"kind": "unreadable", "name": ""}
    assert entry('{"kind": "a", "data": {"name": {}}}') == {"kind": "a", "name": ""}
    lines = 'lines: ["one TWO", "three", "two"], lines_left_out: 5, lines_at_end: ["two, too"]'
    assert list(engine.eval(f'having({{id: "a", {lines}}}, "Two")')) == [0, 2, 8]


@pytest.mark.parametrize(
    "letter", [*"\x00\x1b\x7f\xad\u061c\u200b\u202e\u2028\u2060\u2066\ufeff", "\U000e0041", "\U000e0101"]
)
def test_what_cannot_be_seen_is_written_out_by_the_page_and_by_its_script(engine: Any, letter: str) -> None:
    told = f"a\\u{ord(letter):04x}b\n\té😀"
    assert e(f"a{letter}b\n\té😀") == engine.eval(f"seen({json.dumps(f'a{letter}b')} + '\\n\\té😀')") == told


def test_a_page_of_many_events_does_not_grow_with_their_elements() -> None:
    with playhead.record("many") as run:
        for number in range(300):
            playhead.note(f"note {number}")
    page = report(str(run.id), events=0).html()
    assert page.count("note 299") < 4  # in the data, and in the timeline
    assert len(data_of(page)["runs"][0]["lines"]) > 300


def test_what_was_not_compared_is_said_wherever_two_runs_are() -> None:
    found = report(recorded(), recorded())
    assert found.diff is not None
    found.diff |= {"identical": None, "not_compared": [{"side": "right", "seq": 3, "why": "no <such> content"}]}
    page, told = found.html(), found.markdown()
    assert "Could not tell" in page
    assert (
        'Not compared: 1</h3><table><tr><td>right</td><td><a href="#e1-3">3</a></td><td>no &lt;such&gt; content' in page
    )
    assert "### Differences: could not tell" in told
    assert "- right, event 3: no &lt;such&gt; content" in told


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"path": "/a", "left": None, "right": "None"}, "<del>null</del> → <ins>&quot;None&quot;</ins>"),
        ({"path": "/a", "left": 1, "right": "1"}, "<del>1</del> → <ins>&quot;1&quot;</ins>"),
        ({"path": "/a", "right": True}, "<pre><ins>true</ins></pre>"),
    ],
)
def test_nothing_a_number_and_a_text_do_not_look_the_same(change: dict[str, Any], shown: str) -> None:
    found = report(recorded(), recorded("other"))
    assert found.diff is not None
    found.diff["deviations"] = [{"type": "changed", "changes": [change]}]
    assert shown in found.html()


def failed_for(error: Exception, cause: Exception | None = None) -> str:
    error.__cause__ = cause
    with suppress(type(error)), playhead.record("failed") as run, playhead.step("load"):
        raise error
    return str(run.id)


def test_what_lies_behind_an_error_is_said_wherever_it_is() -> None:
    ones = [failed_for(RuntimeError("cannot start"), ValueError(reason)) for reason in ("no brackets", "no commas")]
    found = report(*ones)
    told = html.unescape(re.sub("<[^>]+>", "", found.html().partition('<script type="application/json"')[0]))
    assert (
        told.count("RuntimeError: cannot start; caused by ValueError: no brackets") >= 2
    )  # on top, and in the timeline
    assert re.search(r"left failed: .*; caused by ValueError: no brackets", told)
    lines = found.markdown().splitlines()
    for start in ("> ", "- left failed: ", "| "):
        assert any(line.startswith(start) and "caused by ValueError: no brackets" in line for line in lines), start
    told = report(failed_for(ExceptionGroup("some failed", [KeyError("k"), ValueError("late")]))).markdown()
    assert "> ExceptionGroup: some failed \\(2 sub\\-exceptions\\); KeyError: 'k'; ValueError: late" in told


def test_a_run_that_was_invalidated_says_so_on_top() -> None:
    run = recorded()
    assert "invalidated" not in report(run).html().partition("Timeline")[0].partition("<body>")[2]
    playhead.load(run).invalidate("a wrong key")
    assert "<th>invalidated</th><td>" in report(run).html()


def test_findings_of_several_runs_say_whose_they_are_and_lead_to_their_event() -> None:
    left, right = recorded(), recorded("other")
    found = report(left, right)
    found.audit["findings"] = [{"run": right, "rule": "write", "severity": "high", "seq": 5, "detail": "wrote"}]
    assert '<td>right</td><td class="number"><a href="#e1-5">5</a></td><td>wrote</td>' in found.html()
    alone = report(left)
    alone.audit["findings"] = found.audit["findings"]  # as of a Python that the run started
    assert f'<td>{right}</td><td class="number">5</td><td>wrote</td>' in alone.html()


def test_what_pythons_did_that_a_run_started_belongs_to_that_side() -> None:
    left, right, child, grandchild = (recorded() for _ in range(4))
    both, alone = report(left, right), report(right)
    for found in (both, alone):
        origins = {child: right, grandchild: child}
        kids = [{"run": run, "name": "kid", "origin": {"run": of, "mode": "child"}} for run, of in origins.items()]
        found.audit["runs"] += [*kids, {"run": "other", "origin": {"run": "other"}}]
        one = {"rule": "delete", "severity": "high", "seq": 5, "detail": "gone"}
        found.audit["findings"] = [{**one, "run": run} for run in (right, child, grandchild)]
    page = both.html()
    for told in ("right", f"right, kid {child}", f"right, kid {grandchild}"):
        assert f'<td>{told}</td><td class="number">' in page
    assert page.count("3 delete</a>") == 1
    assert page.index("nothing that an audit finds") < page.index("3 delete</a>")
    assert f"| right, kid {grandchild.replace('_', chr(92) + '_')} | 5 |" in both.markdown()
    assert f"| kid {child.replace('_', chr(92) + '_')} | 5 |" in alone.markdown()
    assert "<h3>left: agent</h3>" in page


def test_findings_in_markdown_say_whose_they_are_where_there_are_several_runs() -> None:
    left, right = recorded(), recorded("other")
    one, both = report(left).markdown(), report(left, right).markdown()
    assert "| rule | severity | event | what |" in one
    assert "| rule | severity | run | event | what |" in both
    assert [len(re.findall(rf"\| {side} \| \d+ \|", both)) > 0 for side in ("left", "right")] == [True, True]
    found = report(left)
    found.audit["findings"].append({"rule": "net", "severity": "high", "run": right, "seq": 3, "detail": "x"})
    told = found.markdown()
    assert (f"| net | high | {right.replace('_', chr(92) + '_')} | 3 | x |" in told, "| this one |" in told) == (
        True,
        True,
    )


def test_what_came_after_the_end_has_no_bar_and_does_not_stretch_the_others() -> None:
    found = report(recorded())
    bars = re.findall(r'<td class="when">(.*?)</td>', found.html())
    assert all(bars)
    run = found.runs[0]
    run.timeline.append({"seq": run.summary["events"], "kind": "git.committed", "name": "", "at_us": 86_400_000_000})
    run.summary |= {"events": run.summary["events"] + 1, "after": run.summary["after"] + 1}
    assert re.findall(r'<td class="when">(.*?)</td>', found.html()) == [*bars, ""]


def test_lines_that_are_left_out_are_counted_and_the_last_ones_are_there() -> None:
    run = report(recorded(), events=4).runs[0]
    lines = [line.decode() for line in playhead.load(run.id).lines()]
    assert (run.lines, run.lines_left_out, run.lines_at_end) == (lines[:3], len(lines) - 4, lines[-1:])


def test_the_page_checks_what_it_has_of_a_long_run_and_finds_every_event_that_it_has(engine: Any) -> None:
    run = data_of(report(recorded(), events=8).html())["runs"][0]
    count = len(list(playhead.load(run["id"]).lines()))
    assert (len(run["lines"]), len(run["lines_at_end"])) == (6, 2)

    def found(run: dict[str, Any]) -> list[Any]:
        told = "parts(run).map(part => check(run.id, part.lines, part.state, part.state.first + part.lines.length))"
        engine.eval(f"var run = {json.dumps(run)}")
        return [*json.loads(str(engine.eval(f"JSON.stringify({told})"))), engine.eval("missing(run)")]

    assert found(run) == [None, None, ""]
    assert list(engine.eval("seqsOf(run)")) == [*range(6), count - 2, count - 1]
    assert list(engine.eval("having(run, 'run.finished')")) == [count - 1]
    assert engine.eval(f"lineOf(run, {count - 1}) === run.lines_at_end[1] && lineOf(run, 6) === undefined")
    late = [run["lines_at_end"][0].replace("seq", "sec"), run["lines_at_end"][1]]
    assert found({**run, "lines_at_end": late})[1]["seq"] == count - 2


def test_a_page_whose_data_cannot_be_read_confirms_nothing() -> None:
    with MiniRacer() as made:
        made.eval(SCRIPT.read_text())
        made.eval('var place = {}, claim = { textContent: "intact" }, data = { textContent: "{oops" }')
        made.eval("var all = asked => [asked.includes('integrity') ? claim : place]")
        made.eval("var document = { getElementById: () => data, querySelectorAll: all }; begin()")
        assert made.eval("claim.textContent") == "not confirmed"
        assert made.eval("place.className") == "bad"
        assert made.eval("place.textContent").startswith("broken, as this page finds: its data cannot be read (")


PAGE = """
var places = {}, made = () => ({ children: [], append() {}, replaceChildren() {}, addEventListener() {} });
var document = { getElementById: id => places[id] ??= made(), createElement: made, addEventListener() {} };
var window = document, location = { hash: "" }, setTimeout = go => go();
"""


@pytest.mark.parametrize("name", ["runs", "lines", "lines_at_end", "verify", "integrity", "text", "digest"])
def test_a_page_whose_data_lacks_something_confirms_nothing(name: str) -> None:
    data = json.dumps(data_of(report(with_large_values()).html())).replace(f'"{name}":', '"other":')
    with MiniRacer() as made:
        made.eval(SCRIPT.read_text())
        made.eval(PAGE)
        made.eval('document.querySelectorAll = which => [document.getElementById(which.slice(6, -2) + "0")]')
        made.eval(f"document.getElementById('data').textContent = {json.dumps(data)}")
        made.eval("document.getElementById('integrity-0').textContent = 'intact'; begin()")
        assert made.eval("places['integrity-0'].textContent") in ("broken", "not confirmed")
        assert "its data cannot be read (" in made.eval("places['checked-0'].textContent")


def test_what_the_page_finds_takes_the_place_of_what_was_found_when_it_was_made() -> None:
    for changed, told in ((False, "intact"), (True, "broken")):
        document = data_of(report(recorded()).html())
        lines = document["runs"][0]["lines"]
        lines[3] = lines[3].replace('"seq":3', '"seq":3 ') if changed else lines[3]
        with MiniRacer() as made:
            made.eval(SCRIPT.read_text())
            made.eval(PAGE)
            made.eval(f"document.getElementById('data').textContent = {json.dumps(json.dumps(document))}")
            made.eval("document.getElementById('integrity-0').textContent = 'intact'; begin()")
            assert made.eval("places['integrity-0'].textContent") == told


def with_large_values() -> str:
    with playhead.record("large") as run:
        prompt = [{"role": "user", "content": HOSTILE + "prompt " * 7_000 + "endofprompt"}]
        with playhead.model_call(provider="openai", model="gpt-5", request={"messages": prompt}) as call:
            call.respond({"text": "answer " * 7_000}, usage={"input": 10, "output": 2})
        save("saved " * 7_000)
    return str(run.id)


def test_what_large_values_say_is_in_the_page_and_can_be_found_there(engine: Any) -> None:
    found = report(with_large_values())
    page = found.html()
    run = data_of(page)["runs"][0]
    assert [one["text"].split()[-1] for one in run["contents"]] == ["endofprompt", "answer", "saved"]
    assert "This page holds everything, and loads nothing." in page
    assert page.count("</script>") == 2  # those of the page itself: what a value says ends none
    for one in run["contents"]:
        assert one["digest"] == hashlib.sha256(one["text"].encode()).hexdigest()
        assert engine.eval(f"checkContent({json.dumps(one)})") is None
    assert "is not what was sealed" in engine.eval(f"checkContent({json.dumps({**run['contents'][0], 'text': 'x'})})")
    asked = next(seq for seq, line in enumerate(run["lines"]) if '"model.invoked"' in line)
    assert list(engine.eval(f"having({json.dumps(run)}, 'ENDofprompt')")) == [asked]
    told = engine.eval(f"named({json.dumps(run['lines'][asked])}, contentsOf({json.dumps(run)}))")
    assert list(told) == [run["contents"][0]["digest"]]
    assert list(engine.eval(f"named({json.dumps(json.dumps(run['lines'][asked]))}, new Map())")) == []  # said in a text


def test_a_large_value_stands_below_the_line_that_names_it_or_is_said_not_to_be_there() -> None:
    run = data_of(report(with_large_values()).html())["runs"][0]
    asked = next(seq for seq, line in enumerate(run["lines"]) if '"model.invoked"' in line)
    with MiniRacer() as made:
        made.eval(SCRIPT.read_text())
        made.eval(PAGE)
        made.eval(
            "made = () => ({ children: [], append(...more) { this.children.push(...more); }, replaceChildren() {},"
            " addEventListener(what, go) { this.go = go; } })"
        )
        for contents, told in ((run["contents"], "endofprompt"), ([], "… is not in this page")):
            made.eval(f"var run = {json.dumps({**run, 'contents': contents})}")
            made.eval("document.createElement = made")
            made.eval(f"var one = new Events(0, run).element({asked}); one.go(); var below = one.children.at(-1)")
            last = made.eval("(below.children.at(-1) || below).textContent")
            assert last.endswith(told)


def test_a_page_says_what_is_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = with_large_values()
    lines = len(list(playhead.load(run).lines()))
    assert f"This page loads nothing. Not in it: {lines - 4} exact lines." in report(run, events=4).html()
    monkeypatch.setattr(_limits, "REPORT_CONTENTS_BYTES_MAX", 100_000)  # the prompt and the answer
    found = report(run)
    assert [one["text"][-6:] for one in found.runs[0].contents] == ["prompt", "nswer "]
    assert found.runs[0].contents_left_out == {"count": 1, "bytes": 42_000}
    assert "Not in it: 1 large value (42.0 kB)." in found.html()
    with playhead.record("kept") as other:
        playhead.artifact("a.txt", "kept")
    assert "Not in it: 1 artifact." in report(str(other.id)).html()


def test_a_large_value_that_was_changed_makes_a_page_broken() -> None:
    for changed, told in ((False, "intact"), (True, "broken")):
        document = data_of(report(with_large_values()).html())
        one = document["runs"][0]["contents"][0]
        one["text"] = one["text"].replace("endofprompt", "endOfprompt") if changed else one["text"]
        with MiniRacer() as made:
            made.eval(SCRIPT.read_text())
            made.eval(PAGE)
            made.eval(f"document.getElementById('data').textContent = {json.dumps(json.dumps(document))}")
            made.eval("document.getElementById('integrity-0').textContent = 'intact'; begin()")
            assert made.eval("places['integrity-0'].textContent") == told
            said = made.eval("places['checked-0'].textContent")
            assert (
                f"{one['digest'][:12]}… is not what was sealed"
                if changed
                else "as sealed is also what 3 large values say"
            ) in said


def test_the_page_misses_lines_that_were_taken_out_of_its_end(engine: Any) -> None:
    run = data_of(report(recorded()).html())["runs"][0]
    cut = {**run, "lines": run["lines"][:3]}
    assert checked(engine, cut) is None
    said = engine.eval(f"missing({json.dumps(cut)})")
    assert said == f"3 of {len(run['lines'])} events are in this page: the last ones were taken out of it"
    other = {**run, "verify": {**run["verify"], "head": "0" * 64}}
    assert engine.eval(f"missing({json.dumps(other)})") == (
        f"event {len(run['lines']) - 1} is not the last one that was verified"
    )
    grown = {**run, "lines": [*run["lines"], run["lines"][-1]]}  # by one that came after it was verified
    assert [engine.eval(f"missing({json.dumps(one)})") for one in (run, grown)] == ["", ""]


def test_a_difference_from_which_nothing_follows_says_nothing_of_those_that_would() -> None:
    found = report(recorded(), recorded())
    assert found.diff is not None
    for causes, told in (
        ([None], "1 deviation."),
        ([None, "follows"], "2 deviations, 1 of them follows from others."),
        ([None, "follows", "follows"], "3 deviations, 2 of them follow from others."),
    ):
        found.diff["deviations"] = [{"type": "changed", "path": "a", "cause": cause} for cause in causes]
        assert f"\n{told}\n" in found.markdown()
        assert f">{told} ◆" in found.html()


def test_markdown_is_short_and_nothing_in_it_is_markup() -> None:
    left, right = recorded(), recorded("other")
    told = report(left, right).markdown()
    assert "### Differences: the final output differs" in told
    assert "<script>" not in told
    assert "<img" not in told
    assert "\u202e" not in told
    for line in told.splitlines():
        if line.startswith("| ") and "---" not in line:
            assert len(re.findall(r"(?<!\\)\|", line)) in (5, 6, 10), line


def test_in_markdown_long_texts_say_which_words_differ_and_patches_which_lines() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n kept and kept and kept and kept and kept\n-was\n+{}\n"
    long = "the same words " * 20
    told = []
    for left, right in ((f"{long}were {long}", f"{long}are {long}"), (patch.format("one"), patch.format("two"))):
        told.append(report(recorded(left), recorded(right)).markdown())
    assert "[-were-] {+are+}" in told[0]
    assert "`-+one` `++two`" in told[1]


def test_in_markdown_values_that_look_alike_where_they_are_cut_say_where_they_differ() -> None:
    ones = []
    for word in ("b", "c"):
        with playhead.record("alike") as run:
            run.output = {"a" * 80, f"b{word}"}
        ones.append(str(run.id))
    assert "[-bb-] {+bc+}" in report(*ones).markdown()


def test_markdown_mentions_nobody_links_nothing_and_escapes_only_where_it_is_markdown() -> None:
    name = "fix-it @someone o/r#12 GH-34 https://x.test www.x.test a@x.test"
    told = report(recorded(name=name)).markdown()
    # As GitHub sees it once it is HTML: without backslashes and entities, which do not keep it from anything.
    seen = re.sub(r"\\([^\w\s])", r"\1", html.unescape(told))
    assert seen.count(name.replace("@", "@\u200b")[:8]) == 2
    assert not re.findall(r"@\w|#\d|GH-\d|://|www\.", seen)
    # What stands between tags is HTML, where a backslash is a letter.
    assert "<summary>Timeline of fix-it @\u200bsomeone" in told


def test_markdown_has_no_formula_and_no_emoji_where_an_agent_wrote_a_dollar_or_a_colon() -> None:
    told = report(recorded("std::key::of :+1: $x^2$", name="$y$ :tada:")).markdown()
    seen = re.sub(r"\\([^\w\s])", r"\1", html.unescape(told))
    assert "std::\u200bkey::of :\u200b+1: <span>$</span>x^2<span>$</span>" in seen
    assert "Timeline of <span>$</span>y<span>$</span> :\u200btada:" in seen
    assert re.findall(r":[\w+-]+:|(?<!<span>)\$", seen) == ["$"]  # what it cost


def following(name: str, seq: int) -> dict[str, Any]:
    return {"type": "added", "kind": "tool", "path": f"agent / {name}", "cause": "follows", "right_seq": seq,
            "asked": f'path="{name}"', "answered": "deleted"}  # fmt: skip


def test_markdown_lists_what_follows_too_as_far_as_there_is_room() -> None:
    found = report(recorded(), recorded("other"))
    assert found.diff is not None
    origin = {"type": "changed", "path": "agent / z", "cause": "output_changed", "changes": []}
    found.diff["deviations"] = [following("delete", 3), origin]
    told = found.markdown()
    line = '- event – → 3: **added** agent / delete\\(path="delete"\\) → deleted, follows\n- event – → –: **changed** agent / z'
    assert line in told
    found.diff["deviations"] = [following(f"call {at}", at) for at in range(1000)] + [origin]
    told = found.markdown()
    assert told.partition("1,001 deviations")[2].count("**added**") == _limits.REPORT_ROWS_SHORT - 1
    assert f"- and {1001 - _limits.REPORT_ROWS_SHORT} more" in told
    assert "agent / z" in told
    assert "1,001 deviations, 1,000 of them follow" in told


def test_markdown_says_how_many_fields_and_what_else_it_leaves_out() -> None:
    found = report(recorded(), recorded("other"))
    assert found.diff is not None
    changes = [{"path": f"/{at}", "left": 1, "right": 2} for at in range(5)]
    found.diff["deviations"] = [{"type": "changed", "path": "a", "cause": "output_changed", "changes": changes}]
    found.diff["not_compared"] = [{"side": "left", "seq": at, "why": "gone"} for at in range(60)]
    told = found.markdown()
    assert "  - `/2`: `1` → `2`\n  - and 2 more fields\n" in told
    assert "left, event 49: gone\n- and 10 more\n" in told


def test_what_differs_before_the_headline_is_said_in_each_form() -> None:
    found = report(recorded(), recorded("other"))
    assert found.diff is not None
    assert "Before:" not in found.markdown() + found.html()
    first = {"type": "changed", "path": "agent / asked", "cause": "input_changed", "left_seq": 0, "right_seq": 0}
    found.diff["deviations"] = [first, *found.diff["deviations"]]
    assert "\nBefore: event 0 → 0: **changed** agent / asked, input changed\n" in found.markdown()
    assert "<p>Before: " in found.html()


def test_what_two_runs_ran_with_has_its_values_and_names_files_as_they_are_called() -> None:
    found = report(recorded(), recorded("other"))
    assert found.diff is not None
    found.diff["config"] = [
        {"path": "/files_read/~1tmp~1a", "right": "ab" * 32},
        {"path": "/git/dirty", "left": None, "right": True},
    ]
    told, page = found.markdown(), found.html()
    assert '- `/files_read//tmp/a`: nothing → `"abababababab…"`\n- `/git/dirty`: `null` → `true`' in told
    assert "<code>/files_read//tmp/a</code>" in page


def test_markdown_says_which_findings_it_leaves_out() -> None:
    found = report(recorded())
    low, high = (
        {"rule": "write", "severity": one, "seq": 1, "detail": "x", "run": found.runs[0].id} for one in ("low", "high")
    )
    found.audit |= {"findings": [low, low, {**low, "severity": "info"}], "counts": {"write": 3}}
    left_out = "2 of low, 1 of info severity: these are in the page."
    assert f"### Audit: 3 write\n\n{left_out}\n" in found.markdown()
    found.audit["findings"].append(high)
    assert f"| write | high | 1 | x |\n\n{left_out}\n" in found.markdown()
    found.audit["findings"] = [high]
    assert "in the page." not in found.markdown()


def test_what_a_model_answered_is_in_the_timeline_of_both_forms() -> None:
    with playhead.record("agent") as run, playhead.model_call(provider="openai", model="m", request="q") as call:
        call.respond({"choices": [{"message": {"role": "assistant", "content": "forty two"}}]})
    found = report(str(run.id))
    assert "forty two" in found.html().partition('id="metrics"')[0]
    assert "forty two" in found.markdown()


def test_markdown_fits_into_a_comment_and_names_what_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(recorded(), recorded("other"))
    whole = found.markdown()
    assert "would not fit" not in whole
    assert found.diff is not None
    change = {"path": "/" + "long/" * 1000, "left": "a" * 1000, "right": "b" * 1000}
    one = {"type": "changed", "path": "p" * 1000, "cause": "input_changed", "changes": [change] * 3}
    found.diff["deviations"], found.diff["config"] = [one] * 1000, [change] * 1000
    assert len(found.markdown()) < 65_536
    monkeypatch.setattr(_limits, "REPORT_COMMENT_CHARACTERS_MAX", 2000)
    told = found.markdown()
    assert len(told) < 2500
    assert "The differences would not fit into a comment" in told
    assert found.runs[0].id in told


def test_tokens_and_a_cost_of_which_not_all_is_known_say_so():
    with playhead.record("cut") as run:
        for usage in ({"input": 10, "output": 2}, None):
            with playhead.model_call(provider="openai", model="gpt-5", request="?") as call:
                call.respond("!", usage=usage)
        with suppress(TimeoutError), playhead.model_call(provider="openai", model="gpt-5", request="?"):
            raise TimeoutError
    found = report(str(run.id))
    found.runs[0].summary["cost"] = 0.25  # whatever is installed here to price it
    found.runs[0].summary["cost_unpriced"] = []
    assert "| $0.2500 + unknown |" in found.markdown()
    assert "| 10 → 2 + unknown |" in found.markdown()
    assert "tokens in → out: 10 → 2 + unknown<" in found.html()
    found.runs[0].summary |= {"tokens_in": 0, "tokens_out": 0}
    assert "| unknown |" in found.markdown()
    assert "about $0.2500, estimated; 2 calls did not say their tokens" in found.html()
