"""A log that fails on demand, and what was written to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from tests.ledger.timelines import events_of

from playhead.errors import WriteFailed
from playhead.ledger.writer import Ledger
from playhead.store.memory import MemoryLog


class FailingLog(MemoryLog):
    """Fail, or do something else, at chosen moments."""

    def __init__(self) -> None:
        super().__init__()
        self.fail: set[str] = set()
        self.short: int | None = None  # write this much, then fail
        self.during: Callable[[], None] | None = None

    def _check(self, name: str) -> None:
        if name in self.fail:
            raise WriteFailed(f"{name} failed")

    def acquire(self) -> int:
        self._check("acquire")
        return super().acquire()

    def append(self, data: bytes) -> None:
        if self.during is not None:
            action, self.during = self.during, None
            action()
        self._check("append")
        if self.short is not None:
            self.buffer += data[: self.short]
            raise WriteFailed("short")
        super().append(data)

    def truncate(self, size: int) -> None:
        self._check("truncate")
        super().truncate(size)


def note(writer: Ledger, text: str = "x") -> Any:
    return writer.append("note.added", orjson.dumps({"text": text}))


def texts(log: MemoryLog) -> list[str]:
    return [event.data["text"] for event in events_of(log) if event.kind == "note.added"]


def gaps(log: MemoryLog) -> dict[str, int]:
    out: dict[str, int] = {}
    for event in events_of(log):
        if event.kind == "gap.noted":
            out[event.data["reason"]] = out.get(event.data["reason"], 0) + event.data["count"]
    return out
