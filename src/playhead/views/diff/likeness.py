"""Say how much two spans are alike by what is in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from playhead import _limits
from playhead.views.diff.nodes import Node

Pair = tuple[Node, Node]


def whole(node: Node) -> int:
    """Return a number for a node and all that is in it, in whatever order: the same for the same, in this process.

    Others may have it by chance: what is paired by it is compared all the same.
    """
    if node.whole is not None:
        return node.whole
    waiting = [node]
    while waiting:
        one = waiting[-1]
        missing = [child for child in one.children if child.whole is None and child.children]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        for child in one.children:
            if child.whole is None:
                child.whole = hash((child.question, child.status, child.answer, ()))
        one.whole = hash((one.question, one.status, one.answer, _contents(one)))
    assert node.whole is not None
    return node.whole


def inside(node: Node) -> Hashable:
    """Return what a node was answered, and all that is in it."""
    whole(node)
    return node.status, node.answer, _contents(node)


def _contents(node: Node) -> Hashable:
    return tuple(sorted([child.whole or 0 for child in node.children])) if node.children else ()


def says_much(node: Node) -> bool:
    """Say whether what a node was answered, and what is in it, is enough to know it by."""
    return bool(node.children) or (node.end_seq is not None and len(node.answer) > len(b'{"status":"ok"}'))


def asks_much(nameless: bytes | None) -> bool:
    """Say whether a question without its name is enough to know it by."""
    return nameless is not None and len(nameless) > len(b'{"input":null}')


def _question(node: Node) -> Hashable:
    found: Hashable = node.question
    return found


def alike(lefts: Sequence[Node], rights: Sequence[Node], asks: Callable[[Node], Hashable] = _question) -> list[Pair]:
    """Pair spans that ask the same and have something in them, in order: those that have most in common.

    None where there are too many to look at each with each.
    """
    ones, others = ([node for node in side if node.children] for side in (lefts, rights))
    both = ({asks(node) for node in ones} & {asks(node) for node in others}) - {None}
    ones, others = ([node for node in side if asks(node) in both] for side in (ones, others))
    if not ones or not others or len(ones) * len(others) > _limits.DIFFERENCE_ALIKE_MAX:
        return []
    if len(ones) == 1 == len(others):
        return [(ones[0], others[0])]
    bags = [[_bag(node) for node in side] for side in (ones, others)]
    best = [[0] * (len(others) + 1) for _ in range(len(ones) + 1)]
    common = [
        [
            2 + 4 * sum((bag & bags[1][at]).values()) + (one.status == other.status) if asks(one) == asks(other) else 0
            for at, other in enumerate(others)
        ]
        for one, bag in zip(ones, bags[0], strict=True)
    ]
    for x in range(len(ones) - 1, -1, -1):
        for y in range(len(others) - 1, -1, -1):
            best[x][y] = max(best[x + 1][y], best[x][y + 1], common[x][y] and common[x][y] + best[x + 1][y + 1])
    found: list[Pair] = []
    x = y = 0
    while x < len(ones) and y < len(others):
        if common[x][y] and best[x][y] == common[x][y] + best[x + 1][y + 1]:
            found.append((ones[x], others[y]))
            x, y = x + 1, y + 1
        elif best[x][y] == best[x + 1][y]:
            x += 1
        else:
            y += 1
    return found


def share(left: Node, right: Node) -> bool:
    """Say whether two spans have at least half of what is right in them in common, by what it asks; or at any depth."""
    asked = [Counter(child.question for child in node.children) for node in (left, right)]
    return _half(*asked) or _half(*(Counter(one.question for one in _beginning(node)) for node in (left, right)))


def _half(one: Counter[Hashable], other: Counter[Hashable]) -> bool:
    return 2 * (one & other).total() >= max(one.total(), other.total()) > 0


def _bag(node: Node) -> Counter[Hashable]:
    """Return what was asked in a span, at any depth; of a large one its beginning."""
    found: Counter[Hashable] = Counter()
    for one in _beginning(node):
        found[one.question] += 1
        found[one.kind, one.name, one.answer] += 1
    return found


def _beginning(node: Node) -> Iterator[Node]:
    waiting, seen = list(reversed(node.children)), 0
    while waiting and seen < _limits.DIFFERENCE_ALIKE_NODES_MAX:
        one = waiting.pop()
        seen += 1
        yield one
        waiting += reversed(one.children)
