"""Use the compiled inner loops where they were built; everything works without them, slower.

`PLAYHEAD_PURE=1` leaves them out, at build time and at run time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

Surveyed = tuple[list[Any], list[Any], list[Any], list[float], list[Any]]

Telling = tuple[tuple[bytes, bytes], ...]
Found = list[tuple[int, int, int]] | None
find_runs: Callable[[bytes, tuple[bytes, ...], bytes, int, Telling], Found] | None = None
names_secret: Callable[[bytes, tuple[bytes, ...], bool], bool] | None = None
text_key: Callable[[str], int] | None = None
survey: Callable[[dict[Any, Any], set[str], int, int, int, int], Surveyed | None] | None = None
sizes: Callable[[dict[Any, Any], int, int], dict[int, int]] | None = None
Placed = tuple[list[tuple[str, Any]], list[tuple[list[Any], Any]], list[tuple[dict[str, Any], Any]]]
places: Callable[[dict[str, Any], int, int], Placed] | None = None

if os.environ.get("PLAYHEAD_PURE") != "1":
    try:
        from playhead.event import _speed  # type: ignore[attr-defined]
    except ImportError:
        pass  # no compiler where this was installed
    else:
        compiled: Any = _speed
        find_runs, survey, text_key = compiled.find_runs, compiled.survey, compiled.text_key
        sizes = getattr(compiled, "sizes", None)  # missing where the build is an older one
        names_secret = getattr(compiled, "names_secret", None)
        places = getattr(compiled, "places", None)
