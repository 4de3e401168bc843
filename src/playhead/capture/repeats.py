"""Keep an answer only when it is another one than before, and how often the one before was given.

What is told inside of a tool does not count outside of it: a replay does not run its body, and tells it all again.
"""

from __future__ import annotations

from typing import Any

_TOOL = "tool"


def again(pack: Any, known: tuple[Any, ...], told: Any) -> bool:
    """Say whether somebody is told what he was told the last time, and count that: a replay tells it as often."""
    seen = pack.tap.seen
    before = seen.get((*known, seen.get((_TOOL, pack.lane))))
    if before is None or before[0] != told:
        return False
    before[1] += 1
    return True


def after(pack: Any, known: tuple[Any, ...], told: Any) -> dict[str, int]:
    """Remember what somebody is told from now on; return how often he was told the one before, if more than once."""
    seen = pack.tap.seen
    place = (*known, seen.get((_TOOL, pack.lane)))
    before = seen.get(place)
    seen[place] = [told, 1]
    return {"after": before[1]} if before is not None and before[1] > 1 else {}


def inside(lane: Any, tool: str | None) -> str | None:
    """Say in which tool a lane is from now on, and return in which it was; None for none."""
    if lane is None or lane.tap is None:
        return None
    seen, place = lane.tap.seen, (_TOOL, lane.path)
    before: str | None = seen.pop(place, None)
    if tool is not None:
        seen[place] = tool
    return before
