"""Which request is in which dialect, and what all of them promise."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.dialects import test_anthropic, test_google, test_ollama, test_openai_chat, test_openai_responses

from playhead.capture.dialects import DIALECTS, find, model_of, normalised, speaks, split
from playhead.capture.dialects.base import Answered, Asked, Dialect, ToolAsked, ToolResult
from playhead.event.kinds import Usage

BY_NAME = {dialect.name: dialect for dialect in DIALECTS}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.openai.com/v1/chat/completions", ("openai.chat", "openai", "chat")),
        ("https://eu.api.openai.com/v1/responses", ("openai.responses", "openai", "responses")),
        ("https://api.openai.com/v1/responses/compact", ("openai.responses", "openai", "responses.compact")),
        ("https://api.openai.com/v1/embeddings", ("openai.embeddings", "openai", "embeddings")),
        ("https://api.openai.com/v1/completions", ("openai.completions", "openai", "completions")),
        ("https://chatgpt.com/backend-api/codex/responses", ("openai.responses", "openai", "responses")),
        ("https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", ("openai.chat", "azure", "chat")),
        ("https://x.cognitiveservices.azure.com/openai/v1/responses", ("openai.responses", "azure", "responses")),
        ("https://openrouter.ai/api/v1/chat/completions", ("openai.chat", "openrouter", "chat")),
        ("https://api.groq.com/openai/v1/chat/completions", ("openai.chat", "groq", "chat")),
        ("https://api.mistral.ai/v1/fim/completions", ("openai.chat", "mistral", "chat")),
        ("https://api.deepseek.com/chat/completions", ("openai.chat", "deepseek", "chat")),
        ("https://api.together.xyz/v1/chat/completions", ("openai.chat", "together", "chat")),
        ("https://api.x.ai/v1/chat/completions", ("openai.chat", "xai", "chat")),
        ("https://api.fireworks.ai/inference/v1/chat/completions", ("openai.chat", "fireworks", "chat")),
        ("https://api.perplexity.ai/chat/completions", ("openai.chat", "perplexity", "chat")),
        ("http://localhost:11434/v1/chat/completions", ("openai.chat", "ollama", "chat")),
        ("http://[::1]:11434/api/chat", ("ollama", "ollama", "chat")),
        ("http://[::1]/api/chat", ("ollama", "ollama", "chat")),
        ("https://user:pw@api.groq.com/openai/v1/chat/completions", ("openai.chat", "groq", "chat")),
        ("http://127.0.0.1:8000/v1/chat/completions/", ("openai.chat", "openai", "chat")),
        ("https://user:11434@gateway.example/v1/chat/completions#x", ("openai.chat", "openai", "chat")),
        ("https://api.anthropic.com/v1/messages?beta=true", ("anthropic.messages", "anthropic", "messages")),
        ("https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse", ("google.generate", "google", "streamGenerateContent")),
        ("https://generativelanguage.googleapis.com/v1beta/models/g:batchEmbedContents", ("google.generate", "google", "batchEmbedContents")),
        ("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", ("openai.chat", "google", "chat")),
        ("https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/g:generateContent", ("google.generate", "vertex", "generateContent")),
        ("https://europe-west1-aiplatform.googleapis.com/v1/projects/p/publishers/google/models/e:predict", ("google.generate", "vertex", "predict")),
        ("https://aiplatform.eu.rep.googleapis.com/v1/publishers/mistralai/models/m:rawPredict", ("openai.chat", "vertex", "chat")),
        ("https://api.openai.com/v1/chat/%63ompletions", ("openai.chat", "openai", "chat")),
        ("https://api.openai.com/v1/embeddin%67s", ("openai.embeddings", "openai", "embeddings")),
        ("HTTPS://API.OPENAI.COM:443/v1/chat/completions", ("openai.chat", "openai", "chat")),
    ],
)  # fmt: skip
def test_the_path_tells_the_dialect_and_the_host_the_provider(url: str, expected: tuple[str, str, str]) -> None:
    found = find("post", url)
    assert found is not None
    assert (found[0].name, *found[1:]) == expected


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", "https://api.openai.com/v1/chat/completions"),
        ("POST", "https://api.openai.com/v1/files"),
        ("POST", "https://api.openai.com/v1/threads/t/messages"),
        ("POST", "https://api.anthropic.com/v1/messages/batches"),
        ("POST", "https://example.com/x?next=/v1/chat/completions"),
        ("POST", "https://example.com/#/v1/chat/completions"),
        ("POST", "https://example.com"),
        ("POST", ""),
        ("", "/"),
    ],
)
def test_other_requests_are_nobodys(method: str, url: str) -> None:
    assert find(method, url) is None


def test_the_path_tells_the_model_and_what_follows_it_does_not() -> None:
    url = "https://generativelanguage.googleapis.com/v1beta/models/g%2Dpro:generateContent?next=/models/other:x"
    found = find("POST", url)
    assert found is not None
    assert model_of(found[0], url, b"{}") == "g-pro"


def test_only_what_never_has_to_be_escaped_in_a_path_is_unescaped() -> None:
    unreserved = f"{string.ascii_letters}{string.digits}-._~"
    for number in range(256):
        for escape in (f"%{number:02x}", f"%{number:02X}"):
            expected = chr(number) if chr(number) in unreserved else escape
            assert split(f"https://example.com/{escape}") == ("example.com", f"/{expected}")


def test_a_body_that_cannot_be_of_the_dialect_is_another_services() -> None:
    messages = BY_NAME["anthropic.messages"]
    assert speaks(messages, {"model": "claude", "messages": []})
    assert not speaks(messages, {"to": "+41…", "body": "Hi"})
    assert not speaks(messages, None)
    assert not speaks(BY_NAME["ollama"], {"messages": []})
    assert speaks(BY_NAME["google.generate"], {"contents": []})


def test_a_url_is_split_into_authority_and_path() -> None:
    assert split("https://u:p@h:1/a/b/?q=/c#d") == ("u:p@h:1", "/a/b")
    assert split("h") == ("h", "")


def test_what_is_volatile_is_no_part_of_the_question() -> None:
    dialect = BY_NAME["openai.responses"]
    body = {"model": "m", "input": "Hi", "prompt_cache_key": "01a1", "client_metadata": {"x": "y"}}
    assert normalised(dialect, body) == {"model": "m", "input": "Hi"}
    assert "prompt_cache_key" in body
    plain = {"model": "m"}
    assert normalised(dialect, plain) is plain
    assert normalised(dialect, ["odd"]) == ["odd"]


# No input makes a dialect raise, and none is changed.

SAMPLES: dict[str, tuple[list[Any], Any]] = {
    "openai.chat": (
        [
            test_openai_chat.chunk({"role": "assistant", "content": "a"}),
            test_openai_chat.chunk(test_openai_chat.call(0, "{}", "c", "n")),
            test_openai_chat.chunk({"function_call": {"name": "f", "arguments": "{}"}}, "stop", x_groq={"usage": {}}),
        ],
        {"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "n"}}]}, {"role": "tool", "tool_call_id": "c", "content": "1"}]},
    ),
    "openai.responses": (
        [*test_openai_responses.DELTAS, {"type": "response.completed", "response": test_openai_responses.response(test_openai_responses.FUNCTION)}],
        {"model": "m", "input": [test_openai_responses.FUNCTION, {"type": "function_call_output", "call_id": "call_a", "output": "1"}]},
    ),
    "anthropic.messages": (
        test_anthropic.EVERYTHING,
        {"model": "m", "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n"}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "1"}]}]},
    ),
    "google.generate": (
        [*test_google.STREAM, test_google.chunk({"functionCall": {"name": "f", "willContinue": True, "partialArgs": [{"jsonPath": "$.a[0].b", "stringValue": "x"}]}}), test_google.chunk({"functionCall": {}})],
        {"contents": [{"role": "model", "parts": [{"text": "x"}]}, {"role": "user", "parts": [{"functionResponse": {"name": "n", "response": {"error": "e"}}}]}]},
    ),
    "ollama": (test_ollama.STREAM, {"model": "m", "messages": [{"role": "tool", "tool_name": "n", "content": "1"}]}),
    "openai.completions": ([{"choices": [{"text": "a", "index": 0, "logprobs": {"tokens": ["a"]}}], "usage": {"prompt_tokens": 1}}], {"prompt": "a"}),
    "openai.embeddings": ([{"data": [{"embedding": [0.1]}], "usage": {"prompt_tokens": 1}}], {"input": "a"}),
}  # fmt: skip

ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        10**12,
        1.5,
        "",
        "x",
        "index",
        [],
        [None],
        ["x"],
        [[]],
        {},
        {"x": None},
        {"type": []},
        {"index": {}},
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List every place in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def mutated(value: Any, path: tuple[Any, ...], put: Any) -> Any:
    """Return a copy with something else at a place, or, for `...`, without it."""
    if not path:
        return put
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1 and put is ...:
        del copy[path[0]]
    else:
        copy[path[0]] = mutated(copy[path[0]], path[1:], put)
    return copy


def assert_well_formed(asked: Asked, answered: Answered) -> None:
    """Check that every field is of its type, whatever was read."""
    assert asked.model is None or type(asked.model) is str
    for result in asked.results:
        assert type(result) is ToolResult
        assert type(result.failed) is bool
        assert all(item is None or type(item) is str for item in (result.id, result.name))
    for call in answered.calls:
        assert type(call) is ToolAsked
        assert type(call.name) is str
        assert call.id is None or type(call.id) is str
    for text in (answered.model, answered.finish):
        assert text is None or type(text) is str
    assert answered.error is None or type(answered.error) is dict
    assert answered.usage is None or type(answered.usage) is Usage
    json.dumps(answered.response)
    assert "deltas." not in repr({type(item) for item in every(answered.response)})


def every(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(found for item in inner for found in every(item))]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_nothing_raises_on_odd_input_and_input_is_never_changed(dialect: Dialect, data: st.DataObject) -> None:
    events, body = SAMPLES[dialect.name]
    for _ in range(data.draw(st.integers(1, 3))):
        put = data.draw(ODD | st.just(...))
        where = [place for place in places(events) if place]
        events = mutated(events, data.draw(st.sampled_from(where)), put) if where else []
        body = mutated(
            body,
            data.draw(st.sampled_from(places(body)[1:] or [()])),
            None if put is ... and not isinstance(body, dict | list) else put,
        )
    before = json.dumps([events, body], default=repr)
    asked = dialect.asked(body, "/v1/models/m:generateContent")
    for given_documents, streamed in ((events, True), (events, False), (events[:1], False), ([events], False)):
        assert_well_formed(asked, dialect.answered(given_documents, streamed))
    assert json.dumps([events, body], default=repr) == before


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(st.recursive(ODD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["choices", "delta", "message", "content", "type", "parts", "candidates", "output", "input", "messages"]), inner, max_size=4), max_leaves=12))  # fmt: skip
def test_nothing_raises_on_anything_at_all(dialect: Dialect, value: Any) -> None:
    asked = dialect.asked(value, "")
    for given_documents, streamed in (([value], False), ([value, value], True), ([], True), ([], False)):
        assert_well_formed(asked, dialect.answered(given_documents, streamed))


def test_deep_nesting_is_no_trouble() -> None:
    deep: Any = {"content": "x"}
    for _ in range(900):
        deep = {"delta": deep, "message": deep, "content": [deep], "index": 0} if _ < 2 else {"x": [deep]}
    for dialect in DIALECTS:
        events, _ = SAMPLES[dialect.name]
        for place in places(events)[1:]:
            dialect.answered(mutated(events, place, deep), True)


def test_every_dialect_has_samples_and_a_name_of_its_own() -> None:
    assert set(SAMPLES) == set(BY_NAME)
    assert len(BY_NAME) == len(DIALECTS)
