"""Whatever a run is made of: of one edit, a diff tells that edit, both ways round, and what follows from it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.views.diff.stories import Part, diffed, model, note, policy, run, step, told, tool

Edit = tuple[list[Any], tuple[str, str | None]]
_MIRRORED = {"added": "removed", "removed": "added"}


class Making:
    """Make runs by chance: every question is asked once, so that there is one right answer."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._number = 0

    def call(self) -> Part:
        self._number += 1
        asked = {"number": self._number}
        kinds: list[Callable[[], Part]] = [
            lambda: tool(self.chance.choice(("search", "read")), asked, self._number),
            lambda: model(asked, f"answer {self._number}"),
            lambda: note(f"note {self._number}"),
            lambda: policy(f"file {self._number}"),
        ]
        return self.chance.choice(kinds)()

    def body(self, depth: int = 3) -> list[Any]:
        parts: list[Any] = []
        for _ in range(self.chance.randint(2, 7)):
            if depth and self.chance.random() < 0.4:
                parts.append(self.span(depth - 1))
            else:
                parts.append(self.call())
        return parts

    def span(self, depth: int) -> Part:
        self._number += 1
        return step(self.chance.choice(("plan", "act")), *self.body(depth), number=self._number)

    def edited(self, body: list[Any], edit: str) -> Edit | None:
        """Return a body after one edit somewhere in it, and what a diff is to tell first; None where there is no room."""
        spans = [at for at, part in enumerate(body) if part.inside]
        if spans and self.chance.random() < 0.6:
            at = self.chance.choice(spans)
            found = self.edited(list(body[at].inside), edit)
            if found is None:
                return None
            inner, expected = found
            return [*body[:at], replace(body[at], inside=tuple(inner)), *body[at + 1 :]], expected
        at = self.chance.randrange(len(body))
        part: Part = body[at]
        if edit == "insert":
            new = self.chance.choice((self.call, lambda: self.span(1)))()
            return [*body[:at], new, *body[at:]], ("added", None)
        if edit == "remove":
            return [*body[:at], *body[at + 1 :]], ("removed", None)
        if edit == "move":
            rest = [*body[:at], *body[at + 1 :]]
            to = self.chance.choice([place for place in range(len(rest) + 1) if place != at])
            return [*rest[:to], part, *rest[to:]], ("moved", None)
        if edit == "wrap":
            return [*body[:at], step("around", part), *body[at + 1 :]], ("added", None)
        if part.inside or part.closing is None:
            return None
        if edit == "fail":
            closing = {"status": "error", "error": {"type": "E", "message": "m"}}
            return [*body[:at], replace(part, closing=closing), *body[at + 1 :]], ("changed", "status_changed")
        other = {name: "other" if name in ("output", "response") else value for name, value in part.closing.items()}
        return [*body[:at], replace(part, closing=other), *body[at + 1 :]], ("changed", "output_changed")


@pytest.mark.parametrize("edit", ["insert", "remove", "move", "wrap", "fail", "answer"])
def test_one_edit_is_what_a_diff_tells(edit: str) -> None:
    tried = 0
    for seed in range(150):
        making = Making(seed)
        body = making.body()
        found = making.edited(body, edit)
        if found is None:
            continue
        tried += 1
        other, expected = found
        left, right = run(*body), run(*other, run="run_b")
        origins = [(type, cause) for type, cause, _ in told(diffed(left, right)) if cause != "follows"]
        assert origins == [expected], (seed, edit)
        mirrored = [(type, cause) for type, cause, _ in told(diffed(right, left)) if cause != "follows"]
        assert mirrored == [(_MIRRORED.get(expected[0], expected[0]), expected[1])], (seed, edit)
        if edit in ("insert", "remove", "move"):
            changed = [type for type, _, _ in told(diffed(left, right)) if type in ("changed", "moved")]
            assert changed == (["moved"] if edit == "move" else []), (seed, edit)
    assert tried > 20
