"""Describe the semantic conventions of OpenTelemetry for generative AI, of 1.26 to 1.42.

Until 1.36 messages were events of their own, first of the span, then as log records; since then they are attributes, of
the span or of one log record beside it.
"""

from __future__ import annotations

from playhead.ingest.otlp.conventions.base import EMBEDDINGS, MODEL, STEP, TOOL, Convention

DETAILS = "gen_ai.client.inference.operation.details"
CHOICE = "gen_ai.choice"
MESSAGES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
PROMPT, COMPLETION = "gen_ai.content.prompt", "gen_ai.content.completion"

CONVENTION = Convention(
    name="genai",
    title="OpenTelemetry GenAI",
    attributes={
        "provider": ("gen_ai.provider.name", "gen_ai.system"),
        "model": ("gen_ai.request.model",),
        "answered_model": ("gen_ai.response.model",),
        "response_id": ("gen_ai.response.id",),
        "finish": ("gen_ai.response.finish_reasons", "anthropic.message.stop_reason"),
        "input_tokens": ("gen_ai.usage.input_tokens",),
        "output_tokens": ("gen_ai.usage.output_tokens",),
        "cached_tokens": ("gen_ai.usage.cache_read.input_tokens",),
        "reasoning_tokens": ("gen_ai.usage.reasoning.output_tokens",),
        "asked_messages": ("gen_ai.input.messages",),
        "said_messages": ("gen_ai.output.messages",),
        "instructions": ("gen_ai.system_instructions",),
        "tools": ("gen_ai.tool.definitions",),
        "tool": ("gen_ai.tool.name",),
        "call": ("gen_ai.tool.call.id",),
        "tool_input": ("gen_ai.tool.call.arguments",),
        "tool_output": ("gen_ai.tool.call.result",),
        "agent": ("gen_ai.agent.name",),
        "session": ("gen_ai.conversation.id",),
        "error_type": ("error.type",),
        "error": ("error.message",),
        "parameter.temperature": ("gen_ai.request.temperature",),
        "parameter.top_p": ("gen_ai.request.top_p",),
        "parameter.top_k": ("gen_ai.request.top_k",),
        "parameter.max_tokens": ("gen_ai.request.max_tokens",),
        "parameter.frequency_penalty": ("gen_ai.request.frequency_penalty",),
        "parameter.presence_penalty": ("gen_ai.request.presence_penalty",),
        "parameter.stop": ("gen_ai.request.stop_sequences",),
        "parameter.seed": ("gen_ai.request.seed",),
        "parameter.n": ("gen_ai.request.choice.count",),
        "parameter.stream": ("gen_ai.request.stream",),
    },
    kinds={
        "gen_ai.operation.name": {
            "chat": MODEL,
            "generate_content": MODEL,
            "text_completion": MODEL,
            "embeddings": EMBEDDINGS,
            "execute_tool": TOOL,
            "invoke_agent": STEP,
            "create_agent": STEP,
            "invoke_workflow": STEP,
        }
    },
    events=(DETAILS, *MESSAGES, CHOICE, PROMPT, COMPLETION),
)
