"""Look into spans that were put around what stood there by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from playhead import _limits
from playhead.views.diff.likeness import inside, whole
from playhead.views.diff.nodes import Node

_AROUND_MIN = 0.5  # of what is in a span that was put around others

Siblings = list[Node]


def opened(lefts: Siblings, rights: Siblings) -> tuple[Siblings, Siblings]:
    """Return siblings with what is in a span in its place, where most of it stands on the other side as it is.

    Not where something that asks the same as the span is left for it on the other side.
    """
    if not any(node.children for nodes in (lefts, rights) for node in nodes):
        return lefts, rights
    wholes = [Counter(map(whole, nodes)) for nodes in (lefts, rights)]
    here, there = wholes[0] - wholes[1], wholes[1] - wholes[0]
    left = _opened_by_whole(lefts, rights, here, there)
    return left, _opened_by_whole(rights, lefts, there, here)


def _opened_by_whole(nodes: Siblings, others: Siblings, here: Counter[int], there: Counter[int]) -> Siblings:
    """Look into spans of one side; `here` and `there` count what is only on this side, and only on the other one."""
    if not here or not there:
        return nodes
    ours, theirs = (
        Counter(node.question for node in side if only[whole(node)] > 0)
        for side, only in ((nodes, here), (others, there))
    )

    def is_around(node: Node) -> bool:
        if not node.children or here[whole(node)] <= 0:
            return False
        contents = Counter(map(whole, node.children))
        among = contents & there
        if among.total() <= _AROUND_MIN * len(node.children):
            return False
        claimed = Counter(child.question for child in node.children if whole(child) in among)
        if ours[node.question] <= theirs[node.question] - claimed[node.question]:
            return False
        there.subtract(among)
        theirs.subtract(claimed)
        here.update(contents - among)
        ours.update(child.question for child in node.children if whole(child) not in among)
        ours[node.question] -= 1
        return True

    return _opened(nodes, is_around)


def is_wrapped(node: Node, mate: Node) -> bool:
    """Say whether something is where it was, but for spans around it that only its own run has."""
    if node.parent is None or mate.parent is None or mate.parent.mate is not None:
        return False
    at: Node | None = mate.parent
    for _ in range(_limits.DIFFERENCE_WRAPPERS_MAX):
        if at is None or at.mate is not None:
            break
        at = at.parent
    return at is not None and at.mate is node.parent


def opened_by_question(lefts: Siblings, rights: Siblings) -> tuple[Siblings, Siblings] | None:
    """Return siblings with what is in a span in its place, where a good part of it is asked beside it in the other run.

    None where there is no such span. What is all there under another name is none.
    """
    if not any(node.children and node.mate is None for side in (lefts, rights) for node in side):
        return None
    left = _opened_by_question(lefts, rights)
    right = _opened_by_question(rights, left)
    return None if (left, right) == (lefts, rights) else (left, right)


def _opened_by_question(nodes: Siblings, others: Siblings) -> list[Node]:
    here, there = (Counter(node.question for node in side if node.mate is None) for side in (nodes, others))
    renamed = {inside(node) for node in others if node.mate is None and node.children}

    def is_around(node: Node) -> bool:
        if node.mate is not None or not node.children or here[node.question] <= there[node.question]:
            return False
        among = sum(there[child.question] > 0 for child in node.children)
        if not among or among < _AROUND_MIN * len(node.children) or inside(node) in renamed:
            return False
        here.update(child.question for child in node.children)
        here[node.question] -= 1
        return True

    return _opened(nodes, is_around)


def _opened(nodes: Siblings, is_around: Callable[[Node], bool]) -> list[Node]:
    found, waiting = [], list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if is_around(node):
            waiting += reversed(node.children)  # which may have others in them
        else:
            found.append(node)
    return found
