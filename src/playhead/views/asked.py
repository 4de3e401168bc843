"""Follow which tools models asked for, and know of which no execution and no result was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from playhead.views.answers import Call


@dataclass(slots=True)
class _Asked:
    """What one answer asked for and nobody ran, and what was run on its behalf before it was there."""

    seq: int = 0
    left: list[Call] = field(default_factory=list)
    early: list[Call] = field(default_factory=list)


class AskedTools:
    """Take the answers of models and the tools that were run, in any order: a tool may run before its answer ends."""

    def __init__(self) -> None:
        self._by_span: dict[str, _Asked] = {}  # of the model call; only where something is left

    def answered(self, span: str, seq: int, calls: Iterable[Call]) -> None:
        """Take an answer, and the tools that it asks for."""
        asked = self._by_span.setdefault(span, _Asked())
        asked.seq = seq
        asked.left.extend(calls)
        asked.early = [call for call in asked.early if not _take(asked.left, call)]
        self._settle(span, asked)

    def called(self, asked_by: str, call: Call) -> None:
        """Take a tool that a model had asked for and that was run, as was seen or inferred."""
        asked = self._by_span.setdefault(asked_by, _Asked())
        if not _take(asked.left, call):
            asked.early.append(call)
        self._settle(asked_by, asked)

    def listed(self) -> list[dict[str, str | int]]:
        """List the tools of which nothing was seen, each with the event that asks for it."""
        return [
            {"seq": asked.seq, "name": call.name, "arguments": call.arguments}
            for asked in self._by_span.values()
            for call in asked.left
        ]

    def _settle(self, span: str, asked: _Asked) -> None:
        if not asked.left and not asked.early:
            del self._by_span[span]


def _take(calls: list[Call], wanted: Call) -> bool:
    """Take out the call of the same id, else the first one of the same name."""
    same = [call for call in calls if call.name == wanted.name]
    if not same:
        return False
    calls.remove(next((call for call in same if call.id == wanted.id), same[0]))
    return True
