"""Tell the time. Injected wherever time is needed, so that timelines in tests are byte-stable."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, Protocol


class Clock(Protocol):
    """Give wall time for people and monotonic time for durations."""

    def wall_us(self) -> int:
        """Return microseconds since the epoch."""
        ...

    def monotonic_us(self) -> int:
        """Return microseconds of a clock that never goes back."""
        ...


class SystemClock:
    """Read the clocks of the operating system."""

    # Bound once: a later patch of the time module for the agent must not change the recorder's own clock.
    _time_ns = staticmethod(time.time_ns)
    _monotonic_ns = staticmethod(time.monotonic_ns)

    def wall_us(self) -> int:
        return self._time_ns() // 1000

    def monotonic_us(self) -> int:
        return self._monotonic_ns() // 1000


class FakeClock:
    """Advance by a fixed step at each look."""

    def __init__(self, start_us: int = 1_700_000_000_000_000, step_us: int = 1000) -> None:
        self.now_us = start_us
        self.step_us = step_us

    def wall_us(self) -> int:
        self.now_us += self.step_us
        return self.now_us

    def monotonic_us(self) -> int:
        return self.now_us


def utc_text(wall_us: int) -> str:
    """Return UTC text with six digits, as it stands in a line."""
    second, micro = divmod(wall_us, 1_000_000)
    return f"{_second_text(second)}.{micro:06d}Z"


@lru_cache(maxsize=256)  # events come by the thousand in a second, and spans of the same seconds together
def _second_text(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def parse_utc(text: str) -> int:
    """Return microseconds since the epoch for a line's time."""
    # What `datetime` is made of: a program may have a module of that name.
    from _datetime import UTC, datetime  # type: ignore[import-not-found]

    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    whole = int(moment.timestamp() // 1)
    micro: int = whole * 1_000_000 + moment.microsecond
    return micro


def moment_us(text: Any) -> int | None:
    """Return microseconds since the epoch for a moment in ISO 8601, in UTC where it names no zone; else None."""
    from _datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since: int = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return since
