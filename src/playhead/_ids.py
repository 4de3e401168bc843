"""Make ids: a prefix and 26 characters that sort by time; those of runs begin with `run_`."""

from __future__ import annotations

import os
from collections.abc import Callable

from playhead._clock import Clock, SystemClock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u
RUN_PREFIX = "run_"
CASSETTE_PREFIX = "cas_"
JOB_PREFIX = "job_"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_CHARACTERS = 26  # an even number, as all of these
RUN_ID_LENGTH = len(RUN_PREFIX) + _CHARACTERS
KEY_ID_LENGTH = 16

RandomBytes = Callable[[int], bytes]


def new_run_id(clock: Clock | None = None, random_bytes: RandomBytes = os.urandom) -> str:
    """Return a new id: 48 bits of milliseconds, then 80 random bits, as in ULID."""
    return _new_id(RUN_PREFIX, clock, random_bytes)


def new_cassette_id(clock: Clock | None = None, random_bytes: RandomBytes = os.urandom) -> str:
    """Return a new id of a cassette that the server keeps."""
    return _new_id(CASSETTE_PREFIX, clock, random_bytes)


def new_job_id(clock: Clock | None = None, random_bytes: RandomBytes = os.urandom) -> str:
    """Return a new id of a job."""
    return _new_id(JOB_PREFIX, clock, random_bytes)


def new_key_id(random_bytes: RandomBytes = os.urandom) -> str:
    """Return a new id of an API key: 80 random bits, which say nothing of when it was made."""
    return _letters(int.from_bytes(random_bytes(10), "big"), KEY_ID_LENGTH)


def is_run_id(text: str) -> bool:
    """Say whether text has the exact form of a run id."""
    return _is_id(text, RUN_PREFIX)


def is_key_id(text: str) -> bool:
    """Say whether text has the exact form of the id of an API key."""
    return len(text) == KEY_ID_LENGTH and all(letter in _ALPHABET for letter in text)


def is_cassette_id(text: str) -> bool:
    """Say whether text has the exact form of the id of a cassette."""
    return _is_id(text, CASSETTE_PREFIX)


def is_job_id(text: str) -> bool:
    """Say whether text has the exact form of the id of a job."""
    return _is_id(text, JOB_PREFIX)


def time_ms(id: str) -> int:
    """Return when an id that sorts by time was made, in milliseconds since the epoch."""
    number = 0
    for letter in id[-_CHARACTERS:]:
        number = number << 5 | _ALPHABET.index(letter)
    return number >> 80


def _new_id(prefix: str, clock: Clock | None, random_bytes: RandomBytes) -> str:
    millis = (clock or SystemClock()).wall_us() // 1000
    return prefix + _letters((millis << 80) | int.from_bytes(random_bytes(10), "big"), _CHARACTERS)


def _letters(number: int, count: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(5 * (count - 2), -1, -10)])


def _is_id(text: str, prefix: str) -> bool:
    return (
        len(text) == len(prefix) + _CHARACTERS
        and text.startswith(prefix)
        and all(letter in _ALPHABET for letter in text[len(prefix) :])
    )
