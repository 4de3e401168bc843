"""Messages of Anthropic."""

from __future__ import annotations

from typing import Any

import pytest
from tests.capture.dialects.wire import answer, read, sse, unchanged

from playhead.capture.dialects import ToolAsked, ToolResult, find
from playhead.capture.dialects.anthropic import MESSAGES
from playhead.event.kinds import Usage

PATH = "/v1/messages"


def start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-opus-4-6", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1, **usage},
    }}  # fmt: skip


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    final = {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 89, **usage},
    }
    return [final, {"type": "message_stop"}]


PING = {"type": "ping"}
CITATION = {
    "type": "char_location",
    "cited_text": "sky",
    "document_index": 0,
    "start_char_index": 0,
    "end_char_index": 3,
}
EVERYTHING = [
    start(cache_creation_input_tokens=100, cache_read_input_tokens=2000),
    begin(0, type="thinking", thinking="", signature=""),
    PING,
    delta(0, "thinking_delta", thinking="The user "),
    delta(0, "thinking_delta", thinking="asks."),
    delta(0, "signature_delta", signature="EqQBCgIYAhIM"),
    stop(0),
    begin(1, type="redacted_thinking", data="EmwKAhgB"),
    stop(1),
    begin(2, type="text", text=""),
    delta(2, "text_delta", text="The sky"),
    delta(2, "citations_delta", citation=CITATION),
    delta(2, "text_delta", text=" is blau 🌤"),
    stop(2),
    begin(3, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    delta(3, "input_json_delta", partial_json='{"query": "sky"}'),
    stop(3),
    begin(4, type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[{"type": "web_search_result", "url": "u"}]),
    stop(4),
    begin(5, type="tool_use", id="toolu_1", name="weather", input={}),
    delta(5, "input_json_delta", partial_json=""),
    delta(5, "input_json_delta", partial_json='{"city": "Zü'),
    delta(5, "input_json_delta", partial_json='rich"}'),
    stop(5),
    begin(6, type="tool_use", id="toolu_2", name="now", input={}),
    stop(6),
    *end("tool_use", server_tool_use={"web_search_requests": 1}, output_tokens_details={"thinking_tokens": 40}),
]  # fmt: skip


def test_a_streamed_message_has_the_shape_of_one_that_is_not() -> None:
    answered = read(MESSAGES, sse(*EVERYTHING, named=True))
    assert answered.response == {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
        "stop_reason": "tool_use", "stop_sequence": None,
        "content": [
            {"type": "thinking", "thinking": "The user asks.", "signature": "EqQBCgIYAhIM"},
            {"type": "redacted_thinking", "data": "EmwKAhgB"},
            {"type": "text", "text": "The sky is blau 🌤", "citations": [CITATION]},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "sky"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "u"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Zürich"}},
            {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
        ],
        "usage": {
            "input_tokens": 12, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2000, "output_tokens": 89,
            "server_tool_use": {"web_search_requests": 1}, "output_tokens_details": {"thinking_tokens": 40},
        },
    }  # fmt: skip
    assert (answered.model, answered.finish, answered.error) == ("claude-opus-4-6", "tool_use", None)
    unchanged(MESSAGES.answered, EVERYTHING)


def test_only_tools_that_the_client_runs_are_calls() -> None:
    expected = (ToolAsked("toolu_1", "weather", {"city": "Zürich"}), ToolAsked("toolu_2", "now", {}))
    streamed = read(MESSAGES, sse(*EVERYTHING, named=True))
    assert streamed.calls == expected
    assert answer(MESSAGES, streamed.response).calls == expected


def test_input_counts_what_came_from_a_cache_or_went_into_one() -> None:
    answered = read(MESSAGES, sse(*EVERYTHING, named=True))
    assert answered.usage == Usage(input=2112, output=89, cached=2000, reasoning=40)


def test_a_stream_that_was_cut_gives_what_came_and_only_calls_that_are_whole() -> None:
    body = sse(
        start(),
        begin(0, type="tool_use", id="toolu_1", name="weather", input={}),
        delta(0, "input_json_delta", partial_json='{"city": "Bern"}'),
        stop(0),
        begin(1, type="tool_use", id="toolu_2", name="time", input={}),
        delta(1, "input_json_delta", partial_json='{"zone": '),
        delta(1, "input_json_delta", partial_json='"CET"}'),
        named=True,
    )
    answered = read(MESSAGES, body[:-5])
    assert answered.calls == (ToolAsked("toolu_1", "weather", {"city": "Bern"}),)
    assert answered.response["content"][1]["input"] == '{"zone": '
    assert answered.finish is None
    assert answered.usage == Usage(input=12, output=1, cached=0)


def test_an_error_event_in_a_stream_is_told_beside_what_came() -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    event = {"type": "error", "error": error, "request_id": "req_1"}
    answered = read(
        MESSAGES, sse(start(), begin(0, type="text", text=""), delta(0, "text_delta", text="Hal"), event, named=True)
    )
    assert answered.error == error
    assert answered.response["content"] == [{"type": "text", "text": "Hal"}]
    assert read(MESSAGES, sse(event, named=True)).response == event
    assert answer(MESSAGES, event).error == error


def test_what_only_the_end_says_is_taken_over_and_null_does_not_undo_what_was_said() -> None:
    last = {
        "type": "message_delta", "delta": {"stop_reason": "refusal", "stop_sequence": None, "stop_details": {"category": "cyber"}, "container": None},
        "usage": {"output_tokens": 5, "input_tokens": None, "cache_read_input_tokens": 7}, "context_management": {"applied_edits": []},
    }  # fmt: skip
    first = start()
    first["message"]["container"] = {"id": "container_1"}
    answered = unchanged(MESSAGES.answered, [first, last])
    assert answered.response["container"] == {"id": "container_1"}
    assert answered.response["stop_details"] == {"category": "cyber"}
    assert answered.response["context_management"] == {"applied_edits": []}
    assert answered.response["usage"]["input_tokens"] == 12
    assert answered.usage == Usage(input=19, output=5, cached=7)
    assert answered.finish == "refusal"


def test_a_kind_of_delta_that_is_not_known_yet_still_grows_its_block() -> None:
    events = [
        start(), begin(0, type="compaction", content=None), delta(0, "compaction_delta", content="Summary", encrypted_content="abc"), stop(0),
        begin(1, type="song", verses="la "), delta(1, "song_delta", verses="la"), delta(1, "song_delta", verses=" la", key="D"), stop(1), *end(),
    ]  # fmt: skip
    assert unchanged(MESSAGES.answered, events).response["content"] == [
        {"type": "compaction", "content": "Summary", "encrypted_content": "abc"},
        {"type": "song", "verses": "la la la", "key": "D"},
    ]


def test_only_results_after_the_last_message_of_the_model_are_new_and_named() -> None:
    def used(id: str, name: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": name, "input": {}}

    body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [used("toolu_0", "old")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_0", "content": "old"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "…"}, used("toolu_1", "weather"), used("toolu_2", "time")]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "21"}]},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no clock", "is_error": True},
            {"type": "text", "text": "Go on"},
        ]},
    ]}  # fmt: skip
    asked = MESSAGES.asked(body, PATH)
    assert asked.model == "claude-opus-4-6"
    assert asked.results == (
        ToolResult("toolu_1", "weather", [{"type": "text", "text": "21"}], False),
        ToolResult("toolu_2", "time", "no clock", True),
    )


