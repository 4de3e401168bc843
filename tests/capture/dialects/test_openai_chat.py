"""Chat completions: what OpenAI, Azure, Ollama, vLLM, OpenRouter, Groq, DeepSeek and the rest write."""

from __future__ import annotations

from typing import Any

import pytest
from tests.capture.dialects.wire import answer, read, sse, unchanged

from playhead.capture.dialects import ToolAsked, ToolResult
from playhead.capture.dialects.openai_chat import CHAT
from playhead.event.kinds import Usage

PATH = "/v1/chat/completions"
DONE = "data: [DONE]\n\n"


def chunk(
    delta: dict[str, Any] | None = None, finish: str | None = None, index: int = 0, **more: Any
) -> dict[str, Any]:
    """Return one chunk as OpenAI writes it; without a delta, one without choices."""
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-CZ1", "object": "chat.completion.chunk", "created": 1794700000, "model": "gpt-5.4-2026-03-05",
        "service_tier": "default", "system_fingerprint": "fp_44", "choices": [] if delta is None else [choice],
        "usage": None, "obfuscation": "x7Q", **more,
    }  # fmt: skip


def call(index: int, arguments: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    """Return the delta of a tool call: id, type and name come first, and only once."""
    head = {"id": id, "type": "function"} if id else {}
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {"tool_calls": [{"index": index, **head, "function": function}]}


USAGE = {
    "prompt_tokens": 1200, "completion_tokens": 300, "total_tokens": 1500,
    "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 192, "audio_tokens": 0, "accepted_prediction_tokens": 0},
}  # fmt: skip


def test_a_streamed_answer_has_the_shape_of_one_that_is_not() -> None:
    body = sse(
        chunk({"role": "assistant", "content": "", "refusal": None}),
        chunk({"content": "21 °C in Zü"}),
        chunk({"content": "rich 🌤"}),
        chunk({}, finish="stop"),
        chunk(usage=USAGE),
        end=DONE,
    )
    answered = read(CHAT, body)
    assert answered.response == {
        "id": "chatcmpl-CZ1", "object": "chat.completion", "created": 1794700000, "model": "gpt-5.4-2026-03-05",
        "service_tier": "default", "system_fingerprint": "fp_44", "usage": USAGE,
        "choices": [
            {
                "index": 0, "logprobs": None, "finish_reason": "stop",
                "message": {"role": "assistant", "content": "21 °C in Zürich 🌤", "refusal": None},
            }
        ],
    }  # fmt: skip
    assert (answered.model, answered.finish, answered.calls, answered.error) == ("gpt-5.4-2026-03-05", "stop", (), None)
    assert answered.usage == Usage(input=1200, output=300, cached=1024, reasoning=192)


def test_parallel_tool_calls_are_put_together_each_by_its_index() -> None:
    events = [
        chunk({"role": "assistant", "content": None}),
        chunk(call(0, "", "call_a", "weather")),
        chunk(call(0, '{"city":')),
        chunk(call(1, "", "call_b", "time")),
        chunk(call(0, '"Zürich"}')),
        chunk(call(1, "{}")),
        chunk({}, finish="tool_calls"),
    ]
    answered = unchanged(CHAT.answered, events)
    assert answered.calls == (ToolAsked("call_a", "weather", {"city": "Zürich"}), ToolAsked("call_b", "time", {}))
    assert answered.finish == "tool_calls"
    assert answered.response["choices"][0]["message"]["tool_calls"] == [
        {"id": "call_a", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Zürich"}'}},
        {"id": "call_b", "type": "function", "function": {"name": "time", "arguments": "{}"}},
    ]


def test_an_answer_that_is_not_streamed_is_the_body_itself() -> None:
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-5.4", "usage": USAGE,
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": None,
            "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}},
                {"id": "call_b", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
                {"id": "call_c", "type": "function", "function": {"name": "broken", "arguments": '{"city": '}},
            ],
        }}],
    }  # fmt: skip
    answered = answer(CHAT, body)
    assert answered.calls == (
        ToolAsked("call_a", "weather", {"city": "Bern"}),
        ToolAsked("call_b", "sql", "select 1"),
        ToolAsked("call_c", "broken", '{"city": '),
    )
    assert answered.model == "gpt-5.4"


def test_a_stream_that_was_cut_gives_what_came_and_only_calls_that_are_whole() -> None:
    body = sse(
        chunk({"role": "assistant", "content": "Let me"}),
        chunk(call(0, '{"city":"Bern"}', "call_a", "weather")),
        chunk(call(1, '{"zone":', "call_b", "time")),
        chunk({"content": " check"}),
    )
    answered = read(CHAT, body[:-20])
    message = answered.response["choices"][0]["message"]
    assert message["content"] == "Let me"
    assert message["tool_calls"][1]["function"]["arguments"] == '{"zone":'
    assert answered.calls == (ToolAsked("call_a", "weather", {"city": "Bern"}),)
    assert answered.finish is None
    assert answered.usage is None


