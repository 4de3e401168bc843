"""Tell what a traceback says from the way that an error took: below the agent, a replay has other functions."""

from __future__ import annotations

import re

_HEADING = b"Traceback (most recent call last):\n"
# The heading of a traceback on a line of its own, also inside of a group, and the frames that follow it directly. Below
# that of a frame are at most eight lines of source, each with one of marks; `...<4 lines>...` is for those between.
_FRAMES = re.compile(
    rb"^[ |+-]*(?:Exception Group )?Traceback \(most recent call last\):\n"
    rb"(?=(?P<in>[ |]*)  File \")"
    rb"(?:(?P=in)  File \"[^\n]*\", line [0-9]+, in [^\n]*\n"
    rb"(?:(?:(?P=in)    \.\.\.<[0-9]+ lines>\.\.\.\n)?(?P=in)    [^\n]*\n(?:(?P=in)    [ ~^]*\n)?){0,8}"
    rb"|(?P=in)  \[Previous line repeated [0-9]+ more times?\]\n)+",
    re.MULTILINE,
)


def without_frames(text: bytes) -> bytes:
    """Leave out of tracebacks through which functions an error went."""
    return text if _HEADING not in text else _FRAMES.sub(b"", text)
