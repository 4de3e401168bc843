"""Describe LangSmith: what it exports over OpenTelemetry, and the runs of its own export (ingest/otlp/langsmith.py).

It calls a retriever `embeddings` and a prompt `chat`, so its own kind counts before the name of the operation. Its
session is a project, and no session: what belongs together is in the metadata.
"""

from __future__ import annotations

from playhead.ingest.otlp.conventions.base import EMBEDDINGS, MODEL, STEP, TOOL, Convention

CONVENTION = Convention(
    name="langsmith",
    title="LangSmith",
    attributes={
        "provider": ("langsmith.metadata.ls_provider",),
        "model": ("langsmith.metadata.ls_model_name",),
        "tool": ("langsmith.trace.name",),
        "input": ("gen_ai.prompt",),
        "output": ("gen_ai.completion",),
        "parameters": ("langsmith.invocation_params",),
        "parameter.stream": ("langsmith.request.streaming",),
        "session": (
            "langsmith.metadata.session_id",
            "langsmith.metadata.thread_id",
            "langsmith.metadata.conversation_id",
        ),
    },
    kinds={
        "langsmith.span.kind": {
            "llm": MODEL,
            "embedding": EMBEDDINGS,
            "tool": TOOL,
            "chain": STEP,
            "retriever": STEP,
            "prompt": STEP,
            "parser": STEP,
        }
    },
)
