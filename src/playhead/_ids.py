"""Make run ids: `run_` and 26 characters that sort by time."""

from __future__ import annotations

import os
from collections.abc import Callable

from playhead._clock import Clock, SystemClock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u
RUN_PREFIX = "run_"
RUN_ID_LENGTH = len(RUN_PREFIX) + 26

RandomBytes = Callable[[int], bytes]


def new_run_id(clock: Clock | None = None, random_bytes: RandomBytes = os.urandom) -> str:
    """Return a new id: 48 bits of milliseconds, then 80 random bits, as in ULID."""
    millis = (clock or SystemClock()).wall_us() // 1000
    number = (millis << 80) | int.from_bytes(random_bytes(10), "big")
    return RUN_PREFIX + "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def is_run_id(text: str) -> bool:
    """Say whether text has the exact form of a run id."""
    return (
        len(text) == RUN_ID_LENGTH
        and text.startswith(RUN_PREFIX)
        and all(letter in _ALPHABET for letter in text[len(RUN_PREFIX) :])
    )
