"""Of two things that are compared the fields that differ are told, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from tests.views.diff.stories import (
    Part,
    both_ways,
    diffed,
    model,
    run,
    step,
    tool,
)  # fmt: skip

from playhead.errors import UsageError
from playhead.event.envelope import Event


def conversation(ids: str) -> list[Part]:
    """Make a loop of a model and a tool, with the ids that a provider gave to the calls of this run."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    parts: list[Part] = []
    for number in range(3):
        id, asks = f"call_{ids}{number}", {"name": "f", "arguments": f'{{"i": {number}}}'}
        said = {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": asks}]}
        answer = {"id": f"cmpl-{ids}{number}", "object": "chat.completion", "choices": [{"message": said}]}
        parts += [model({"messages": list(messages)}, answer), tool("f", {"i": number}, number)]
        messages += [said, {"role": "tool", "tool_call_id": id, "content": str(number)}]
    return parts


def test_new_ids_of_a_provider_do_not_hide_a_renaming_or_a_wrapper() -> None:
    left, right = run(step("work", *conversation("a"))), run(step("job", *conversation("b")), run="run_b")
    assert both_ways(left, right) == [("moved", None, "work")]
    left, body = run(*conversation("a")), conversation("b")
    one = run(*body[:2], step("w", body[2]), *body[3:], run="run_b")
    assert both_ways(left, one) == [("added", None, "w"), ("moved", "follows", "gpt-5")]
    some = run(*body[:2], step("w", *body[2:]), run="run_b")
    assert [one for one in both_ways(left, some) if one[1] != "follows"] == [("added", None, "w")]


def test_what_is_ignored_of_texts_is_not_compared_in_what_was_printed_either() -> None:
    def printed(text: str, name: str) -> list[Event]:
        return run(Part("output.written", {"stream": "stdout", "text": text}), run=name)

    left, right = printed("a", "run_a"), printed("b", "run_b")
    assert both_ways(left, right) == [("changed", "output_changed", "stdout")]
    assert both_ways(left, right, ignore=["/text"]) == []


def test_the_ids_that_a_provider_gives_are_no_difference() -> None:
    def story(call: str, answer: str, run_id: str) -> list[Event]:
        asked = {
            "id": answer,
            "object": "chat.completion",
            "created": len(answer),
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "tool_calls": [{"id": call, "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                    }
                }
            ],
        }
        messages = [{"role": "user", "content": "go"}]
        later = [*messages, asked["choices"][0]["message"], {"role": "tool", "tool_call_id": call, "content": "1"}]  # type: ignore[index]
        return run(
            model({"messages": messages}, asked),
            model({"messages": later}, {"id": "x" + answer, "object": "o", "choices": [{"text": "done"}]}),
            run=run_id,
        )

    assert both_ways(story("call_a", "cmpl-1", "run_a"), story("call_b", "cmpl-22", "run_b")) == []


def test_what_is_given_to_a_tool_is_compared_with_its_ids() -> None:
    def said(id: str) -> dict[str, Any]:
        return {
            "type": "message",
            "content": [{"type": "tool_use", "id": "t", "name": "get", "input": {"id": id, "type": "user"}}],
        }

    left, right = run(model("q", said("7"))), run(model("q", said("8")), run="run_b")
    assert both_ways(left, right) == [("changed", "output_changed", "gpt-5")]
    assert [change.path for change in diffed(left, right).deviations[0].changes] == ["/response/content/0/input/id"]


def test_a_changed_prompt_is_named_by_its_path_and_its_words() -> None:
    left = run(model({"messages": [{"role": "user", "content": "Fix the login"}]}, "ok"))
    right = run(model({"messages": [{"role": "user", "content": "Fix the logout"}]}, "ok"), run="run_b")
    (one,) = diffed(left, right).deviations
    assert (one.type, one.cause) == ("changed", "input_changed")
    assert one.as_dict()["changes"] == [
        {
            "path": "/request/messages/0/content",
            "left": "Fix the login",
            "right": "Fix the logout",
            "words": "Fix the [-login-] {+logout+}",
        }
    ]


def test_what_is_ignored_is_not_compared() -> None:
    left = run(tool("now", {"at": 1, "q": 2}, {"time": 1, "rows": [{"id": 1, "v": 2}]}))
    right = run(tool("now", {"at": 5, "q": 2}, {"time": 9, "rows": [{"id": 4, "v": 2}]}), run="run_b")
    assert both_ways(left, right) == [("changed", "input_changed", "now")]
    assert both_ways(left, right, ignore=["/input/at", "/output/time"]) == [("changed", "output_changed", "now")]
    assert both_ways(left, right, ignore=["/input/at", "/output/time", "/output/rows/*/id"]) == []
    with pytest.raises(UsageError, match="not a path"):
        diffed(left, right, ignore=["output"])


@pytest.mark.parametrize(
    ("left", "right", "ignore", "paths"),
    [
        ([1, 2, 3], [1, 2, 4], ["/output/0", "/output/1"], ["/output/2"]),
        ([1, 2, 3], [9, 8, 3], ["/output/0", "/output/1"], []),
        ([1, 2, 3], [9, 8, 3], ["/output/1", "/output/0"], []),
        ([1, 2, 3], [9, 2, 4], ["/output/0"], ["/output/2"]),
        ([1, 2], [1], ["/output/1"], []),
        ([1, 2], [], ["/output/0"], ["/output/1"]),
        ([1, 2], [3, 4, 5], ["/output/*"], []),
    ],
)
def test_items_of_lists_that_are_ignored_leave_their_numbers_to_the_others(
    left: list[int], right: list[int], ignore: list[str], paths: list[str]
) -> None:
    ones = run(tool("t", {}, left)), run(tool("t", {}, right), run="run_b")
    for found in (diffed(*ones, ignore=ignore), diffed(*ones[::-1], ignore=ignore)):
        assert [change.path for one in found.deviations for change in one.changes] == paths


@pytest.mark.parametrize(
    ("left", "right", "ignore", "path"),
    [
        (2, 9, "/output/*", "/output"),
        ({"a": 1}, [1], "/output/*", "/output"),
        ({"a/b": 1}, {"a/b": 2}, "/output/a/b", "/output/a~1b"),
    ],
)
def test_what_a_path_does_not_name_is_told_with_the_field_that_differs(
    left: Any, right: Any, ignore: str, path: str
) -> None:
    found = diffed(run(tool("t", {}, left)), run(tool("t", {}, right), run="run_b"), ignore=[ignore])
    assert [[change.path for change in one.changes] for one in found.deviations] == [[path]]


def test_numbers_that_are_the_same_are_no_difference_and_true_is_not_one() -> None:
    assert both_ways(run(tool("a", {}, [1, 2.0])), run(tool("a", {}, [1.0, 2]), run="run_b")) == []
    assert both_ways(run(tool("a", {}, 1)), run(tool("a", {}, True), run="run_b")) == [
        ("changed", "output_changed", "a")
    ]
