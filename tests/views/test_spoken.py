"""Messages of every usual shape are read as what they say; what has another shape is left as it is."""

from __future__ import annotations

from typing import Any

import pytest

from playhead.views.spoken import Said, spoken, tool_names

CALL = {"name": "read", "arguments": '{"name": "a.json"}'}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "user", "content": "Hi."}, [Said("text", "Hi.")]),
        ({"role": "user", "parts": [{"text": "Hi."}]}, [Said("text", "Hi.")]),
        ({"role": "user", "content": [{"type": "input_text", "text": "a"}, "b"]}, [Said("text", "a"), Said("text", "b")]),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": CALL}]},
            [Said("call", 'read(name="a.json")', "c1", "read")],
        ),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "So."},
                                              {"type": "tool_use", "id": "c1", "name": "read", "input": {"n": 1}}]},
            [Said("text", "So."), Said("call", "read(n=1)", "c1", "read")],
        ),
        ({"role": "tool", "tool_call_id": "c1", "content": "x\ny"}, [Said("result", "x\ny", "c1")]),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1",
                                          "content": [{"type": "text", "text": "x"}]}]},
            [Said("result", "x", "c1")],
        ),
        ({"type": "function_call", "id": "i", "call_id": "c1", **CALL}, [Said("call", 'read(name="a.json")', "c1", "read")]),
        ({"type": "function_call_output", "call_id": "c1", "output": "x"}, [Said("result", "x", "c1")]),
        ({"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"n": 1}}}]},
         [Said("call", "read(n=1)", None, "read")]),
        ({"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"ok": True}}}]},
         [Said("result", "{ok: true}", None, "read")]),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}, None),
        ({"role": "user", "content": "Hi.", "weight": 3}, None),
        ({"role": "assistant", "tool_calls": [{"function": None}]}, None),
        ({"role": "assistant", "tool_calls": 3}, None),
        ({"role": "user", "content": 3}, None),
    ],
)  # fmt: skip
def test_a_message_is_read(message: dict[str, Any], said: list[Said] | None) -> None:
    assert spoken(message, 100) == said


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([{"type": "function", "function": {"name": "a"}}, {"name": "b", "input_schema": {}}], ["a", "b"]),
        ([{"type": "web_search"}], ["web_search"]),
        ([{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}], ["a", "b"]),
        ([{"function": {}}], None),
        ([3], None),
        ("tools", None),
    ],
)
def test_tools_are_named(tools: Any, names: list[str] | None) -> None:
    assert tool_names(tools) == names
