"""Count the tokens of a call that somebody records by hand, from what its provider said, by whichever names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead.event import kinds

_FLAT = {
    "input": ("input", "input_tokens", "prompt_tokens", "prompt_token_count"),
    "output": ("output", "output_tokens", "completion_tokens", "candidates_token_count"),
    "cached": ("cached", "cached_tokens", "cache_read_input_tokens", "cached_content_token_count"),
    "reasoning": ("reasoning", "reasoning_tokens", "thoughts_token_count"),
}
_ANTHROPIC = ("cache_read_input_tokens", "cache_creation_input_tokens")
_GOOGLE = ("prompt_token_count", "tool_use_prompt_token_count", "candidates_token_count", "thoughts_token_count",
           "cached_content_token_count")  # fmt: skip
_OPENAI = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_hit_tokens", "cached_tokens",
           "input_tokens", "output_tokens")  # fmt: skip
_DETAILS = ("prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details")
_OF_DETAILS = ("cached_tokens", "reasoning_tokens", "thinking_tokens")


def tokens(usage: Any) -> kinds.Usage:
    """Count tokens from a mapping or an object, by our names or by those of the providers.

    Providers count differently what a cache gave and what was thought: that is left to what reads their answers.
    """
    counted = {field: _first(usage, names) for field, names in _FLAT.items()}
    if _first(usage, ("input", "output")) is None and (told := _by_provider(usage)) is not None:
        for field in counted:
            if (count := getattr(told, field)) is not None:
                counted[field] = count
    return kinds.Usage(**{field: count for field, count in counted.items() if count is not None})


def _by_provider(usage: Any) -> kinds.Usage | None:
    from playhead.capture.dialects import anthropic, google, openai_chat, openai_responses  # few calls come by hand

    said: dict[str, Any] = _numbers(usage, (*_OPENAI, *_ANTHROPIC))
    said |= {name: _numbers(_get(usage, name), _OF_DETAILS) for name in _DETAILS}
    google_said = {**_numbers(usage, _GOOGLE), **_numbers(usage, map(_camel, _GOOGLE))}
    if google_said:
        return google.usage_of({"usageMetadata": {_camel(name): count for name, count in google_said.items()}})
    if "prompt_tokens" in said:
        return openai_chat.usage_of({"usage": said})
    if any(name in said for name in _ANTHROPIC) or said["output_tokens_details"].get("thinking_tokens") is not None:
        return anthropic.usage_of({"usage": said})
    return openai_responses.usage_of({"usage": said})


def _numbers(usage: Any, names: Any) -> dict[str, int]:
    return {name: count for name in names if (count := _first(usage, (name,))) is not None}


def _first(usage: Any, names: tuple[str, ...]) -> int | None:
    return next((count for name in names if type(count := _get(usage, name)) is int), None)


def _get(usage: Any, name: str) -> Any:
    return usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
