"""Describe Vercel's AI SDK: the outer span of a function is a step, the inner one of a request the call of a model."""

from __future__ import annotations

from playhead.ingest.otlp.conventions.base import EMBEDDINGS, MODEL, STEP, TOOL, Convention

CONVENTION = Convention(
    name="vercel",
    title="Vercel AI SDK",
    attributes={
        "provider": ("ai.model.provider",),
        "model": ("ai.model.id",),
        "answered_model": ("ai.response.model",),
        "response_id": ("ai.response.id",),
        "finish": ("ai.response.finishReason", "ai.finishReason"),
        "input_tokens": ("ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"),
        "output_tokens": ("ai.usage.outputTokens", "ai.usage.completionTokens"),
        "cached_tokens": ("ai.usage.cachedInputTokens", "ai.usage.inputTokenDetails.cacheReadTokens"),
        "reasoning_tokens": ("ai.usage.reasoningTokens", "ai.usage.outputTokenDetails.reasoningTokens"),
        "asked_messages": ("ai.prompt.messages",),
        "said_text": ("ai.response.text", "ai.result.text"),
        "said_object": ("ai.response.object", "ai.result.object"),
        "said_calls": ("ai.response.toolCalls", "ai.result.toolCalls"),
        "said_thoughts": ("ai.response.reasoning",),
        "tools": ("ai.prompt.tools",),
        "embedded": ("ai.values", "ai.value"),
        "vectors": ("ai.embeddings", "ai.embedding"),
        "tool": ("ai.toolCall.name",),
        "call": ("ai.toolCall.id",),
        "tool_input": ("ai.toolCall.args", "ai.toolCall.input"),
        "tool_output": ("ai.toolCall.result", "ai.toolCall.output"),
        "input": ("ai.prompt",),
        "agent": ("ai.telemetry.functionId",),
        "session": ("ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.threadId"),
        "parameter.temperature": ("ai.settings.temperature",),
        "parameter.max_tokens": ("ai.settings.maxOutputTokens", "ai.settings.maxTokens"),
        "parameter.tool_choice": ("ai.prompt.toolChoice",),
    },
    kinds={
        "ai.operationId": {
            "ai.generateText.doGenerate": MODEL,
            "ai.streamText.doStream": MODEL,
            "ai.generateObject.doGenerate": MODEL,
            "ai.streamObject.doStream": MODEL,
            "ai.embed.doEmbed": EMBEDDINGS,
            "ai.embedMany.doEmbed": EMBEDDINGS,
            "ai.toolCall": TOOL,
            "ai.generateText": STEP,
            "ai.streamText": STEP,
            "ai.generateObject": STEP,
            "ai.streamObject": STEP,
            "ai.embed": STEP,
            "ai.embedMany": STEP,
            "ai.rerank": STEP,
            "ai.rerank.doRerank": STEP,
        }
    },
)
