"""Say what a convention is: which attributes say what, and which values say what a span is."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

MODEL, EMBEDDINGS, TOOL, STEP = "model", "embeddings", "tool", "step"

# What attributes can say. Parameters of a request are `parameter.` and the name that they have in a request.
MEANINGS: dict[str, str] = {
    "provider": "who runs the model",
    "model": "the model that was asked",
    "answered_model": "the model that answered",
    "response_id": "the id of the answer",
    "finish": "why the answer ended",
    "input_tokens": "tokens of the question",
    "output_tokens": "tokens of the answer",
    "cached_tokens": "of the question, those read from a cache",
    "reasoning_tokens": "of the answer, those thought",
    "asked_messages": "the messages of the question",
    "said_messages": "the messages of the answer",
    "instructions": "the system prompt, where it is apart",
    "tools": "the tools that are offered",
    "request": "the request as it was sent",
    "response": "the answer as it came",
    "said_text": "the text of the answer",
    "said_object": "the answer, where it is an object",
    "said_calls": "the tools that the answer asks for",
    "said_thoughts": "what was thought before the answer",
    "embedded": "the texts to embed",
    "vectors": "what they were embedded as",
    "parameters": "parameters of the request, as one object",
    "tool": "the name of a tool",
    "call": "the model's id of the call of a tool",
    "tool_input": "the arguments of a tool",
    "tool_output": "the result of a tool",
    "input": "what a step, a tool or a model was given",
    "output": "what it gave back",
    "agent": "the agent at work",
    "session": "the session or conversation, which is the run",
    "status": "how it ended, where OTLP's own status does not say so",
    "error": "what went wrong",
    "error_type": "the class of what went wrong",
}
PARAMETERS = (
    "temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty", "stop", "seed", "n",
    "stream", "tool_choice",
)  # fmt: skip


class Convention(msgspec.Struct, kw_only=True):
    """One convention. Earlier attributes count before later ones, and earlier conventions before later ones."""

    name: str
    title: str
    attributes: Mapping[str, tuple[str, ...]]  # meaning → attributes
    kinds: Mapping[str, Mapping[str, str]] = {}  # attribute → its value → what the span is
    numbered: Mapping[str, str] = {}  # how attributes begin that are numbered, `gen_ai.prompt.0.role` → meaning
    events: tuple[str, ...] = ()  # events of the span, or log records beside it, that hold messages
