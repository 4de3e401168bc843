"""Give another answer in place of a recorded one: an edited one, that of another run, or none at all."""

from __future__ import annotations

from typing import Any

from playhead.replay.tape import Call


class Edited:
    """A recorded answer that says something else."""

    def __init__(self, call: Call, data: dict[str, Any]) -> None:
        self.data = data
        self.kind, self.span = call.kind, call.span
        self.began_us, self.ended_us = call.began_us, call.ended_us
        self.closing = call.closing

    def whole(self) -> None:
        """Have nothing at hand but what it says."""
        return


MAIN = {"tool.called": "output", "mcp.requested": "result"}  # where the answer to a call is that may be passed over
# What a call comes to that is passed over: nobody knows what it would have answered.
NOTHING: dict[str, dict[str, Any]] = {
    "tool.called": {"status": "ok", "output": None},
    "mcp.requested": {"status": "ok", "result": {"content": []}},
}
