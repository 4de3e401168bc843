"""Use what of reading OTLP was compiled; everything works without it, slower.

`PLAYHEAD_PURE=1` leaves it out, at build time and at run time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

read_spans: Callable[[bytes, int, int], list[Any] | None] | None = None

if os.environ.get("PLAYHEAD_PURE") != "1":
    try:
        from playhead.ingest.otlp import _read  # type: ignore[attr-defined]
    except ImportError:
        pass  # no compiler where this was installed
    else:
        read_spans = _read.read_spans
