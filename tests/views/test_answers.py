from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.event.plain import text_mark
from playhead.views import text
from playhead.views.answers import Call, Meaning, read, whole


def said(*given: Any) -> str:
    return read(*given).told


CALL = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("look at\n  the file", '"look at the file"'),
        ({"text": "look"}, '"look"'),
        ({"choices": [{"message": {"role": "assistant", "content": "look"}}]}, '"look"'),
        ({"choices": [{"message": {"content": None, "tool_calls": [CALL, CALL]}}]}, 'calls read_file(path="a"), read_file(path="a")'),
        ({"choices": [{"message": {"content": "First", "tool_calls": [CALL]}}]}, 'calls read_file(path="a"), "First"'),
        ({"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]}, '"a"'),
        (
            {"output": [{"type": "reasoning", "content": [{"text": "hm"}]},
                        {"type": "message", "content": [{"type": "output_text", "text": "look"}]},
                        {"type": "function_call", "name": "grep", "arguments": "{}"}]},
            'calls grep, "look"',
        ),
        (
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "A"},
                         {"type": "text", "text": "B"}, {"type": "tool_use", "name": "grep", "input": {}}]},
            'calls grep, "A B"',
        ),
        ({"candidates": [{"content": {"parts": [{"text": "A"}, {"functionCall": {"name": "g", "args": {}}}]}}]},
         'calls g, "A"'),
        ({"$object": "openai.ChatCompletion", "fields": {"choices": [{"message": {"content": "A"}}]}}, '"A"'),
        (["Hel", "lo"], '"Hello"'),
        ({"content": [{"type": "tool_use", "name": "edit", "input": {"path": "a", "text": "x" * 99}}]},
         'calls edit(path="a", text="xxxxxxxxxxxxxxxxxxxxxxx…)'),
        ({"output": [{"type": "custom_tool_call", "name": "sh", "input": "ls -l"}]}, 'calls sh("ls -l")'),
        ({"tool_calls": [{"function": {"name": "f", "arguments": '{"cut": '}}]}, """calls f('{"cut": ')"""),
        ({"tool_calls": [{"function": {"name": "f", "arguments": None}}, {"function": {"name": "g"}}]}, "calls f, g"),
        ({"content": {"$blob": "a" * 64, "len": 50_000, "as": "text"}}, '"<text, 50.0 kB>"'),
    ],
)  # fmt: skip
def test_the_usual_shapes_of_an_answer_are_understood(response: Any, expected: str) -> None:
    assert said(response, 80) == expected


@pytest.mark.parametrize("response", [None, 5, {}, [], {"score": 0.5}, {"$repr": "<Answer>"}, {"choices": "odd"[:0]}])
def test_of_any_other_shape_nothing_is_said(response: Any) -> None:
    assert said(response, 80) == ""


def test_an_answer_that_was_written_as_a_reference_is_followed() -> None:
    assert said({"$same": "3#/response"}, 80, lambda value: {"text": "look"}) == '"look"'
    asked = {"tool_calls": [{"function": {"name": "f", "arguments": {"$same": "3#/response/a"}}}]}
    assert said(asked, 80, lambda value: '{"path": "a"}') == 'calls f(path="a")'


names = st.sampled_from(
    ["choices", "message", "content", "text", "tool_calls", "function", "name", "output", "$object"]
)
shapes = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=30
)


@given(shapes, st.integers(2, 120))
def test_any_answer_is_said_in_one_line_of_bounded_width(response: Any, width: int) -> None:
    assert text.cells(said(response, width)) <= width


def test_an_endless_answer_is_not_walked_to_its_end() -> None:
    deep: Any = {"content": []}
    for _ in range(50):
        deep = {"content": [deep] * 20}
    assert said(deep, 80) == ""


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"choices": [{"message": {"content": "long " * 100, "tool_calls": [CALL]}}]}, ["read_file"]),
        ({"content": [{"type": "server_tool_use", "name": "web_search", "input": {}},
                      {"type": "tool_use", "name": "grep", "input": {}}]}, ["grep"]),
        ({"output": [{"type": "mcp_call", "name": "far", "arguments": "{}"},
                     {"type": "function_call", "name": "near", "arguments": "{}"}]}, ["near"]),
        ({"candidates": [{"content": {"parts": [{"functionCall": {"name": "g", "args": {}}}]}}]}, ["g"]),
        ({"text": "none"}, []),
    ],
)  # fmt: skip
def test_the_tools_that_the_agent_is_to_run_are_told_from_those_of_the_provider(
    response: Any, expected: list[str]
) -> None:
    assert [call.name for call in read(response, 80).asked] == expected


def test_who_knows_the_protocol_is_asked_for_what_was_not_found() -> None:
    meaning = Meaning("Now.", [("1", "look", {"at": "a"}), (None, "stop", None)])
    seen: list[Any] = []

    def interpret(response: Any) -> Meaning:
        seen.append(response)
        return meaning

    resolved = {"own": 1}
    told, asked = read({"$same": "0#/x"}, 80, lambda value: resolved, interpret)
    assert told == 'calls look(at="a"), stop, "Now."'
    assert asked == [Call("look", 'at="a"', "1"), Call("stop")]
    assert seen == [resolved]
    meaning = Meaning(None, [(None, "look", {})])
    assert read({"text": "here"}, 80, None, interpret).told == 'calls look, "here"'
    both = {"choices": [{"message": {"content": "First", "tool_calls": [CALL]}}]}
    assert read(both, 80, None, interpret).told == 'calls read_file(path="a"), "First"'
    assert seen == [resolved, {"text": "here"}]  # what was found is not asked for
    assert read(None, 80, None, interpret).told == read({"own": 1}, 80, None, lambda response: None).told == ""


def test_a_text_that_is_no_valid_unicode_is_said_too() -> None:
    cut = text_mark("half \ud83d")  # of an emoji, as where the other half came in another piece
    assert read({"choices": [{"message": {"content": cut}}]}, 80).told == '"half \\ud83d"'
    assert whole(cut, 80).text == "half \\ud83d"
