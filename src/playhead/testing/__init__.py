"""What tests and demonstrations of agents need: a provider that answers from a script, and an agent to record."""

from __future__ import annotations

from playhead.testing.exchanges import Exchange, ReceivedRequest, read_log
from playhead.testing.script import Embeddings, Failure, Raw, Refusal, Text, ToolCall, ToolCalls, Usage
from playhead.testing.server import ScriptedProvider
from playhead.testing.wire import Wire

__all__ = [
    "Embeddings", "Exchange", "Failure", "Raw", "ReceivedRequest", "Refusal", "ScriptedProvider", "Text", "ToolCall",
    "ToolCalls", "Usage", "Wire", "read_log",
]  # fmt: skip
