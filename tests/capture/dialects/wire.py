"""Write bodies as servers write them, and read them as the recorder does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from playhead.capture.dialects import Answered, Dialect, documents


def sse(*events: Any, named: bool = False, end: str = "") -> bytes:
    """Return server-sent events as OpenAI and Google write them, or with the names that Anthropic gives."""
    lines = []
    for event in events:
        if named:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json.dumps(event, ensure_ascii=False)}\n\n")
    return "".join([*lines, end]).encode()


def ndjson(*lines: Any) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def read(dialect: Dialect, body: bytes, content_type: str = "text/event-stream") -> Answered:
    """Return what a dialect reads in an answer."""
    found = documents(body, content_type)
    assert found is not None
    return dialect.answered(*found)


def answer(dialect: Dialect, body: Any) -> Answered:
    """Return what a dialect reads in an answer that is not streamed, given as a value."""
    result = dialect.answered([body], False)
    assert result.response is body
    return result


def frozen_copy(value: Any) -> Any:
    """Return a copy, to see later that nobody changed the original."""
    return json.loads(json.dumps(value))


def unchanged(function: Callable[[Sequence[Any], bool], Answered], events: list[Any]) -> Answered:
    """Read a stream, and make sure that the events themselves stay as they were."""
    before = frozen_copy(events)
    result = function(events, True)
    assert events == before
    return result