def test_several_choices_are_kept_in_the_order_of_their_index() -> None:
    events = [
        chunk({"role": "assistant", "content": "b"}, index=1),
        chunk({"role": "assistant", "content": "a"}, index=0),
        chunk({"content": "B"}, index=1, finish=None),
        chunk({}, index=1, finish="length"),
        chunk({}, index=0, finish="stop"),
    ]
    answered = unchanged(CHAT.answered, events)
    choices = answered.response["choices"]
    assert [(choice["index"], choice["message"]["content"]) for choice in choices] == [(0, "a"), (1, "bB")]
    assert answered.finish == "stop"


def test_the_old_function_call_is_read() -> None:
    events = [
        chunk({"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"city":'}}),
        chunk({"function_call": {"arguments": '"Bern"}'}}),
        chunk({}, finish="function_call"),
    ]
    answered = unchanged(CHAT.answered, events)
    assert answered.calls == (ToolAsked(None, "weather", {"city": "Bern"}),)
    assert answered.response["choices"][0]["message"]["function_call"] == {
        "name": "weather", "arguments": '{"city":"Bern"}'
    }  # fmt: skip


def test_a_refusal_log_probabilities_and_audio_are_kept() -> None:
    first, second = (
        {"token": "No", "logprob": -0.1, "bytes": [78, 111], "top_logprobs": []},
        {"token": ".", "logprob": 0},
    )
    events = [
        chunk({"role": "assistant", "refusal": "No"}),
        chunk({"refusal": "."}),
        chunk({"audio": {"id": "audio_1", "transcript": "Nei"}}),
        chunk({"audio": {"transcript": "n.", "data": "UklG"}}),
        chunk({"audio": {"expires_at": 1794703600}}),
    ]
    events[0]["choices"][0]["logprobs"] = {"content": None, "refusal": [first]}
    events[1]["choices"][0]["logprobs"] = {"content": None, "refusal": [second]}
    choice = unchanged(CHAT.answered, events).response["choices"][0]
    assert choice["message"]["refusal"] == "No."
    assert choice["message"]["audio"] == {
        "id": "audio_1", "transcript": "Nein.", "data": "UklG", "expires_at": 1794703600
    }  # fmt: skip
    assert choice["logprobs"] == {"content": None, "refusal": [first, second]}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_under_the_name_it_came_with(field: str) -> None:
    # DeepSeek and vLLM send reasoning_content, Ollama and OpenRouter reasoning; all repeat the role.
    events = [
        chunk({"role": "assistant", "content": None, field: "The user "}),
        chunk({"role": "assistant", "content": None, field: "wants"}),
        chunk({"role": "assistant", "content": "Hi", field: None}),
        chunk({"role": "assistant", "content": ""}, finish="stop"),
    ]
    message = unchanged(CHAT.answered, events).response["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "Hi", field: "The user wants"}


def test_reasoning_details_of_openrouter_grow_by_their_index() -> None:
    def detail(**fields: Any) -> dict[str, Any]:
        return {
            "reasoning_details": [{"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, **fields}]
        }

    events = [chunk(detail(text="Let ")), chunk(detail(text="us")), chunk(detail(signature="EqQB")), chunk({}, "stop")]
    message = unchanged(CHAT.answered, events).response["choices"][0]["message"]
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": "Let us", "signature": "EqQB"}
    ]


def test_whole_tool_calls_under_one_index_or_none_stay_apart() -> None:
    # Gemini's and some older compatible servers send each call whole, with index 0 or without one.
    def whole(id: str | None, name: str, **index: int) -> dict[str, Any]:
        return {"tool_calls": [{**index, "id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}]}

    for index in ({"index": 0}, {}):
        events = [chunk(whole("c1", "weather", **index)), chunk(whole("c2", "time", **index)), chunk({}, "tool_calls")]
        assert unchanged(CHAT.answered, events).calls == (ToolAsked("c1", "weather", {}), ToolAsked("c2", "time", {}))
    events = [chunk(whole(None, "weather")), chunk(whole(None, "weather")), chunk({}, "tool_calls")]
    assert unchanged(CHAT.answered, events).calls == (ToolAsked(None, "weather", {}),) * 2


def test_a_name_that_is_repeated_with_every_piece_is_said_once() -> None:
    events = [chunk(call(0, part, "c1", "weather")) for part in ('{"city"', ':"Bern"', "}")] + [chunk({}, "tool_calls")]
    assert unchanged(CHAT.answered, events).calls == (ToolAsked("c1", "weather", {"city": "Bern"}),)


def test_azure_begins_with_a_chunk_of_filters_and_empty_names() -> None:
    filters = {
        "id": "",
        "object": "",
        "created": 0,
        "model": "",
        "choices": [],
        "prompt_filter_results": [{"prompt_index": 0}],
    }
    late = {**filters, "choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 44}}]}
    answered = read(
        CHAT, sse(filters, chunk({"role": "assistant", "content": "Hi"}), chunk({}, "stop"), late, end=DONE)
    )
    assert answered.model == "gpt-5.4-2026-03-05"
    assert answered.response["id"] == "chatcmpl-CZ1"
    assert answered.response["prompt_filter_results"] == [{"prompt_index": 0}]
    choice = answered.response["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hi", "stop")
    assert choice["content_filter_offsets"] == {"check_offset": 44}


def test_an_empty_id_with_later_pieces_does_not_undo_the_first() -> None:
    later = {"tool_calls": [{"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": "{}"}}]}
    events = [chunk(call(0, "", "c1", "weather")), chunk(later), chunk({}, "tool_calls")]
    assert unchanged(CHAT.answered, events).calls == (ToolAsked("c1", "weather", {}),)


def test_arguments_that_are_an_object_are_taken_as_they_are() -> None:
    arguments = {"rows": [{"index": 0, "a": "x"}, {"index": 0, "a": "y"}]}
    whole = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "put", "arguments": arguments}}]}
    assert unchanged(CHAT.answered, [chunk(whole), chunk({}, "tool_calls")]).calls == (
        ToolAsked("c1", "put", arguments),
    )


def test_a_character_that_was_cut_into_two_escapes_is_whole_again() -> None:
    first = b'data: {"choices":[{"index":0,"delta":{"content":"sun \\ud83c"}}]}\n\n'
    second = b'data: {"choices":[{"index":0,"delta":{"content":"\\udf24"}}]}\n\n'
    assert (
        read(CHAT, first + second).response["choices"][0]["message"]["content"] == "sun \N{WHITE SUN WITH SMALL CLOUD}"
    )


def test_an_error_inside_an_answer_or_a_stream_is_told() -> None:
    error = {"message": "Provider disconnected", "code": 502}
    assert answer(CHAT, {"id": "gen-1", "error": error}).error == error
    answered = read(
        CHAT, sse(chunk({"role": "assistant", "content": "Hal"}), chunk({"content": ""}, "error", error=error))
    )
    assert answered.error == error
    assert answered.response["choices"][0]["message"]["content"] == "Hal"
    only = read(CHAT, sse({"error": error}))
    assert only.error == error
    assert only.response == {"error": error}


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, Usage(input=5, output=2)),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 8},
            Usage(input=9, output=2, cached=8),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 35,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(input=10, output=25, reasoning=20),
        ),
        ({}, None),
        (None, None),
        ("many", None),
        ({"prompt_tokens": True, "completion_tokens": "7"}, None),
    ],
    ids=["plain", "deepseek", "xai", "empty", "null", "text", "odd"],
)
def test_tokens_are_counted_alike_for_all(said: Any, counted: Usage | None) -> None:
    assert answer(CHAT, {"choices": [], "usage": said}).usage == counted


