"""Read points in time as people give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playhead._clock import Clock, SystemClock
from playhead.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def moment_us(given: str | datetime, clock: Clock | None = None) -> int:
    """Read a point in time, in microseconds since 1970: `2h` or `3d` ago, or ISO 8601 (local without a zone)."""
    ago = _AGO.fullmatch(given.strip()) if isinstance(given, str) else None
    if ago:
        seconds = float(ago.group(1)) * _SECONDS[ago.group(2)]
        return (clock or SystemClock()).wall_us() - int(seconds * 1_000_000)
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(given.strip()) if isinstance(given, str) else given
        return int(moment.timestamp() * 1_000_000)
    except (AttributeError, ValueError, OverflowError, OSError):
        raise UsageError(
            f"not a point in time: {given!r}", hint="Write 30m, 2h, 3d, 2026-01-31, or 2026-01-31T09:30."
        ) from None
