"""Answer the scenarios of the programs: each by the name in its prompt, each from a script of its own.

The scripts are the same for every library; the scripted provider writes them in the form of the API that is asked.
"""

from __future__ import annotations

import re
import threading
from collections import Counter

from playhead.testing import Embeddings, Failure, ReceivedRequest, Text, ToolCall, ToolCalls, Wire
from playhead.testing.script import Answer

_NAME = re.compile(rb"case(?::|%3A)([a-z0-9_]+?)(?:_(\d+))?[:/?]")
_LONG = "Es ist warm in Paris: 21 °C. In Oslo 是十二点半 🕧, und die Sonne scheint über dem Fjord. " * 3
_ANSWER = Text("It is 21 degrees in Paris, and half past twelve in Oslo.")
_WEATHER = ToolCalls((ToolCall("weather", {"city": "Paris"}),), text="I look it up.")
_BOTH = ToolCalls((ToolCall("weather", {"city": "Paris"}), ToolCall("clock", {"city": "Oslo"})))
_BUSY = Failure(429, "too many requests", retry_after_ms=5)
_DOWN = Failure(500, "the server is ill", retry_after_ms=5)
_CUT = Text(_LONG, wire=Wire(cut=5))
_HALF = Text(_LONG, wire=Wire(cut="mid-body"))
_SLOW = Text(_LONG, wire=Wire(chunk_delay_s=0.05))
_LATE = Text(_LONG, wire=Wire(delay_s=2.0))
_TORN = Text(_LONG, wire=Wire(split="torn"))

# By name without `_async`, `_stream` and the like, see `_script`. When a script is at its end its last answer is
# repeated, so that what fails for good fails however often it is tried.
SCRIPTS: dict[str, list[Answer]] = {
    "tools": [_WEATHER, _ANSWER],
    "tools_stream": [_BOTH],
    "responses_tools": [_BOTH, _ANSWER],
    "automatic_tools": [_WEATHER, _ANSWER],
    "agent": [_WEATHER, _ANSWER],
    "parallel_tools": [_BOTH, _ANSWER],
    "handoff": [ToolCalls((ToolCall("transfer_to_clerk", {}),)), _BOTH, _ANSWER],
    "rate_limited": [_BUSY, _ANSWER],
    "server_error": [_DOWN, _ANSWER],
    "failing": [_DOWN],
    "refused": [Failure(400, "no such parameter")],
    "cut_stream": [_CUT],
    "cut_body": [_HALF],
    "cut_head": [Text(_LONG, wire=Wire(cut="before-head"))],
    "gzip": [Text(_LONG, wire=Wire(encoding="gzip"))],
    "br": [Text(_LONG, wire=Wire(encoding="br"))],
    "zstd": [Text(_LONG, wire=Wire(encoding="zstd"))],
    "torn": [_TORN],
    "timeout": [_LATE],
    "cancelled": [_SLOW],
    "cancelled_waiting": [_LATE],
    "closed_early": [_SLOW, _ANSWER],
    "unbuffered": [_SLOW],
    "large": [Text(_LONG * 2000)],
    "embeddings": [Embeddings()],
}


class Answers:
    """Be the script of a provider."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: ReceivedRequest) -> Answer:
        """Return the next answer of the scenario that asks."""
        name, number = case_of(request)
        if number is not None:
            return Text(f"{name} {number}: {_LONG}")
        with self._lock:
            turn = self._asked[name]
            self._asked[name] += 1
        script = _script(name)
        return script[min(turn, len(script) - 1)]


def case_of(request: ReceivedRequest) -> tuple[str, str | None]:
    """Return the scenario that a request belongs to, and its number if it is one of many."""
    found = _NAME.search(request.body) or _NAME.search(request.path.encode())
    if found is None:
        raise ValueError(f"a request of no scenario: {request.method} {request.path} {request.body[:300]!r}")
    return found[1].decode(), found[2].decode() if found[2] else None


def tools_asked(scenario: str) -> list[ToolCall]:
    """Return the tools that the model asks for in a scenario."""
    return [call for answer in _script(scenario) if isinstance(answer, ToolCalls) for call in answer.calls]


def _script(name: str) -> list[Answer]:
    while name not in SCRIPTS and "_" in name:
        name = name.rpartition("_")[0]
    return SCRIPTS.get(name, [Text(_LONG)])
