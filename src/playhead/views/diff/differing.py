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


def left_parent(node: Node, known: dict[int, Node | None]) -> Node | None:
    """Return the node of the other run that what is only in one would be in; those on the way are `known` then."""
    way: list[Node] = []
    parent = node.parent
    while parent is not None and parent.mate is None and id(parent) not in known:
        way.append(parent)
        parent = parent.parent
    found = None if parent is None else parent.mate or known[id(parent)]
    known.update((id(one), found) for one in way)
    return found