def test_groq_counts_in_a_place_of_its_own() -> None:
    events = [
        chunk({"content": "Hi"}),
        chunk({}, "stop", x_groq={"id": "req", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
    ]
    assert unchanged(CHAT.answered, events).usage == Usage(input=3, output=1)


def test_only_results_after_the_last_message_of_the_model_are_new_and_named() -> None:
    def assistant(*calls: tuple[str, str]) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}} for id, name in calls
        ]}  # fmt: skip

    body = {"model": "gpt-5.4", "messages": [
        {"role": "user", "content": "Weather?"},
        assistant(("call_0", "old")),
        {"role": "tool", "tool_call_id": "call_0", "content": "old"},
        assistant(("call_a", "weather"), ("call_b", "time")),
        {"role": "tool", "tool_call_id": "call_a", "content": "21"},
        {"role": "tool", "tool_call_id": "call_b", "content": [{"type": "text", "text": "noon"}]},
        {"role": "function", "name": "legacy", "content": "x"},
        {"role": "user", "content": "Go on"},
    ]}  # fmt: skip
    asked = CHAT.asked(body, PATH)
    assert asked.model == "gpt-5.4"
    assert asked.results == (
        ToolResult("call_a", "weather", "21", False),
        ToolResult("call_b", "time", [{"type": "text", "text": "noon"}], False),
        ToolResult(None, "legacy", "x", False),
    )
    assert CHAT.asked({**body, "messages": body["messages"][:2]}, PATH).results == ()


def test_azure_has_the_model_in_the_path() -> None:
    path = "/openai/deployments/my-gpt/chat/completions"
    assert CHAT.asked({"messages": []}, path).model == "my-gpt"
    assert CHAT.asked({"messages": [], "model": "gpt-5.4"}, path).model == "gpt-5.4"
