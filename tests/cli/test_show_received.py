"""What the command line says of a run that came from outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.views.outside import FINISH, TRACE, Log, Outside, Span, written

from playhead.store.files import FileStore


def question(text: str) -> Span:
    asked = {"provider": "openai", "model": "gpt-5", "request": {"messages": [{"role": "user", "content": text}]}}
    closed = {"status": "ok", "response": "hello", "usage": {"input": 3, "output": 4}}
    return Span("m", "r", 2_000_000, 4_000_000, "model.invoked", asked, closed)


@pytest.fixture
def received(store: Path) -> Outside:
    """Write a run whose root came last, of which more came after its end, and whose call was told anew."""
    tool = Span("t", "gone", 4_000_000, 5_500_000, "tool.called", {"name": "search", "input": {"q": "x"}})
    log = Log("m", 2_500_000, {"name": "gen_ai.choice", "severity": "INFO", "body": {"content": "hello"}})
    early, root = Span("e", "r", 500_000, 1_200_000), Span("r", None, 1_000_000, 9_000_000, opened={"name": "shop"})
    outside = written(
        [tool, question("old")], [log], [FINISH], [early], [question("new"), root], [FINISH], store=FileStore(store)
    )
    outside.ledger.close()
    return outside


def test_show_has_the_rows_in_the_order_of_the_times_and_says_so(ask, received):
    said = ask("show", received.run)
    assert said.code == 0
    assert f"received   otlp, trace {TRACE}; in the order of the times" in said.out
    assert "took       8.50 s, 15 events" in said.out
    assert "✓ ok after 8.50 s\n" in said.out
    rows = said.out.split("\n\n")[1].splitlines()
    assert [" ".join(row.split()[:4]) for row in rows] == [
        "12 ✓ step shop",
        "9 ✓ step s",
        "4 ✓ model gpt-5",
        "6 · log gen_ai.choice",
        "2 ✓ tool search(q=\"x\")",
        "8 · reopened more",
    ]  # fmt: skip
    assert 'log gen_ai.choice INFO {content: "hello"}' in said.out
    assert "-" not in "".join(row[80:] for row in rows)


def test_the_json_of_show_has_where_it_came_from(ask, received):
    found = ask("show", received.run, "--json").json
    assert (found["run"]["external_id"], found["run"]["received"]["rule"]) == (TRACE, "trace")
    assert (found["run"]["duration_us"], found["run"]["status"]) == (8_500_000, "ok")
    assert [row["at_us"] for row in found["timeline"] if not row["quiet"]][:4] == [500_000, 0, 1_500_000, 2_000_000]
    assert {row["kind"] for row in found["timeline"] if row["quiet"]} == {"emitter.described", "span.revised"}


def test_time_travel_says_in_which_order_and_has_what_was_told_last(ask, received):
    said = ask("show", received.run, "--at", "gpt-5").out
    assert f"after event 5 of {received.run}, in the order of the times: model.responded, 3.50 s into the run" in said
    assert "  user: new\n" in said
    assert "for -" not in ask("show", received.run, "--at", "9").out


def test_what_was_sealed_stays_what_it_was(ask, received):
    event = ask("show", received.run, "--event", "4", "--json").json
    assert event["data"]["request"]["messages"][0]["content"] == "old"
    sealed = b"".join(received.store.lines(received.run))
    assert ask("show", received.run, "--raw").out.encode() == sealed
    assert ask("verify", received.run).code == 0


def test_tail_follows_in_the_order_of_arrival(ask, received):
    said = ask("tail", received.run, "-n", "-1", "--no-follow").out.splitlines()
    assert [int(line.split()[0]) for line in said] == list(range(15))
    assert "revised it came again, with other content" in said[11]


def test_stats_audit_and_diff_see_what_was_told_last(ask, received):
    groups = ask("stats", received.run, "--by", "step", "--json").json["groups"]
    assert {one["name"]: one["steps"]["p50_ms"] for one in groups} == {"shop": 8000.0, "s": 700.0, None: None}
    found = ask("audit", received.run, "--json").json["findings"]
    assert [(one["rule"], one["path"]) for one in found if one["rule"] == "network"] == [("network", "step shop")]
    said = ask("diff", received.run, received.run).out
    assert said.count("(in the order of the times)") == 2
