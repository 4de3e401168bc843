from __future__ import annotations

import tomllib
from typing import Any

from tests.replay.questions import event, says

from playhead.event.envelope import Event
from playhead.event.keys import call_key
from playhead.event.normalise import Normalisers, rule_of
from playhead.replay.suggest import suggest

UUIDS = "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "9b2e7a10-1c2d-4e5f-8a9b-aabbccddeeff"


def asked(seq: int, text: str, lane: str = "0") -> Event:
    request = {"messages": [says("Be careful.", "system"), says(text)]}
    key = call_key("model.invoked", "m", request)
    return event(seq, "model.invoked", {"model": "m", "request": request}, lane=lane, key=key)


def called(seq: int, name: str, **arguments: Any) -> Event:
    return event(seq, "tool.called", {"name": name, "input": arguments}, key=call_key("tool.called", name, arguments))


def test_what_looks_volatile_becomes_a_rule_and_the_runs_become_equal() -> None:
    left = [asked(1, "Today is 2025-11-14. Go."), asked(3, "same"), called(5, "search", q="x", session=UUIDS[0])]
    right = [asked(1, "Today is 2026-01-02. Go."), asked(3, "same"), called(5, "search", q="x", session=UUIDS[1])]
    found = suggest(left, right)
    assert (found.questions, found.equal, found.become_equal, len(found.differing)) == (3, 1, 2, 0)
    assert found.rules == {
        "date": {
            "path": "/messages/*/content",
            "pattern": r"(?<!\d)\d{4}[-/]\d{2}[-/]\d{2}(?!\d)",
            "instead": "<date>",
            "kinds": ["model.invoked"],
        },
        "uuid": {"path": "/session", "instead": "<uuid>", "kinds": ["tool.called"]},
    }
    assert found.examples == {"date": "2025-11-14 | 2026-01-02", "uuid": f"{UUIDS[0]} | {UUIDS[1]}"}


def test_the_toml_holds_the_very_rules() -> None:
    found = suggest([asked(1, "at 9:41 AM in /tmp/tmpab12cd34")], [asked(1, "at 10:02 PM in /tmp/tmpzz98yx76")])
    assert set(found.rules) == {"time", "temp-path"}
    assert tomllib.loads(found.toml())["normalise"] == found.rules
    assert suggest([], []).toml() == ""


def test_what_does_not_look_volatile_gets_no_rule_and_is_listed() -> None:
    found = suggest([asked(1, "Be kind on 2025-11-14")], [asked(1, "Be rude on 2025-11-15")])
    assert list(found.rules) == ["date"]
    assert found.become_equal == 0
    [pair] = found.differing
    assert [change.as_dict()["words"] for change in pair.changes] == ["Be [-kind-] {+rude+} on <date>"]
    assert found.as_dict()["differing"][0]["cause"].startswith("the text of the prompt changed")


def test_a_question_of_one_run_only_is_named_and_shifts_no_other() -> None:
    left = [asked(1, "one"), asked(3, "two"), asked(5, "three of 2025-11-14")]
    right = [asked(1, "one"), asked(3, "extra"), asked(5, "two"), asked(7, "three of 2025-11-15")]
    found = suggest(left, right)
    assert [one.seq for one in found.unpaired] == [3]
    assert (found.questions, found.equal, found.become_equal) == (3, 2, 1)


def test_lanes_are_paired_with_themselves() -> None:
    left = [asked(1, "a 2025-11-14", "0.1"), asked(2, "b 2025-11-14", "0.2")]
    right = [asked(1, "b 2025-11-15", "0.2"), asked(2, "a 2025-11-15", "0.1")]
    assert suggest(left, right).become_equal == 2


def test_rules_in_force_are_not_proposed_again() -> None:
    left, right = [asked(1, "on 2025-11-14")], [asked(1, "on 2025-11-15")]
    in_force = Normalisers([rule_of("d", pattern=r"\d{4}-\d\d-\d\d")], registered=False)
    found = suggest(left, right, in_force)
    assert (found.rules, found.equal) == ({}, 1)


def test_one_rule_for_two_kinds_names_both() -> None:
    left = [called(1, "a", id=UUIDS[0]), event(2, "mcp.requested", {"method": "x", "params": {"id": UUIDS[0]}})]
    right = [called(1, "a", id=UUIDS[1]), event(2, "mcp.requested", {"method": "x", "params": {"id": UUIDS[1]}})]
    assert [(rule["path"], rule["kinds"]) for rule in suggest(left, right).rules.values()] == [
        ("/id", ["tool.called"]),
        ("/params/id", ["mcp.requested"]),
    ]


def test_what_a_tool_asks_inside_is_left_out() -> None:
    def one(day: str) -> list[Event]:
        inner = {"model": "m", "request": {"messages": [says(f"on {day}")]}}
        return [
            event(1, "tool.called", {"name": "t", "input": {}}, span="1"),
            event(2, "step.started", {"name": "s"}, span="2", parent="1"),
            event(3, "model.invoked", inner, span="3", parent="2"),
            event(4, "tool.called", {"name": "guessed", "input": {"day": day}, "inferred": True}, span="4"),
        ]

    found = suggest(one("2025-11-14"), one("2025-11-15"))
    assert (found.questions, found.equal, found.rules) == (1, 1, {})


def test_a_rule_for_one_item_leaves_the_others_alone() -> None:
    def ran(*argv: str) -> Event:
        return event(1, "process.started", {"argv": list(argv)}, key=call_key("process.started", None, {"argv": argv}))

    def conversation(system: str, moment: str) -> Event:
        messages = [{"role": "system", "content": system}, {"role": "tool", "content": moment}]
        return event(3, "model.invoked", {"operation": "chat", "request": {"messages": messages}}, key=moment + system)

    left = [ran("cat", "/tmp/tmpab12cd34/a"), conversation("Refund nothing.", "2025-11-14T09:41:00")]
    right = [ran("cat", "/tmp/tmpzz98yx76/a"), conversation("Refund nothing.", "2026-01-02T10:02:00")]
    found = suggest(left, right)
    assert found.become_equal == 2
    assert all("pattern" in rule for rule in found.rules.values())
    changed = [ran("rm", "/tmp/tmpzz98yx76/a"), conversation("Refund everything.", "2026-01-02T10:02:00")]
    again = suggest(left, changed, Normalisers.of_settings(found.rules))
    assert (again.equal, len(again.differing)) == (0, 2)
