"""Say what a step is about and what came out of it, and what of it makes it the same step in another run."""

from __future__ import annotations

import re
from typing import Any

from playhead.ingest.otlp import messages
from playhead.ingest.otlp.conventions import NUMBERED_BEGIN, TABLE
from playhead.ingest.otlp.conventions.base import PARAMETERS
from playhead.ingest.otlp.told import Told

# What an attribute says that is what a step is about; all else in the table is its outcome, or its name.
_ABOUT = frozenset({"provider", "model", "agent", "tools", "instructions", "tool", "tool_input",
                    *(f"parameter.{name}" for name in PARAMETERS)})  # fmt: skip
_OUTCOME = frozenset(
    name for name, meanings in TABLE.items() if not any(meaning in _ABOUT for meaning, _ in meanings)
) | {"langsmith.trace.name", "traceloop.entity.name", "input.mime_type", "output.mime_type"}
_VOLATILE_BEGIN = (
    "gen_ai.usage.", "gen_ai.aggregated_usage.", "gen_ai.response.", "llm.usage.", "llm.token_count.", "ai.usage.",
    "ai.response.", "gf.usage.", "http.response.", "exception.", "thread.", "process.", "otel.", "net.sock.",
    "network.peer.", "client.", "logfire.", "code.", "langsmith.trace.", "langsmith.span.",
)  # fmt: skip
_NOT_ABOUT = (*_VOLATILE_BEGIN, *NUMBERED_BEGIN)
_VOLATILE_END = (
    ".id", "_id", "Id", ".uuid", "_ns", "_ms", "_us", ".duration", "duration", ".time", "_time", "timestamp", ".status",
    ".status_code", "_at", "checkpoint_ns", ".dotted_order", ".output", ".result", ".pid",
)  # fmt: skip
_IDS = frozenset({"id", "run_id", "call_id", "tool_call_id", "toolCallId", "trace_id", "span_id", "message_id",
                  "tool_use_id", "uuid", "langgraph_checkpoint_ns", "checkpoint_ns", "thread_id", "timestamp",
                  "created_at", "start_time", "end_time"})  # fmt: skip
_MADE_UP = re.compile(
    r"(?:[A-Za-z]+[-_:]+)*[0-9a-fA-F-]{16,}(?:-\d+)?|\d{4}-\d\d-\d\dT[\d:.+Z-]+|.*[0-9a-f]{8}-[0-9a-f]{4}-.*"
)


class Work:
    """What a step is about, and what came out."""

    __slots__ = ("attributes", "output", "question")

    def __init__(self, told: Told) -> None:
        attributes: dict[str, Any] = {}
        given = _input(told)
        if given is not None:
            attributes["input"] = given
        steady: dict[str, Any] = {}
        for name in told.span.attributes:
            if name in _OUTCOME or name.startswith(_NOT_ABOUT):
                continue
            value = told.span.value(name)
            if value is None:
                continue
            attributes[name] = value
            if name in TABLE or not name.endswith(_VOLATILE_END):  # `ai.model.id` is the name of a model
                steady[name] = _steady(value)
        if given is not None:
            steady["input"] = _steady(given)
        self.attributes = attributes
        self.output = _output(told)
        self.question = (told.span.name or None, steady)


def _input(told: Told) -> Any:
    given = told.of("input")
    if told.names.get("input") == "pydantic_ai.all_messages" and type(given) is list:
        # All that was said, also by the agent itself: what it was asked is what came before its first answer.
        talk = messages.chat(given)
        first = next((at for at, one in enumerate(talk) if one.get("role") == "assistant"), len(talk))
        return talk[:first]
    if given is not None:
        return given
    asked = told.of("asked_messages")
    if type(asked) is list:
        return messages.chat(asked)
    return messages.chat(told.numbered("asked_messages")) or None if told.numbered_names else asked


def _output(told: Told) -> Any:
    for meaning in ("output", "tool_output", "said_messages", "said_text", "said_object", "said_calls", "vectors"):
        said = told.of(meaning)
        if said is not None:
            return messages.chat(said) if meaning == "said_messages" and type(said) is list else said
    return messages.chat(told.numbered("said_messages")) or None if told.numbered_names else None


def _steady(value: Any) -> Any:
    """Return a value without ids and times that are made up anew in each run."""
    if type(value) is dict:
        return {
            key: _steady(item)
            for key, item in value.items()
            if not (key in _IDS and type(item) is str and _MADE_UP.fullmatch(item[:200]))
        }
    return [_steady(item) for item in value] if type(value) is list else value
