"""What tests and demonstrations of agents need: a provider that answers from a script, and an agent to record."""

from __future__ import annotations

from playhead.testing.provider import ReceivedRequest, ScriptedProvider
from playhead.testing.script import Failure, Text, ToolCall, ToolCalls

__all__ = ["Failure", "ReceivedRequest", "ScriptedProvider", "Text", "ToolCall", "ToolCalls"]
