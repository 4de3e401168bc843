"""Use the compiled inner loops where they were built; everything works without them, slower.

`PLAYHEAD_PURE=1` leaves them out, at build time and at run time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

Surveyed = tuple[list[str], list[Any], list[Any], list[float], list[Any]]

contains: Callable[[bytes, bytes, bytes], bool] | None = None
find_runs: Callable[[bytes, tuple[bytes, ...], bytes, int], list[tuple[int, int]]] | None = None
survey: Callable[[dict[Any, Any], set[str], int, int, int, int], Surveyed | None] | None = None

if os.environ.get("PLAYHEAD_PURE") != "1":
    try:
        from playhead.event import _speed  # type: ignore[attr-defined]
    except ImportError:
        pass  # no compiler where this was installed
    else:
        compiled: Any = _speed
        contains, find_runs, survey = compiled.contains, compiled.find_runs, compiled.survey
