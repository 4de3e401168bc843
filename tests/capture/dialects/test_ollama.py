"""Ollama's own API."""

from __future__ import annotations

from typing import Any

from tests.capture.dialects.wire import answer, ndjson, read, unchanged

from playhead.capture.dialects import ToolAsked, ToolResult, find
from playhead.capture.dialects.ollama import OLLAMA
from playhead.event.kinds import Usage


def line(done: bool = False, **message: Any) -> dict[str, Any]:
    return {
        "model": "qwen3",
        "created_at": "2026-11-15T10:00:00Z",
        "message": {"role": "assistant", **message},
        "done": done,
    }


CALL = {"id": "call_1", "function": {"index": 0, "name": "weather", "arguments": {"city": "Bern"}}}
LAST = {**line(True, content=""), "done_reason": "stop", "total_duration": 5, "prompt_eval_count": 26, "eval_count": 12}
STREAM = [line(content="", thinking="Hm"), line(content="", thinking="m."), line(content="21 "), line(content="°C"),
          line(content="", tool_calls=[CALL]), line(content="", tool_calls=[CALL]), LAST]  # fmt: skip


def test_a_streamed_answer_has_the_shape_of_one_that_is_not() -> None:
    answered = read(OLLAMA, ndjson(*STREAM), "application/x-ndjson")
    assert answered.response == {
        **LAST, "message": {"role": "assistant", "content": "21 °C", "thinking": "Hmm.", "tool_calls": [CALL, CALL]},
    }  # fmt: skip
    assert (answered.model, answered.finish, answered.usage) == ("qwen3", "stop", Usage(input=26, output=12))
    assert answered.calls == (ToolAsked("call_1", "weather", {"city": "Bern"}),) * 2
    unchanged(OLLAMA.answered, STREAM)


def test_a_stream_that_was_cut_gives_what_came() -> None:
    answered = read(OLLAMA, ndjson(*STREAM)[:-30], "application/x-ndjson")
    assert answered.response["message"]["content"] == "21 °C"
    assert (answered.finish, answered.usage) == (None, None)


def test_generated_text_and_embeddings_are_read_too() -> None:
    parts = [
        {"model": "qwen3", "response": "Hel", "done": False},
        {"model": "qwen3", "response": "lo", "done": True, "eval_count": 2},
    ]
    answered = read(OLLAMA, ndjson(*parts), "application/x-ndjson")
    assert answered.response["response"] == "Hello"
    assert answer(OLLAMA, {"model": "nomic", "embeddings": [[0.1]], "prompt_eval_count": 3}).usage == Usage(input=3)
    found = find("POST", "http://localhost:11434/api/generate")
    assert found is not None
    assert found[1:] == ("ollama", "generate")


def test_results_after_the_last_message_of_the_model_are_new() -> None:
    body = {"model": "qwen3", "messages": [
        {"role": "tool", "tool_name": "old", "content": "1"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_name": "weather", "content": "21"},
    ]}  # fmt: skip
    asked = OLLAMA.asked(body, "/api/chat")
    assert (asked.model, asked.results) == ("qwen3", (ToolResult(None, "weather", "21", False),))


def test_an_error_is_a_bare_text() -> None:
    assert read(OLLAMA, ndjson(STREAM[2], {"error": "out of memory"}), "application/x-ndjson").error == {
        "message": "out of memory"
    }
