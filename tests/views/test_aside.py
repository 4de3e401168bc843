from __future__ import annotations

import json
from typing import Any

import pytest

from playhead.views.aside import asked, said


def heard(response: Any) -> Any:
    return said({"response": response})["response"]


def call(id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": '{"id": 1}'}}


# What the same answer looks like the first and the second time, by the form in which it comes.
ANSWERS = {
    "chat completions": lambda id: {
        "id": id,
        "object": "chat.completion",
        "created": len(id),
        "model": id,
        "usage": {"total_tokens": len(id)},
        "choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [call(id)]}}],
    },
    "responses": lambda id: {
        "id": id,
        "object": "response",
        "created_at": len(id),
        "previous_response_id": f"{id}-before",
        "output": [
            {"type": "reasoning", "id": f"{id}-r", "encrypted_content": id, "summary": []},
            {"type": "function_call", "id": f"{id}-f", "call_id": f"{id}-c", "name": "f", "arguments": "{}"},
        ],
    },
    "messages": lambda id: {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": id,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": id},
            {"type": "tool_use", "id": id, "name": "f", "input": {"id": "T-1", "type": "bug"}},
        ],
    },
    "messages, streamed": lambda id: [
        {"type": "message_start", "message": {"id": id, "type": "message", "role": "assistant", "model": id}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": id, "name": "f"}},
    ],
    "responses, streamed": lambda id: [
        {"type": "response.output_text.delta", "item_id": id, "delta": "hello"},
        {"type": "response.output_item.done", "item": {"type": "function_call", "id": id, "call_id": id}},
        {"type": "response.completed", "response": {"id": id, "object": "response", "model": id, "output": []}},
    ],
    "generateContent": lambda id: {
        "responseId": id,
        "modelVersion": id,
        "candidates": [
            {"content": {"parts": [{"text": "hm", "thoughtSignature": id}, {"functionCall": {"id": id, "name": "f"}}]}}
        ],
    },
    "ollama": lambda id: {
        "model": id,
        "created_at": id,
        "message": {"role": "assistant", "tool_calls": [call(id)]},
        "done": True,
        "eval_count": len(id),
    },
    "ollama, a text": lambda id: {"model": id, "created_at": id, "response": "hello", "done": True},
}


@pytest.mark.parametrize("form", ANSWERS.values(), ids=ANSWERS)
def test_two_answers_that_say_the_same_are_the_same(form: Any) -> None:
    one, other = form("first"), form("the second")
    assert one != other
    assert heard(one) == heard(other)
    assert "first" not in json.dumps(heard(one))


def test_what_a_tool_is_given_is_the_agents() -> None:
    (_, use) = heard(ANSWERS["messages"]("x"))["content"]
    assert use["input"] == {"id": "T-1", "type": "bug"}


@pytest.mark.parametrize(
    "response",
    [
        {"answer": {"model": "Tesla", "created": 1999, "signature": "Ada"}},
        {"model": "Tesla", "created": 1999, "signature": "Ada"},
        {"order": {"type": "refund", "id": "R-1"}},
        {"type": "refund", "id": "R-1", "usage": "daily", "item_id": "sku-1"},
        {"message": "which model?", "model": "Tesla"},
        [{"type": "refund", "id": "R-1"}],
        "R-1",
        None,
    ],
)
def test_an_answer_that_no_provider_gives_is_taken_as_it_is(response: Any) -> None:
    assert heard(response) == response


def test_ids_in_a_request_are_numbers_where_a_provider_gave_them() -> None:
    def request(id: str) -> dict[str, Any]:
        return {
            "previous_response_id": id,
            "messages": [
                {"role": "assistant", "tool_calls": [call(id)]},
                {"role": "tool", "tool_call_id": id, "content": "1"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": id}]},
            ],
            "contents": [{"parts": [{"functionResponse": {"id": id, "response": {"id": "T-1", "type": "bug"}}}]}],
            "input": [{"type": "function_call_output", "call_id": id, "output": "1"}],
            "metadata": {"type": "bug", "id": "T-1"},
            "ticket": {"type": "bug", "id": "T-1"},
            "item_id": "sku-1",
        }

    assert asked(request("one")) == asked(request("another"))
    found = asked(request("one"))
    assert found["ticket"] == found["metadata"] == {"type": "bug", "id": "T-1"}
    assert found["item_id"] == "sku-1"
    assert found["contents"][0]["parts"][0]["functionResponse"]["response"] == {"id": "T-1", "type": "bug"}
    assert found["messages"][0]["tool_calls"][0]["id"] == found["messages"][1]["tool_call_id"]
    assert asked({"item_id": "sku-1"}) != asked({"item_id": "sku-2"})
    assert asked({"input": {"type": "bug", "id": "T-1"}}) == {"input": {"type": "bug", "id": "T-1"}}
