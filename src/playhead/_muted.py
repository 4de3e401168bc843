"""Say that what happens now is done by a part that records what it means itself, or by the recorder.

A module of its own, at the bottom: capture looks at it, and what asks a server has to say it without knowing capture.
"""

from __future__ import annotations

from contextvars import ContextVar

# Traffic of a part that records what it means itself, such as the requests of an MCP client, or of Playhead itself.
muted: ContextVar[bool] = ContextVar("playhead_muted", default=False)
