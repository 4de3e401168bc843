"""Find where something was redacted, and say how often."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from playhead.views.summary import Summary

_MARK = re.compile(r"\[redacted:([^\]\n]{1,100})\]")


def marks(value: Any) -> list[str]:
    """Return the rule of every mark in a value, one for each place where it stands."""
    found: list[str] = []
    stack = [value] if _may_hold_one(value) else []
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            if "[redacted:" in one:
                found += _MARK.findall(one)
        elif isinstance(one, list):
            stack += one
        elif isinstance(one, dict):
            rule = one.get("$redacted")
            if isinstance(rule, str):
                found.append(rule)
            else:
                stack += one.values()
    return found


def add(summary: Summary, marked: Mapping[str, int]) -> None:
    """Add to a summary what the run did not count at its end: as often as a mark of it stands in the events."""
    counted = summary.redacted.keys() - {*summary.redacted_at_least}
    summary.redacted_at_least = sorted(marked.keys() - counted)
    summary.redacted |= {rule: marked[rule] for rule in summary.redacted_at_least}


def told(counts: Mapping[str, int], at_least: Collection[str]) -> str:
    """Say how much was redacted, by rule; of some of them it was at least so much."""
    each = (f"{'at least ' if rule in at_least else ''}{count:,} {rule}" for rule, count in sorted(counts.items()))
    return ", ".join(each)


def _may_hold_one(value: Any) -> bool:
    """Look at a value as a whole first: most hold none, and to walk through them takes long."""
    try:
        return b"redacted" in orjson.dumps(value)
    except orjson.JSONEncodeError:  # a number or a text that JSON has no room for
        return True
