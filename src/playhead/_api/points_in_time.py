"""Read points in time as people give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playhead._clock import Clock, SystemClock
from playhead.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)")
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def coming_us(given: str, clock: Clock | None = None) -> int:
    """Read a moment that is to come, in microseconds since 1970: in `12h` or `90d`, or ISO 8601 as for the past."""
    length = _AGO.fullmatch(given.strip())
    if length is None:
        return moment_us(given, clock)
    return _checked((clock or SystemClock()).wall_us() + _us(length), given)


def moment_us(given: str | datetime, clock: Clock | None = None) -> int:
    """Read a point in time, in microseconds since 1970: `2h` or `3d` ago, or ISO 8601 (local without a zone)."""
    ago = _AGO.fullmatch(given.strip()) if isinstance(given, str) else None
    if ago:
        return _checked((clock or SystemClock()).wall_us() - _us(ago), str(given))
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(given.strip()) if isinstance(given, str) else given
        return _checked(int(moment.timestamp() * 1_000_000), str(given))
    except (AttributeError, ValueError, OverflowError, OSError):
        raise _unknown(given) from None


def _us(length: re.Match[str]) -> int:
    return int(min(float(length.group(1)) * _SECONDS[length.group(2)], 1e12) * 1_000_000)


def _checked(moment: int, given: str) -> int:
    """Refuse a moment that has no date."""
    if not _FIRST_US <= moment <= _LAST_US:
        raise _unknown(given)
    return moment


def _unknown(given: object) -> UsageError:
    return UsageError(
        f"not a point in time: {str(given)[:80]!r}", hint="Write 30m, 2h, 3d, 2026-01-31, or 2026-01-31T09:30."
    )
