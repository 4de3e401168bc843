from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.docs_pages import ROOT, blocks
from tests.replay.questions import chat, prompt, says, tool

from playhead import _limits
from playhead.event.kinds import ReplayDeviated
from playhead.replay.deviation import Deviation, deviation_lines, deviation_text, other_output, unanswered, unasked
from playhead.replay.question import Question
from playhead.views.text import cells
from playhead.views.words import plain

SYSTEM = "You are a careful engineer.\nToday is {}.\nAnswer in one sentence."


def sample() -> Deviation:
    """Return the deviation that the guide shows."""
    recorded = chat(says(SYSTEM.format("2025-11-14"), "system"), says("Plan a fix for issue 1842"), seq=12, lane="0.1")
    asked = chat(says(SYSTEM.format("2026-11-15"), "system"), says("Plan a fix for issue 1842"), seq=15, lane="0.1")
    return unanswered(asked, recorded, where="agent.py:31")


def first(deviation: Deviation) -> str:
    return deviation.text.splitlines()[0]


def test_the_guide_shows_this_text() -> None:
    page = (ROOT / "docs" / "guides" / "deviations.md").read_text("utf-8")
    assert sample().text + "\n" in [block.body for block in blocks(page) if block.language == "text"]


def test_a_changed_question_says_in_its_first_line_what_changed() -> None:
    assert first(sample()) == (
        "model gpt-5 was asked something else (recorded event 12): /messages/0/content [-2025-11-14-] {+2026-11-15+}"
    )
    assert "event 15 of the replay, lane 0.1, at agent.py:31" in sample().text
    assert "event 12 of the recording, lane 0.1, not asked so far" in sample().text
    assert "line 2: Today is [-2025-11-14-] {+2026-11-15+}." in sample().text
    assert "cause     a date in /messages/0/content" in sample().text


def test_a_question_asked_too_often_counts() -> None:
    asked = tool("read_file", path="a.py")
    found = unanswered(asked, asked, recorded_times=2, asked_times=3, consumed=True)
    assert found.type == "repeated"
    assert first(found) == "tool read_file was asked a third time, recorded twice (recorded event 3)"
    more = unanswered(asked, asked, recorded_times=21, asked_times=22)
    assert "a 22nd time, recorded 21 times" in first(more)


def test_a_question_that_nobody_recorded_says_so() -> None:
    found = unanswered(tool("delete", path="a.py"), None)
    assert found.type == "added"
    assert first(found) == "tool delete was asked something that is not on the tape"
    assert 'path="a.py"' in found.text


def test_a_question_that_is_like_one_answered_already_is_added_not_changed() -> None:
    found = unanswered(tool("grep", q="b"), tool("grep", q="a"), consumed=True)
    assert (found.type, found.seq) == ("added", 3)


@pytest.mark.parametrize(
    ("recorded", "asked", "what"),
    [
        (prompt("What is the capital of France?"), prompt("What is the capital of Spain?"), "changed"),
        (prompt("What is the capital of France?"), prompt("Summarise this report"), "added"),
        (tool("read", path="src/a.py"), tool("read", path="src/b.py"), "changed"),
        (tool("search", q="weather"), tool("search", q="bread"), "added"),
        (tool("search", q="2025-11-14"), tool("search", q="2026-12-15"), "changed"),
        (tool("search", n=1), tool("search", n=1, limit=3), "changed"),
        (tool("search", q="weather"), tool("find", q="weather"), "added"),
        (prompt("hi"), prompt("hi", model="other"), "changed"),
    ],
)
def test_another_question_is_told_from_another_form_of_it(recorded: Question, asked: Question, what: str) -> None:
    assert unanswered(asked, recorded).type == what


def test_a_question_that_was_never_asked_says_so() -> None:
    never = unasked(tool("grep", seq=9, q="a"), cause="the code has changed", where="agent.py:7")
    assert first(never) == 'tool grep q="a" was recorded and never asked (recorded event 9)'
    assert "agent.py:7, the last before it that was done again" in never.text
    assert "the code has changed" in never.text
    twice = unasked(tool("grep", q="a"), recorded_times=2, asked_times=1)
    assert first(twice) == 'tool grep q="a" was recorded twice and only once asked (recorded event 3)'


