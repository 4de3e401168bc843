"""What is different in every question to a model goes where its provider expects it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from playhead.errors import UsageError
from playhead.replay.models.overrides import Asked, Overrides, elsewhere

CHAT = "https://api.openai.com/v1/chat/completions"
MESSAGES = "https://api.anthropic.com/v1/messages"
GENERATE = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent"
AZURE = "https://x.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=1"
USER = {"role": "user", "content": "Hi"}


def applied(url: str, body: Any, **given: Any) -> tuple[str, Any]:
    found = Overrides(**given).applied(Asked("POST", url, [], json.dumps(body).encode()))
    return found.url, json.loads(found.body)


@pytest.mark.parametrize(
    ("url", "body", "there", "expected"),
    [
        (CHAT, {"model": "a", "messages": []}, CHAT, {"model": "new/one", "messages": []}),
        (GENERATE, {"contents": []}, GENERATE.replace("gemini-2.5-pro", "new%2Fone"), {"contents": []}),
        (AZURE, {"messages": [USER]}, AZURE.replace("gpt-4o", "new%2Fone"), {"messages": [USER]}),
    ],
)
def test_another_model(url: str, body: Any, there: str, expected: Any) -> None:
    assert applied(url, body, model="new/one") == (there, expected)


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        (CHAT, {"messages": [USER]}, {"messages": [{"role": "system", "content": "S"}, USER]}),
        (CHAT, {"messages": [{"role": "developer", "content": "x"}]}, {"messages": [{"role": "developer", "content": "S"}]}),
        (MESSAGES, {"messages": [USER], "system": "x"}, {"messages": [USER], "system": "S"}),
        (CHAT.replace("chat/completions", "responses"), {"input": "a"}, {"input": "a", "instructions": "S"}),
        (GENERATE, {"contents": []}, {"contents": [], "systemInstruction": {"parts": [{"text": "S"}]}}),
        ("http://localhost:11434/api/chat", {"model": "m", "messages": []},
         {"model": "m", "messages": [{"role": "system", "content": "S"}]}),
    ],
)  # fmt: skip
def test_another_system_prompt(url: str, body: Any, expected: Any) -> None:
    assert applied(url, body, system="S")[1] == expected


def test_parameters_are_put_by_their_paths() -> None:
    _, body = applied(GENERATE, {"contents": []}, parameters={"generationConfig.temperature": 0})
    assert body["generationConfig"] == {"temperature": 0}
    _, body = applied(CHAT, {"messages": [USER]}, parameters={"messages.0.content": "Bye"})
    assert body["messages"][0]["content"] == "Bye"
    with pytest.raises(UsageError, match="nothing is at"):
        applied(CHAT, {"messages": [USER]}, parameters={"messages.7.content": "Bye"})


@pytest.mark.parametrize(
    ("url", "base", "there"),
    [
        (CHAT, "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
        (CHAT, "http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/chat/completions"),
        (CHAT, "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
        (CHAT, "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        (MESSAGES, "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/messages"),
        (GENERATE, "http://h", "http://h/v1beta/models/gemini-2.5-pro:generateContent"),
        ("https://openrouter.ai/api/v1/chat/completions", "http://h/v1", "http://h/v1/chat/completions"),
    ],
)
def test_another_place(url: str, base: str, there: str) -> None:
    assert elsewhere(url, base) == there


def test_what_cannot_be_changed_is_said() -> None:
    with pytest.raises(UsageError, match="not the address"):
        elsewhere(CHAT, "localhost")
    with pytest.raises(UsageError, match="no JSON of a known provider"):
        Overrides(model="x").applied(Asked("POST", "http://h/other", [], b"{}"))
    with pytest.raises(UsageError, match="have no system prompt"):
        applied(CHAT.replace("chat/completions", "embeddings"), {"input": "a"}, system="S")
