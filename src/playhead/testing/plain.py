"""Answer ordinary traffic, which is no model's: JSON, forms and bytes, given back as they came.

The query says how: `size=1000` asks for so many bytes, `status=503` for this status, and the fields of `Wire` for the
way it is sent (`encoding=gzip`, `cut=mid-body`, `delay_s=0.1`, …).
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from playhead.testing.script import Raw
from playhead.testing.turn import Asked, compact, pretty
from playhead.testing.wire import Wire

PREFIX = "/plain/"
_TRUE = ("1", "true")


def answer(method: str, asked: Asked, content_type: str) -> Raw:
    """Return what was sent: JSON and forms as a JSON object that says so, other bytes as they are."""
    wire = _wire(asked.query)
    status = int(asked.query.get("status", 200))
    if "size" in asked.query:
        size = int(asked.query["size"])
        return Raw((bytes(range(256)) * (size // 256 + 1))[:size], status, "application/octet-stream", wire)
    kind = content_type.partition(";")[0].strip().lower()
    said: dict[str, Any] = {"method": method, "path": asked.path, "query": asked.query}
    if kind == "application/x-www-form-urlencoded":
        said["form"] = parse_qsl(asked.body.decode(), keep_blank_values=True)
    elif kind == "application/json":
        said["json"] = json.loads(asked.body)
    elif asked.body:
        return Raw(asked.body, status, content_type or "application/octet-stream", wire)
    return Raw(pretty(said) if wire.pretty else compact(said), status, "application/json", wire)


def _wire(query: dict[str, str]) -> Wire:
    """Read the fields of `Wire` from a query; those that are not there have their defaults."""
    given: dict[str, Any] = {}
    for name in ("delay_s", "chunk_delay_s"):
        if name in query:
            given[name] = float(query[name])
    for name in ("pretty", "chunked"):
        if name in query:
            given[name] = query[name].lower() in _TRUE
    if "cut" in query:
        given["cut"] = int(query["cut"]) if query["cut"].isdigit() else query["cut"]
    if "encoding" in query:
        given["encoding"] = query["encoding"]
    if "split" in query:
        sizes = query["split"].split(",")
        given["split"] = "torn" if sizes == ["torn"] else tuple(map(int, sizes)) if len(sizes) > 1 else int(sizes[0])
    return Wire(**given)
