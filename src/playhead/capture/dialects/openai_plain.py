"""Read OpenAI's older completions, and its embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead.capture.dialects.base import Answered, Asked, Dialect, error_of, mapping, rows, text
from playhead.capture.dialects.openai_chat import assembled, model_of, usage_of


def asked(body: Any, path: str) -> Asked:
    """Read a request; neither knows tools."""
    return Asked(model_of(body, path))


def completed(documents: Sequence[Any], streamed: bool) -> Answered:
    """Read a completion."""
    whole = assembled(documents, "text_completion") if streamed else (documents[0] if documents else None)
    choices = rows(mapping(whole).get("choices"))
    return Answered(
        response=whole,
        model=text(mapping(whole).get("model")),
        usage=usage_of(whole),
        finish=text(choices[0].get("finish_reason")) if choices else None,
        error=error_of(whole),
    )


def embedded(documents: Sequence[Any], streamed: bool) -> Answered:
    """Read embeddings; the vectors stay in the response."""
    whole = documents[0] if documents else None
    return Answered(
        response=whole, model=text(mapping(whole).get("model")), usage=usage_of(whole), error=error_of(whole)
    )


COMPLETIONS = Dialect(
    name="openai.completions",
    provider="openai",
    routes=(r"/completions$",),
    operation="completions",
    volatile=("metadata",),
    asked=asked,
    answered=completed,
    fields=(("prompt",),),
)
EMBEDDINGS = Dialect(
    name="openai.embeddings",
    provider="openai",
    routes=(r"/embeddings$",),
    operation="embeddings",
    volatile=(),
    asked=asked,
    answered=embedded,
    fields=(("input",),),
)
