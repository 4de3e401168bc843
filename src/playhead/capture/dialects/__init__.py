"""What models are spoken to in: which dialect a request is in, what it asks, and what the answer says."""

from playhead.capture.dialects.base import Answered, Asked, Dialect, ToolAsked, ToolResult
from playhead.capture.dialects.bodies import documents
from playhead.capture.dialects.table import DIALECTS, find, model_of, normalised, speaks, split

__all__ = [
    "DIALECTS", "Answered", "Asked", "Dialect", "ToolAsked", "ToolResult",
    "documents", "find", "model_of", "normalised", "speaks", "split",
]  # fmt: skip
