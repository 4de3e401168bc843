"""Say what two runs took: none of it is a difference of what they did."""

from __future__ import annotations

from typing import Any

from playhead import _limits
from playhead.views.diff.nodes import Node
from playhead.views.diff.source import Source

_COUNTED = (
    "events", "tokens_input", "tokens_output", "tokens_cached", "tokens_reasoning", "model_calls", "tool_calls",
)  # fmt: skip


def metrics(left: Source, right: Source) -> dict[str, dict[str, Any]]:
    """Return tokens, calls, time and cost of both, each with its difference."""
    found: dict[str, dict[str, Any]] = {}
    sides = left.side, right.side
    for name in _COUNTED:
        found[name] = _delta(*(side.counts[name] for side in sides))
    found["duration_us"] = _delta(*(side.ended_us - side.first_us for side in sides))
    found["cost"] = _delta(left.cost, right.cost)
    return found


def _delta(left: Any, right: Any) -> dict[str, Any]:
    return {"left": left, "right": right, "delta": None if left is None or right is None else right - left}


def duration_diff(left: Node, right: Node) -> dict[str, Any] | None:
    """Return two times that differ by much, or of which one is not known: two of those are not the same either."""
    ours, theirs = left.duration_us, right.duration_us
    if ours is not None and theirs is not None:
        apart, longer = abs(ours - theirs), max(ours, theirs)
        if apart < _limits.DURATION_DIFF_US_MIN or apart < _limits.DURATION_DIFF_RATIO_MIN * longer:
            return None
    return {
        "type": "duration_diff", "kind": left.kind, "name": left.name, "path": left.path, "left_seq": left.seq,
        "right_seq": right.seq, "left_us": ours, "right_us": theirs,
        "unknown": ours is None or theirs is None,
    }  # fmt: skip
