"""Describe what pydantic-ai adds: what an agent was told and said in all, and the arguments of its tools."""

from __future__ import annotations

from playhead.ingest.otlp.conventions.base import Convention

EVENTS = "events"  # of its older form: the log records of a call, as one text

CONVENTION = Convention(
    name="pydantic_ai",
    title="pydantic-ai",
    attributes={
        "input": ("pydantic_ai.all_messages", "all_messages_events"),
        "output": ("final_result",),
        "tool_input": ("tool_arguments",),
        "tool_output": ("tool_response",),
        "agent": ("agent_name",),
        "reasoning_tokens": ("gen_ai.usage.details.reasoning_tokens",),
        "cached_tokens": ("gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.details.cached_tokens"),
    },
)
