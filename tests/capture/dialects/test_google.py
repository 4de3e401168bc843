"""generateContent of Google, and what stands beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.capture.dialects.wire import answer, read, sse, unchanged

from playhead.capture.dialects import ToolAsked, ToolResult, documents
from playhead.capture.dialects.google import GENERATE
from playhead.event.kinds import Usage

PATH = "/v1beta/models/gemini-3-flash:generateContent"
USAGE = {
    "promptTokenCount": 100, "cachedContentTokenCount": 64, "candidatesTokenCount": 20, "thoughtsTokenCount": 30,
    "toolUsePromptTokenCount": 5, "totalTokenCount": 155,
}  # fmt: skip


def chunk(*parts: Any, finish: str | None = None, usage: Any = None, **candidate: Any) -> dict[str, Any]:
    reason = {"finishReason": finish} if finish else {}
    counted = {"usageMetadata": usage} if usage else {}
    return {
        "candidates": [{"content": {"parts": list(parts), "role": "model"}, "index": 0, **reason, **candidate}],
        **counted, "modelVersion": "gemini-3-flash", "responseId": "r1",
    }  # fmt: skip


STREAM = [
    chunk({"text": "Thinking ", "thought": True}, usage={"promptTokenCount": 100}),
    chunk({"text": "hard", "thought": True}),
    chunk({"text": "21 °C in Zü"}, safetyRatings=[{"category": "X", "probability": "LOW"}]),
    chunk({"text": "rich"}, {"text": " 🌤"}),
    chunk({"functionCall": {"name": "weather", "args": {"city": "Bern"}}, "thoughtSignature": "CiQB"}),
    chunk({"functionCall": {"id": "fc-2", "name": "now"}}),
    chunk({"text": "", "thoughtSignature": "DgQC"}, finish="STOP", usage=USAGE),
]
WHOLE = {
    "candidates": [{
        "index": 0, "finishReason": "STOP", "safetyRatings": [{"category": "X", "probability": "LOW"}],
        "content": {"role": "model", "parts": [
            {"text": "Thinking hard", "thought": True},
            {"text": "21 °C in Zürich 🌤"},
            {"functionCall": {"name": "weather", "args": {"city": "Bern"}}, "thoughtSignature": "CiQB"},
            {"functionCall": {"id": "fc-2", "name": "now"}},
            {"text": "", "thoughtSignature": "DgQC"},
        ]},
    }],
    "usageMetadata": USAGE, "modelVersion": "gemini-3-flash", "responseId": "r1",
}  # fmt: skip


@pytest.mark.parametrize(
    "body", [sse(*STREAM), json.dumps(STREAM, indent=2).encode()], ids=["server-sent events", "a JSON array"]
)
def test_a_streamed_answer_has_the_shape_of_one_that_is_not(body: bytes) -> None:
    found = documents(body, "text/event-stream" if body.startswith(b"data") else "application/json")
    assert found is not None
    answered = GENERATE.answered(*found)
    assert answered.response == WHOLE
    assert (answered.model, answered.finish, answered.error) == ("gemini-3-flash", "STOP", None)
    assert answered.calls == (ToolAsked(None, "weather", {"city": "Bern"}), ToolAsked("fc-2", "now", {}))


def test_the_chunks_of_a_stream_stay_as_they_are() -> None:
    unchanged(GENERATE.answered, STREAM)


def test_output_counts_thoughts_and_input_what_tools_fetched() -> None:
    assert answer(GENERATE, WHOLE).usage == Usage(input=105, output=50, cached=64, reasoning=30)


@pytest.mark.parametrize("cut", [10, 200])
def test_a_stream_that_was_cut_gives_what_came(cut: int) -> None:
    for body, media in ((sse(*STREAM), "text/event-stream"), (json.dumps(STREAM).encode(), "application/json")):
        answered = read(GENERATE, body[:-cut], media)
        assert answered.response["candidates"][0]["content"]["parts"][1] == {"text": "21 °C in Zürich 🌤"}
        assert answered.finish is None
        assert len(answered.calls) == 2


def test_a_text_with_a_signature_is_not_merged_with_one_without() -> None:
    events = [
        chunk({"text": "a"}),
        chunk({"text": "b", "thoughtSignature": "s"}),
        chunk({"text": "c"}),
        chunk({"text": "d"}),
    ]
    parts = unchanged(GENERATE.answered, events).response["candidates"][0]["content"]["parts"]
    assert parts == [{"text": "a"}, {"text": "b", "thoughtSignature": "s"}, {"text": "cd"}]


def test_citations_and_log_probabilities_come_chunk_by_chunk() -> None:
    events = [
        chunk({"text": "a"}, citationMetadata={"citationSources": [{"uri": "1"}]}, groundingMetadata={"webSearchQueries": ["q"]}),
        chunk({"text": "b"}, citationMetadata={"citationSources": [{"uri": "2"}]}, groundingMetadata={"groundingChunks": []}),
    ]  # fmt: skip
    candidate = unchanged(GENERATE.answered, events).response["candidates"][0]
    assert candidate["citationMetadata"] == {"citationSources": [{"uri": "1"}, {"uri": "2"}]}
    assert candidate["groundingMetadata"] == {"webSearchQueries": ["q"], "groundingChunks": []}


def test_arguments_that_vertex_streams_in_pieces_are_put_together() -> None:
    def piece(path: str, **value: Any) -> dict[str, Any]:
        return chunk({"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}})

    events = [
        chunk({"functionCall": {"name": "book", "id": "f1", "willContinue": True}, "thoughtSignature": "s"}),
        piece("$.city", stringValue="Zü", willContinue=True),
        piece("$.city", stringValue="rich"),
        piece("$.guests[0].name", stringValue="Ada"),
        piece("$.guests[1].age", numberValue=36),
        piece("$['late check-in']", boolValue=True),
        piece("$.note", nullValue="NULL_VALUE"),
        chunk({"functionCall": {}}),
        chunk({"text": "Booked"}, finish="STOP"),
    ]
    args = {
        "city": "Zürich", "guests": [{"name": "Ada"}, {"age": 36}], "late check-in": True, "note": None,
    }  # fmt: skip
    answered = unchanged(GENERATE.answered, events)
    assert answered.calls == (ToolAsked("f1", "book", args),)
    assert answered.response["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"id": "f1", "name": "book", "args": args}, "thoughtSignature": "s"},
        {"text": "Booked"},
    ]
    assert GENERATE.answered(events[:5], True).calls == ()


def test_only_results_after_the_last_turn_of_the_model_are_new() -> None:
    body = {"contents": [
        {"role": "user", "parts": [{"functionResponse": {"name": "old", "response": {"output": 1}}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "weather", "response": {"output": "21"}}},
            {"functionResponse": {"id": "fc-2", "name": "time", "response": {"error": "no clock"}}},
            {"functionResponse": {"name": "both", "response": {"output": "x", "error": "a warning"}}},
            {"function_response": {"name": "snake", "response": {"result": "x"}}},
            {"text": "Go on"},
        ]},
    ]}  # fmt: skip
    asked = GENERATE.asked(body, PATH)
    assert asked.results == (
        ToolResult(None, "weather", {"output": "21"}, False),
        ToolResult("fc-2", "time", {"error": "no clock"}, True),
        ToolResult(None, "both", {"output": "x", "error": "a warning"}, False),
        ToolResult(None, "snake", {"result": "x"}, False),
    )


@pytest.mark.parametrize(
    ("path", "model"),
    [
        (PATH, "gemini-3-flash"),
        ("/v1beta/tunedModels/mine-x1:generateContent", "mine-x1"),
        ("/v1/projects/p/locations/eu/publishers/google/models/gemini-3-pro:streamGenerateContent", "gemini-3-pro"),
        ("/v1beta1/publishers/google/models/gemini%2D3:countTokens", "gemini-3"),
    ],
)
def test_the_model_is_in_the_path(path: str, model: str) -> None:
    assert GENERATE.asked({"contents": []}, path).model == model


def test_a_prompt_that_was_blocked_says_so_as_its_finish() -> None:
    assert answer(GENERATE, {"promptFeedback": {"blockReason": "SAFETY"}}).finish == "SAFETY"


def test_an_error_is_told_however_it_came() -> None:
    error = {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}
    assert answer(GENERATE, {"error": error}).error == error
    assert read(GENERATE, json.dumps([{"error": error}]).encode(), "application/json").error == error
    answered = read(GENERATE, sse(STREAM[2], {"error": error}))
    assert answered.error == error
    assert answered.response["candidates"][0]["content"]["parts"] == [{"text": "21 °C in Zü"}]


def test_counting_tokens_uses_none_and_embeddings_keep_their_vectors() -> None:
    assert answer(GENERATE, {"totalTokens": 31}).usage is None
    vectors = answer(GENERATE, {"embeddings": [{"values": [0.1, 0.2]}]})
    assert vectors.response["embeddings"][0]["values"] == [0.1, 0.2]
    predicted = {"predictions": [{"embeddings": {"values": [0.1], "statistics": {"token_count": n}}} for n in (3, 4)]}
    assert answer(GENERATE, predicted).usage == Usage(input=7)