@pytest.mark.parametrize(
    ("url", "provider", "operation", "model"),
    [
        ("https://api.anthropic.com/v1/messages?beta=true", "anthropic", "messages", None),
        ("https://api.anthropic.com/v1/messages/count_tokens", "anthropic", "count_tokens", None),
        ("https://x.services.ai.azure.com/anthropic/v1/messages", "azure", "messages", None),
        (
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-opus-4-6@20260205:streamRawPredict",
            "vertex", "messages", "claude-opus-4-6@20260205",
        ),
        (
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-opus-4-6-v1%3A0/invoke",
            "bedrock", "messages", "us.anthropic.claude-opus-4-6-v1:0",
        ),
        (
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-opus-4-6-v1/invoke-with-response-stream",
            "bedrock", "messages", "anthropic.claude-opus-4-6-v1",
        ),
    ],
)  # fmt: skip
def test_every_place_that_speaks_it_is_known(url: str, provider: str, operation: str, model: str | None) -> None:
    found = find("POST", url)
    assert found is not None
    assert (found[0], found[1:]) == (MESSAGES, (provider, operation))
    path = url.split("?")[0].split("//")[1].partition("/")[2]
    assert MESSAGES.asked({"messages": []}, "/" + path).model == model


def test_counting_tokens_uses_none() -> None:
    assert answer(MESSAGES, {"input_tokens": 2095}).usage is None
