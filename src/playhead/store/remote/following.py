"""Follow a run of a server: be told of each line as it is sealed, and go on where the connection is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator

from playhead import _limits
from playhead.errors import ServerError
from playhead.store.remote.address import part
from playhead.store.remote.connection import Connection, was_lost
from playhead.store.remote.refusals import not_a_server

_SSE = "text/event-stream"


def lines_as_they_come(connection: Connection, run: str, start: int = 0) -> Iterator[bytes]:
    """Yield the lines of a run from one on, without their newlines, until it ends."""
    following, lost = start, 0
    while True:
        try:
            with connection.stream(f"/api/runs/{part(run)}/follow", {"start": following}, accept=_SSE) as pieces:
                for name, data in _events(pieces):
                    if name == "line":
                        yield data
                        following, lost = following + 1, 0
                    elif name == "end":
                        return
            lost += 1  # the server stops, and says so by ending
        except ServerError as problem:
            lost += 1
            if not was_lost(problem) or lost >= _limits.REMOTE_TRIES_MAX:
                raise
        if lost >= _limits.REMOTE_TRIES_MAX:
            raise ServerError(f"{connection.address} does not tell any more how {run} goes on")
        time.sleep(_limits.REMOTE_PAUSE_S * lost)


def _events(pieces: Iterator[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield name and data of each event that came whole."""
    name, data, rest, begun = "", b"", b"", False
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            field, _, value = line.partition(b": ")
            if not begun and field not in (b"", b"event", b"data", b"retry", b"id"):
                raise not_a_server("this address", "it tells no news")
            begun = True
            if field == b"event":
                name = value.decode("ascii", "replace")
            elif field == b"data":
                data = value
            elif not line and name:
                yield name, data
                name, data = "", b""
