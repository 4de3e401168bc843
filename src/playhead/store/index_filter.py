"""Choose runs by what the index knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True)
class RunFilter:
    """Which runs are meant; as it is made, all of them."""

    before: str | None = None  # older than this run: the last one of the page before
    name: str | None = None
    status: str | None = None
    since_us: int | None = None  # started then or later
    until_us: int | None = None  # started before
    agent: str | None = None
    commit: str | None = None  # or the beginning of one: that it was started from, or that belongs to it
    tag: str | None = None  # `key=value`, or `key` for any value
    has_error: bool | None = None
    include_replays: bool = True
    text: str | None = None  # a part of the name
    ids: Sequence[str] | None = None  # only among these

    def where(self, runs: str = "runs") -> tuple[str, list[Any]]:
        """Return the condition in SQL, and its values; `runs` is the name of the table in the question."""
        wanted: list[tuple[str, tuple[Any, ...]]] = []
        if self.before is not None:
            wanted.append((f"{runs}.id < ?", (self.before,)))
        for column in ("name", "status", "agent"):
            if (value := getattr(self, column)) is not None:
                wanted.append((f"{runs}.{column} = ?", (value,)))
        if self.since_us is not None:
            wanted.append((f"{runs}.started_us >= ?", (self.since_us,)))
        if self.until_us is not None:
            wanted.append((f"{runs}.started_us < ?", (self.until_us,)))
        if self.commit is not None:
            made = f"{runs}.id IN (SELECT c.run FROM commits AS c WHERE substr(c.sha, 1, ?) = ?)"
            begins = (len(self.commit), self.commit)
            wanted.append((f"(substr({runs}.git_commit, 1, ?) = ? OR {made})", begins * 2))
        if self.tag is not None:
            key, equals, value = self.tag.partition("=")
            held = f"EXISTS (SELECT 1 FROM json_each({runs}.tags) AS t WHERE t.key = ? AND (? OR t.value = ?))"
            wanted.append((held, (key, int(not equals), value)))
        if self.has_error is not None:
            failed = f"({runs}.error IS NOT NULL OR {runs}.status IN ('error', 'crashed')) = ?"
            wanted.append((failed, (int(self.has_error),)))
        if not self.include_replays:
            wanted.append((f"{runs}.origin IS NULL", ()))
        if self.text is not None:
            wanted.append((f"instr(lower({runs}.name), lower(?)) > 0", (self.text,)))
        if self.ids is not None:
            among = f"{runs}.id IN (SELECT value FROM json_each(?))"
            wanted.append((among, (orjson.dumps(list(self.ids)).decode(),)))
        return " AND ".join(sql for sql, _ in wanted), [value for _, given in wanted for value in given]
