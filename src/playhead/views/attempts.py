"""Tell which steps are attempts at the same: one like a step that failed, beside it and asked for the same."""

from __future__ import annotations

from typing import Any

from playhead import _limits
from playhead.event.envelope import Event
from playhead.views import text
from playhead.views.points import mapping, words
from playhead.views.text import Resolve


class Attempts:
    """Take where steps begin and end."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve = resolve
        self._open: dict[int, Event] = {}
        self._failed: dict[tuple[str | None, str, str], int] = {}  # that may be attempted again

    def number(self, event: Event) -> int:
        """Say which attempt a step is that begins here."""
        return 1 + self._failed.get(self._key(event), 0) if self._failed else 1

    def opened(self, event: Event) -> None:
        """Take over that a step began."""
        self._open[event.seq] = event

    def closed(self, seq: int, status: str) -> None:
        """Take over how a step ended; anything else that ends is none."""
        step = self._open.pop(seq, None)
        if step is None or (status == "ok" and not self._failed):
            return
        key = self._key(step)
        failed = self._failed.pop(key, 0)
        if status != "ok":
            self._failed[key] = failed + 1

    def _key(self, event: Event) -> tuple[str | None, str, str]:
        """Say when two steps are attempts at the same: recorded attempts also count the turns of a loop."""
        data = mapping(event.data)
        asked: dict[str, Any] = {name: data.get(name) for name in ("attributes", "input")}
        told = text.arguments(asked, _limits.SHOW_VALUE_CHARACTERS_MAX, self._resolve)
        return event.parent, words(data.get("name")), told
