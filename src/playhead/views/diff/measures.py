"""Say what two runs took: none of it is a difference of what they did."""

from __future__ import annotations

from typing import Any

from playhead import _limits
from playhead.views import prices, text
from playhead.views.diff.nodes import Node
from playhead.views.diff.source import Source

_COUNTED = ("events", "model_calls", "tool_calls")
_UNKNOWN = "unknown"
_TOKENS = ("tokens_input", "tokens_output", "tokens_cached", "tokens_reasoning")


def metrics(left: Source, right: Source) -> dict[str, dict[str, Any]]:
    """Return tokens, calls, time and cost of both, each with its difference."""
    found: dict[str, dict[str, Any]] = {}
    sides = left.side, right.side
    for name in _COUNTED:
        found[name] = _delta(*(side.counts[name] for side in sides))
    for name in _TOKENS:
        found[name] = _counted((left, right), name)
    found["duration_us"] = _delta(*(side.ended_us - side.first_us for side in sides))
    costs = [side.cost for side in (left, right)]
    found["cost"] = _delta(*(cost for cost, _ in costs))
    partial = [name for name, (cost, whole) in zip(("left", "right"), costs, strict=True) if cost and not whole]
    if partial:  # somebody's price or tokens are not known: what is known does not tell which run was cheaper
        found["cost"] |= {"delta": None, "partial": partial}
    return found


def _counted(sources: tuple[Source, Source], name: str) -> dict[str, Any]:
    """Return how many tokens there were: null where no call said it, and `partial` where some did not."""
    counts: list[int | None] = []
    partial = []
    for source in sources:
        found = source.side.counts
        known, silent = found["tokens_input"] or found["tokens_output"], source.silent_calls
        counts.append(None if silent and not known else found[name])
        partial += [source.name] if silent and known else []
    return _delta(*counts) | ({"delta": None, "partial": partial} if partial else {})


def tokens_told(tokens: dict[str, Any]) -> tuple[str, str]:
    """Say how many tokens both runs used, each as far as that is known."""
    left, right = (_tokens_told(tokens.get(side), side in tokens.get("partial", ())) for side in ("left", "right"))
    return left, right


def _tokens_told(count: int | None, partial: bool) -> str:
    return _UNKNOWN if count is None else text.number(count) + (f" + {_UNKNOWN}" if partial else "")


def costs_told(cost: dict[str, Any]) -> tuple[str, str]:
    """Say what both runs cost, each as far as that is known."""
    left, right = (_cost_told(cost.get(side), side in cost.get("partial", ())) for side in ("left", "right"))
    return left, right


def _cost_told(amount: float | None, partial: bool) -> str:
    if not amount and (amount is None or partial):
        return _UNKNOWN
    return prices.money(amount) + (f" + {_UNKNOWN}" if partial else "")


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
