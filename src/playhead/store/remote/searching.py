"""Look for words in what the runs of a server say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from playhead import _limits
from playhead.store.remote.connection import Connection


def runs_with(connection: Connection, words: str) -> list[str]:
    """Return the runs with an event that holds what is looked for, the newest first."""
    return [str(run["id"]) for run in paged(connection, "/api/runs", "runs", {"q": words})]


def paged(
    connection: Connection, path: str, name: str, query: Mapping[str, object], limit: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield what is listed in pages, at most so many."""
    cursor, left = None, limit
    while left is None or left > 0:
        most = _limits.PAGE_MAX if left is None else min(left, _limits.PAGE_MAX)
        told = connection.json(path, {**query, "limit": most, "cursor": cursor})
        yield from told[name]
        left = None if left is None else left - len(told[name])
        cursor = told["next"]
        if cursor is None:
            return
