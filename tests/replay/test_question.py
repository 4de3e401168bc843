from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.replay.questions import URLS, chat, event, model, prompt, says, tool

import playhead
from playhead.event.keys import ASKED, call_key
from playhead.replay.question import Question, nearest, question, question_of


def test_the_question_of_a_model_is_its_request_without_what_is_volatile() -> None:
    asked = chat(says("hi"), metadata={"trace": "1"}, prompt_cache_key="k")
    assert (asked.name, asked.title) == ("gpt-5", "model gpt-5")
    assert asked.input == {"operation": "chat", "model": "gpt-5", "messages": [says("hi")]}


@pytest.mark.parametrize("operation", URLS)
def test_two_operations_with_one_request_are_two_questions(operation: str) -> None:
    data = {
        "model": "m",
        "operation": operation,
        "request": {"x": 1},
        "http": {"method": "POST", "url": URLS[operation]},
    }
    other = {**data, "operation": "count_tokens"}
    assert question(1, "model.invoked", "0", data).input != question(1, "model.invoked", "0", other).input


def test_a_request_that_has_an_operation_of_its_own_keeps_it() -> None:
    assert model("chat", {"operation": "mine"}).input == {"operation": "chat", "request": {"operation": "mine"}}


@pytest.mark.parametrize(
    ("kind", "data", "name", "value", "title"),
    [
        ("model.invoked", {"model": "m", "request": {"messages": []}}, "m", {"messages": []}, "model m"),
        ("tool.called", {"name": "grep", "input": {"q": "x"}}, "grep", {"q": "x"}, "tool grep"),
        (
            "http.sent",
            {"method": "GET", "url": "https://x/y", "headers": [["a", "b"]]},
            "GET",
            {"url": "https://x/y"},
            "HTTP GET https://x/y",
        ),
        (
            "process.started",
            {"argv": ["git", "status"], "cwd": "/x", "stdin": "in", "options": {"umask": 2}},
            None,
            {"argv": ["git", "status"], "stdin": "in", "options": {"umask": 2}},
            "process git status",
        ),
        (
            "mcp.requested",
            {"method": "prompts/get", "params": {"name": "p", "_meta": {"progressToken": 1}}},
            "prompts/get",
            {"params": {"name": "p"}},
            "MCP prompts/get",
        ),
    ],
)
def test_every_kind_of_call_has_names_for_its_parts(kind: str, data: Any, name: Any, value: Any, title: str) -> None:
    asked = question_of(event(7, kind, data, lane="0.2", key="k1:x"))
    assert asked == Question(7, kind, "0.2", name, value, "k1:x")
    assert asked.title == title
    assert kind in ASKED


def test_questions_are_the_same_where_their_keys_are(tmp_path: Path) -> None:
    with playhead.record("x", store=tmp_path, capture=False) as run:
        for text in ("one", "two", "one"):
            with playhead.model_call(model="m", request={"messages": [says(text)]}) as call:
                call.respond({})
    found = [question_of(one) for one in playhead.load(run.id, tmp_path).events() if one.kind == "model.invoked"]
    assert found[0].input == found[2].input != found[1].input
    assert [one.key for one in found] == [call_key("model.invoked", "m", one.input) for one in found]


# The nearest one.


def test_the_question_with_one_word_changed_is_the_nearest() -> None:
    recorded = [
        prompt(f"Look at file {letter * 9} and explain it", seq=number) for number, letter in enumerate("abcdefg")
    ]
    assert nearest(prompt("Look at file ddddddddd and summarise it"), recorded) == recorded[3]


def test_among_equals_the_next_in_the_lane_that_is_still_to_be_asked_is_the_nearest() -> None:
    recorded = [prompt("go on", seq=seq, lane=lane) for seq, lane in enumerate(["0", "0.1", "0", "0.1", "0"])]
    found = nearest(prompt("go on now", lane="0.1"), recorded, consumed={0, 1})
    assert found is recorded[3]


def test_what_is_alike_comes_before_what_is_next() -> None:
    recorded = [
        tool("search", seq=1, q="weather in Paris"),
        tool("search", seq=2, q="the history of the printing press"),
    ]
    assert nearest(tool("search", q="the history of the steam press"), recorded) is recorded[1]


def test_a_question_that_drifted_to_another_lane_is_found_among_many() -> None:
    recorded = [prompt(f"number {number}", seq=number) for number in range(10_000)]
    recorded.append(prompt("something else entirely", seq=10_000, lane="0.7"))
    assert nearest(prompt("something else entirely", lane="0"), recorded, range(9000)) is recorded[-1]


def test_a_tool_of_another_name_is_no_neighbour_unless_it_is_asked_the_same() -> None:
    assert nearest(tool("read_file", path="a/b/c.txt"), [tool("delete_all", really="yes")]) is None
    assert nearest(tool("read_file", path="a/b/c.txt"), [tool("open_file", path="a/b/c.txt")]) is not None
    assert nearest(tool("read_file"), [prompt("x")]) is None
    assert nearest(tool("read_file"), []) is None


def test_long_conversations_are_told_apart_by_their_ends() -> None:
    history = [says("blah " * 2000, "user" if number % 2 else "assistant") for number in range(50)]
    recorded = [chat(*history, says(f"question about topic{number}"), seq=number) for number in range(30)]
    assert nearest(chat(*history, says("query about topic17")), recorded) is recorded[17]


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("tool.called", {"name": "grep", "input": {"q": "a"}}, 'q="a"'),
        ("http.sent", {"method": "POST", "url": "http://a/b", "body": {"n": 1}}, "n=1"),
        ("http.sent", {"method": "GET", "url": "http://a/b"}, ""),
        ("process.started", {"argv": ["git", "status"]}, ""),
        ("mcp.requested", {"method": "tools/call", "params": {"name": "add"}}, 'name="add"'),
    ],
)
def test_what_was_asked_is_said_in_few_words_beside_who_was(kind: str, data: Any, words: str) -> None:
    assert question(1, kind, "0", data).words == words


@pytest.mark.parametrize(
    "asked",
    [
        {"messages": [{"role": "system", "content": "Be kind"}, {"content": "Plan the fix", "role": "user"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Plan the fix"}]}]},
        {"contents": [{"role": "user", "parts": [{"text": "Plan the fix"}]}]},
        {"input": "Plan the fix"},
    ],
)
def test_of_a_model_that_is_the_last_it_was_told(asked: dict[str, Any]) -> None:
    found = question(1, "model.invoked", "0", {"model": "gpt-5", "operation": "chat", "request": asked})
    assert found.words == '"Plan the fix"'
