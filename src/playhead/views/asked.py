"""Follow which tools models asked for, and know of which no execution and no result was recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class AskedTools:
    """Take the answers of models and the tools that were run, in any order: a tool may run before its answer ends."""

    def __init__(self) -> None:
        self._left: dict[str, Counter[str]] = {}  # by span of the model call; below zero: run, not asked for yet
        self._seqs: dict[str, int] = {}

    def answered(self, span: str, seq: int, names: Iterable[str]) -> None:
        """Take an answer, and the names of the tools that it asks for."""
        self._seqs[span] = seq
        self._change(span, names, 1)

    def called(self, asked_by: str, name: str) -> None:
        """Take a tool that a model had asked for and that was run, as was seen or inferred."""
        self._change(asked_by, (name,), -1)

    def listed(self) -> list[dict[str, str | int]]:
        """List the tools of which nothing was seen, each with the event that asks for it."""
        return [
            {"seq": self._seqs[span], "name": name}
            for span, left in self._left.items()
            for name, count in left.items()
            for _ in range(count)
        ]

    def _change(self, span: str, names: Iterable[str], by: int) -> None:
        left = self._left.setdefault(span, Counter())
        for name in names:
            left[name] += by
            if left[name] == 0:
                del left[name]
        if not left:
            del self._left[span]
            self._seqs.pop(span, None)
