"""Describe OpenInference (Arize Phoenix): whole bodies as `input.value`, and each message in numbered attributes."""

from __future__ import annotations

from playhead.ingest.otlp.conventions.base import EMBEDDINGS, MODEL, STEP, TOOL, Convention

CONVENTION = Convention(
    name="openinference",
    title="OpenInference",
    attributes={
        "provider": ("llm.provider", "llm.system"),
        "model": ("llm.request.model_name", "embedding.model_name", "llm.model_name"),
        "answered_model": ("llm.response.model_name", "llm.model_name"),
        "finish": ("llm.finish_reason",),
        "input_tokens": ("llm.token_count.prompt",),
        "output_tokens": ("llm.token_count.completion",),
        "cached_tokens": ("llm.token_count.prompt_details.cache_read",),
        "reasoning_tokens": ("llm.token_count.completion_details.reasoning",),
        "parameters": ("llm.invocation_parameters", "embedding.invocation_parameters"),
        "tool": ("tool.name",),
        "call": ("tool_call.id", "tool.id"),
        "input": ("input.value",),
        "output": ("output.value",),
        "agent": ("agent.name",),
        "session": ("session.id",),
    },
    kinds={
        "openinference.span.kind": {
            "LLM": MODEL,
            "EMBEDDING": EMBEDDINGS,
            "TOOL": TOOL,
            "AGENT": STEP,
            "CHAIN": STEP,
            "RETRIEVER": STEP,
            "RERANKER": STEP,
            "GUARDRAIL": STEP,
            "EVALUATOR": STEP,
            "PROMPT": STEP,
            "UNKNOWN": STEP,
        }
    },
    numbered={
        "llm.input_messages.": "asked_messages",
        "llm.output_messages.": "said_messages",
        "llm.tools.": "tools",
        "embedding.embeddings.": "embedded",
    },
)
