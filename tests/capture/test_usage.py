from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from playhead.capture.usage import tokens
from playhead.event.kinds import Usage

# One answer of 1,000 tokens in, 600 of them cached, and 200 out, 50 of them thought, as each provider counts it.
SAID: dict[str, dict[str, Any]] = {
    "ours": {"input": 1000, "output": 200, "cached": 600, "reasoning": 50},
    "chat": {
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "total_tokens": 1200,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 50},
    },
    "responses": {
        "input_tokens": 1000,
        "output_tokens": 200,
        "input_tokens_details": {"cached_tokens": 600},
        "output_tokens_details": {"reasoning_tokens": 50},
    },
    "anthropic": {
        "input_tokens": 300,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 600,
        "output_tokens": 200,
        "output_tokens_details": {"thinking_tokens": 50},
    },
    "google": {
        "prompt_token_count": 1000,
        "candidates_token_count": 150,
        "thoughts_token_count": 50,
        "cached_content_token_count": 600,
    },
    "google, as it is sent": {
        "promptTokenCount": 1000,
        "candidatesTokenCount": 150,
        "thoughtsTokenCount": 50,
        "cachedContentTokenCount": 600,
    },
    "flat": {"prompt_tokens": 1000, "completion_tokens": 200, "cached_tokens": 600, "reasoning_tokens": 50},
}


def as_object(said: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**{name: as_object(one) if isinstance(one, dict) else one for name, one in said.items()})


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_what_any_provider_says_comes_to_the_same_tokens(said: dict[str, Any]) -> None:
    expected = Usage(input=1000, output=200, cached=600, reasoning=50)
    assert tokens(said) == tokens(as_object(said)) == expected


@pytest.mark.parametrize("said", [{}, {"input": True, "prompt_tokens": "5"}, "nothing", 7])
def test_what_says_nothing_counts_nothing(said: Any) -> None:
    assert tokens(said) == Usage()