def test_a_question_from_another_lane_names_both() -> None:
    found = unanswered(tool("grep", lane="0.2", q="a"), tool("grep", lane="0.1", q="a"))
    assert found.type == "moved"
    assert first(found) == "tool grep was asked in lane 0.2, recorded in lane 0.1 (recorded event 3)"


def test_another_output_shows_where_it_differs() -> None:
    assert first(other_output({"a": 1}, {"a": 2})) == "the output is not the recorded one: /a [-1-] {+2+}"
    assert "Hello [-Ada-] {+Bob+}" in other_output("Hello Ada", "Hello Bob").text


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("read", "was read, which is not on the tape"),
        ("write", "would be written, which a replay does not do"),
        ("network", "would be connected to, which a replay refuses"),
        ("process", "would be started, which is not on the tape"),
    ],
)
def test_what_the_tape_cannot_answer_is_named(kind: Any, said: str) -> None:
    assert first(Deviation(kind, at=5, lane="0", detail="10.0.0.1:443")) == f"10.0.0.1:443 {said}"


def test_it_is_json_with_all_of_its_fields() -> None:
    found = json.loads(json.dumps(sample().as_dict()))
    assert {"type", "seq", "at", "lane", "kind", "name", "asked", "nearest", "changes", "cause", "recorded_times",
            "asked_times", "text"} <= set(found)  # fmt: skip
    assert (found["type"], found["seq"], found["at"], found["lane"]) == ("changed", 12, 15, "0.1")
    assert found["changes"][0]["path"] == "/messages/0/content"
    assert found["text"] == sample().text


def test_the_event_names_both_questions_by_their_events_and_repeats_neither() -> None:
    fields = sample().as_fields()
    assert set(fields) <= {field.name for field in msgspec.structs.fields(ReplayDeviated)}
    assert (fields["seq"], fields["at"], fields["text"]) == (12, 15, sample().text)


def test_colours_are_only_styles_of_the_same_text() -> None:
    lines = deviation_lines(sample())
    assert "\n".join(plain(line) for line in lines) == deviation_text(sample())
    assert "\x1b" not in deviation_text(sample())
    assert {part[1] for line in lines for part in line if isinstance(part, tuple)} == {"bold", "dim", "red", "green"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300) | st.just("long " * 5000),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=200), inner, max_size=5),
)


@given(VALUES, VALUES, st.sampled_from(["model.invoked", "tool.called", "process.started", "x.y"]), st.text())
def test_the_text_fits_a_page_whatever_was_asked(left: Any, right: Any, kind: str, name: str) -> None:
    recorded, asked = Question(1, kind, "0", name, left), Question(2, kind, "0", name, right)
    for found in (
        unanswered(asked, recorded), unanswered(asked, None), unasked(recorded), other_output(left, right),
        unanswered(asked, recorded, recorded_times=3, asked_times=4),
    ):  # fmt: skip
        lines = found.text.split("\n")
        assert len(lines) <= _limits.DEVIATION_LINES_MAX
        assert all(cells(line) <= _limits.DEVIATION_WIDTH_MAX for line in lines)
        assert "\x1b" not in found.text


def test_many_changes_are_counted_and_not_listed() -> None:
    left = {"a": {str(number): "x" for number in range(30)}}
    right = {"a": {str(number): "y\n" * 30 for number in range(30)}}
    text = unanswered(tool("f", **right), tool("f", **left)).text
    assert "differs   in 30 places" in text
    assert "and 22 more; `--json` has them" in text


def test_a_text_of_terminal_codes_is_shown_as_escapes() -> None:
    text = unanswered(prompt("evil \x1b[2J\u202e text"), prompt("good text")).text
    assert "\\x1b[2J\\u202e" in text
