"""Find keys in data that is no text: in a database or a pickle, one value follows the other with nothing in between."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from playhead.capture.redact_rules import TOKENS, Rule

MARK = "\ufdd0".encode()  # stands for no character, so hardly ever in any data


def separated(data: bytes, rules: Sequence[Rule]) -> bytes:
    """Return binary data with a mark wherever a key may begin, so that it does; the same object if there is none."""
    if b"\0" not in data or MARK in data:
        return data
    beginnings = _beginnings(tuple(needle for rule in rules if rule in TOKENS for needle in rule.needles))
    return beginnings.sub(MARK + rb"\g<0>", data) if beginnings.search(data) else data


def joined(data: bytes) -> bytes:
    """Take the marks out again."""
    return data.replace(MARK, b"")


@functools.cache
def _beginnings(needles: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(needle.encode()) for needle in needles) or b"(?!)")
