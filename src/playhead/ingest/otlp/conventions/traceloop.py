"""Describe OpenLLMetry (Traceloop): the older numbered attributes, and what it adds to the newer GenAI ones."""

from __future__ import annotations

from playhead.ingest.otlp.conventions.base import EMBEDDINGS, MODEL, STEP, TOOL, Convention

CONVENTION = Convention(
    name="traceloop",
    title="OpenLLMetry (Traceloop)",
    attributes={
        "model": ("llm.request.model",),
        "answered_model": ("llm.response.model",),
        "finish": ("llm.response.finish_reason", "llm.response.stop_reason"),
        "input_tokens": ("gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"),
        "output_tokens": ("gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"),
        "cached_tokens": ("gen_ai.usage.cache_read_input_tokens",),
        "reasoning_tokens": ("gen_ai.usage.reasoning_tokens", "llm.usage.reasoning_tokens"),
        "tool": ("traceloop.entity.name",),
        "input": ("traceloop.entity.input", "gen_ai.task.input"),
        "output": ("traceloop.entity.output", "gen_ai.task.output"),
        "session": ("traceloop.association.properties.session_id", "traceloop.association.properties.thread_id"),
        "parameter.stream": ("llm.is_streaming", "gen_ai.is_streaming"),
        "parameter.temperature": ("llm.temperature",),
        "parameter.top_p": ("llm.top_p",),
        "parameter.max_tokens": ("llm.request.max_tokens",),
    },
    kinds={
        "llm.request.type": {"chat": MODEL, "completion": MODEL, "embedding": EMBEDDINGS, "rerank": STEP},
        "traceloop.span.kind": {"workflow": STEP, "task": STEP, "agent": STEP, "tool": TOOL},
    },
    numbered={
        "gen_ai.prompt.": "asked_messages",
        "gen_ai.completion.": "said_messages",
        "llm.request.functions.": "tools",
        "llm.prompts.": "asked_messages",
        "llm.completions.": "said_messages",
    },
)
