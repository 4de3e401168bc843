"""Take OTLP over HTTP and keep it, and do nothing else: what any server written in Python has to do at least.

It parses the protobuf, hashes the bytes, writes the same bytes to SQLite and answers after COMMIT. No index, no text
search, no key, no limit, no page. It runs in an environment of its own, so it imports nothing of this project.

    python bench/peers/floor.py PORT FOLDER
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

Message = dict[str, Any]
_PRAGMAS = ("page_size = 16384", "journal_mode = WAL", "synchronous = NORMAL")


class Floor:
    """An ASGI application."""

    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(folder / "floor.db", isolation_level=None)
        for pragma in _PRAGMAS:
            self._database.execute(f"PRAGMA {pragma}")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY, hash BLOB, spans INTEGER, body BLOB)"
        )

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        answer = b""
        if scope["path"] == "/v1/traces":
            self._keep(await _body(receive))
        elif scope["path"] == "/count":
            (spans,) = self._database.execute("SELECT coalesce(sum(spans), 0) FROM requests").fetchone()
            answer = str(spans).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    def _keep(self, body: bytes) -> None:
        parsed = ExportTraceServiceRequest.FromString(body)
        spans = sum(len(scope.spans) for resource in parsed.resource_spans for scope in resource.scope_spans)
        row = (hashlib.sha256(body).digest(), spans, body)
        # Each statement is a transaction of its own: when this returns, it is committed.
        self._database.execute("INSERT INTO requests (hash, spans, body) VALUES (?, ?, ?)", row)


async def _body(receive: Callable[[], Awaitable[Message]]) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


if __name__ == "__main__":
    uvicorn.run(
        Floor(Path(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[1]), http="httptools", access_log=False,
        lifespan="off", log_level="warning",
    )  # fmt: skip
