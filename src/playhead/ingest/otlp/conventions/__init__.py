"""Hold every convention that is understood, in the order in which they count; a page of the reference shows the table.

To add one, write a module like the others, put it into CONVENTIONS, and its section into docs/reference/otlp.md.
"""

from __future__ import annotations

from playhead.ingest.otlp.conventions import (
    genai,
    langsmith,
    logfire,
    openinference,
    pydantic_ai,
    spanchain,
    traceloop,
    vercel,
)
from playhead.ingest.otlp.conventions.base import Convention

CONVENTIONS: tuple[Convention, ...] = (
    vercel.CONVENTION,
    langsmith.CONVENTION,
    genai.CONVENTION,
    openinference.CONVENTION,
    pydantic_ai.CONVENTION,
    logfire.CONVENTION,
    traceloop.CONVENTION,
    spanchain.CONVENTION,
)

# Where several say what a span is, the first of these counts: some call by a name of OpenTelemetry what is none.
KINDS_FIRST = ("langsmith.span.kind", "ai.operationId", "openinference.span.kind", "gen_ai.operation.name",
               "traceloop.span.kind", "llm.request.type")  # fmt: skip
KINDS = {name: values for one in CONVENTIONS for name, values in one.kinds.items()}

# What is beside these, of no convention: how sessions are called by whoever writes his own spans.
_MORE = {"session": ("session.id", "session_id", "thread_id", "conversation_id", "langfuse.session.id")}


def _table() -> dict[str, list[tuple[str, int]]]:
    table: dict[str, list[tuple[str, int]]] = {}
    rank = 0
    for attributes in (*(one.attributes for one in CONVENTIONS), _MORE):
        for meaning, names in attributes.items():
            for name in names:
                rank += 1
                meanings = table.setdefault(name, [])
                if all(known != meaning for known, _ in meanings):
                    meanings.append((meaning, rank))
    return table


# Attribute → what it says, and how early it counts among those that say the same.
TABLE: dict[str, tuple[tuple[str, int], ...]] = {name: tuple(meanings) for name, meanings in _table().items()}
RANKS: dict[str, dict[str, int]] = {name: dict(meanings) for name, meanings in TABLE.items()}
NUMBERED: dict[str, str] = {begin: meaning for one in CONVENTIONS for begin, meaning in one.numbered.items()}
NUMBERED_BEGIN = tuple(NUMBERED)
RUN_ID = "playhead.run.id"  # by which a span says itself which run it belongs to
SESSIONS: tuple[str, ...] = tuple(
    sorted(
        (name for name, meanings in TABLE.items() if any(meaning == "session" for meaning, _ in meanings)),
        key=lambda name: min(rank for meaning, rank in TABLE[name] if meaning == "session"),
    )
)
# Attributes that name the agent at work, the first that is there counts.
AGENTS = tuple(name for name, meanings in TABLE.items() if any(meaning == "agent" for meaning, _ in meanings))
