"""Hold one node that differs."""

from __future__ import annotations

from dataclasses import dataclass

from playhead.views.diff.nodes import Node


@dataclass(slots=True)
class Difference:
    """One node that differs, before anybody looks at its fields."""

    type: str  # added, removed, changed, moved
    left: Node | None
    right: Node | None
    cause: str | None  # None: nothing before it explains that it came, went or moved
    by_answer: bool = False  # it was asked the same
    point: bool = False
    at: float = 0

    @property
    def leads(self) -> bool:
        """Say whether it explains what is in it: another answer does not, and another name explains nothing."""
        return self.node.moved != "name" and not (self.by_answer and self.type == "changed")

    @property
    def node(self) -> Node:
        """Return the node on the left, or the only one."""
        found = self.left or self.right
        assert found is not None
        return found
