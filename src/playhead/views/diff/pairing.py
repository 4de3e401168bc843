"""Find which parts of two runs belong together.

From the run down, the children of two nodes that belong together are paired: by their questions; then by what was
answered and what is in them, which finds a changed question, another name, and a span that was put around or taken
away; then by name and order among what is left. What is left over at the end may still be the same thing at another
place of the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from playhead.views.alignment import aligned
from playhead.views.diff import content, order
from playhead.views.diff.nodes import Node, Side
from playhead.views.diff.order import Pair

# Returns what a question means, where two that are written otherwise may mean the same; None where there is nothing.
Meaning = Callable[[Node], Any]
_CALLS = frozenset({"model", "tool", "mcp", "http", "process"})
_WRAPPED_MIN = 0.5  # of what is in a span that was put around others


class Pairing:
    """Pair the nodes of two runs, in place: `mate` and `moved` say what came of it."""

    def __init__(
        self, left: Side, right: Side, meanings: tuple[Meaning, Meaning], nameless: tuple[Meaning, Meaning]
    ) -> None:
        """Take two sides, and for each who knows what the question of a node means, with and without its name."""
        self._sides = left, right
        self._meanings, self._nameless = meanings, nameless
        self._waiting: list[Pair] = []

    def pair(self) -> None:
        """Pair everything that belongs together."""
        left, right = (side.root for side in self._sides)
        if left is None or right is None:
            return
        self._join(left, right)
        self._work()
        self._elsewhere()

    def _work(self) -> None:
        while self._waiting:
            left, right = self._waiting.pop()
            if left.kind == "tool" and any(
                side.replay and not node.children for side, node in zip(self._sides, (left, right), strict=True)
            ):
                continue  # a replay does not run what is inside of a tool
            self._children(left, right)

    def _join(self, left: Node, right: Node, why: str = "") -> None:
        left.mate, right.mate = right, left
        left.moved = right.moved = why
        if left.children or right.children or left.effects or right.effects:
            self._waiting.append((left, right))

    def _children(self, left: Node, right: Node) -> None:
        lefts, rights = left.children, right.children
        start = 0
        for one, other in zip(lefts, rights, strict=False):
            if one.question != other.question or one.answer != other.answer or one.lane != other.lane:
                break
            self._join(one, other)
            start += 1
        lefts, rights = lefts[start:], rights[start:]
        if lefts and rights:
            self._by_question(lefts, rights, left.lane)
            lefts, rights = self._unwrapped(lefts, rights)
            self._by_meaning(lefts, rights)
            self._by_content(lefts, rights, left.lane)
            self._in_gaps(lefts, rights, left.lane, lambda node: (node.kind, node.name))
        pairs = [
            (child, child.mate) for child in left.children if child.mate is not None and child.mate.parent is right
        ]
        for one, other in order.moved(pairs, left.lane) if start < len(pairs) else ():
            one.moved = other.moved = one.moved or "order"
        for one, other in order.checked_late(pairs, (left, right)):
            one.moved = other.moved = one.moved or "order"

    def _by_question(self, lefts: Sequence[Node], rights: Sequence[Node], lane: str) -> None:
        """Pair what asked the same. What was asked once on each side is sure, and the others stand between those."""
        asked = Counter(node.question for node in lefts), Counter(node.question for node in rights)
        once = {found for found, times in asked[0].items() if times == 1 == asked[1][found]}
        self._pair_by(lefts, rights, lambda node: node.question if node.question in once else None)
        self._in_gaps(lefts, rights, lane, lambda node: (node.question, node.answer, node.lane))
        self._in_gaps(lefts, rights, lane, lambda node: (node.question, node.answer))
        self._pair_by(lefts, rights, lambda node: node.question)

    def _pair_by(
        self, lefts: Iterable[Node], rights: Iterable[Node], key: Callable[[Node], Hashable], why: str = ""
    ) -> None:
        """Pair what has the same key; of several those that were answered the same, else one after the other."""
        groups: dict[Hashable, tuple[list[Node], list[Node]]] = {}
        for side, nodes in enumerate((lefts, rights)):
            for node in nodes:
                if node.mate is None and (found := key(node)) is not None:
                    groups.setdefault(found, ([], []))[side].append(node)
        for ones, others in groups.values():
            if ones and others:
                for one, other in _matched(ones, others):
                    self._join(one, other, why)

    def _unwrapped(self, lefts: Sequence[Node], rights: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        """Look into spans that were put around what stood here by itself, and pair what is in them."""
        nodes = [list(lefts), list(rights)]
        for side in (0, 1):
            again = True
            while again:
                again = False
                wanted = {node.question for node in nodes[1 - side] if node.mate is None}
                for node in [one for one in nodes[side] if one.mate is None and one.children and one.moved != "wraps"]:
                    inside = [child for child in node.children if child.question in wanted]
                    if wanted and inside and len(inside) >= _WRAPPED_MIN * len(node.children):
                        at = nodes[side].index(node)
                        nodes[side][at + 1 : at + 1] = node.children
                        node.moved, again = "wraps", True
            if any(node.moved == "wraps" for node in nodes[side]):
                self._pair_by(nodes[0], nodes[1], lambda node: None if node.moved == "wraps" else node.question)
        return tuple([node for node in group if node.moved != "wraps"] for group in nodes)  # type: ignore[return-value]

    def _by_meaning(self, lefts: Sequence[Node], rights: Sequence[Node]) -> None:
        """Pair questions that are written otherwise and mean the same."""
        asked = [{(node.kind, node.name) for node in side if node.mate is None} for side in (lefts, rights)]
        both = asked[0] & asked[1]
        if not both:
            return
        means: dict[int, Any] = {}
        for nodes, meaning in zip((lefts, rights), self._meanings, strict=True):
            for node in nodes:
                if node.mate is None and (node.kind, node.name) in both:
                    means[id(node)] = meaning(node)
        for side in (lefts, rights):
            for node in side:
                if means.get(id(node)) is not None:
                    node.question = means[id(node)]
        self._pair_by(lefts, rights, lambda node: means.get(id(node)))

    def _by_content(self, lefts: Sequence[Node], rights: Sequence[Node], lane: str) -> None:
        """Pair what was answered the same and has the same in it, where the question or only the name changed."""
        self._in_gaps(
            lefts, rights, lane, lambda node: (node.kind, node.name, inside(node)) if _says_much(node) else None
        )
        if all(node.mate is not None for node in lefts) or all(node.mate is not None for node in rights):
            return
        rest: dict[int, Any] = {}
        for nodes, nameless in zip((lefts, rights), self._nameless, strict=True):
            for node in nodes:
                if node.mate is None and _says_much(node):
                    rest[id(node)] = nameless(node)

        def renamed(node: Node) -> Hashable:
            found = rest.get(id(node))
            return None if found is None else (node.kind, found, inside(node))

        self._in_gaps(lefts, rights, lane, renamed, "name")

    def _in_gaps(
        self, lefts: Sequence[Node], rights: Sequence[Node], lane: str, token: Callable[[Node], Hashable], why: str = ""
    ) -> None:
        """Pair what has the same token and stands in the same place between others that are paired, in order."""
        if all(node.mate is not None for node in lefts) or all(node.mate is not None for node in rights):
            return
        pairs = [(node, node.mate) for node in lefts if node.mate is not None]
        gone = {id(pair[0]) for pair in order.moved(pairs, lane)}
        firm = [pair for pair in pairs if id(pair[0]) not in gone]
        left_gaps, right_gaps = (
            _gaps(nodes, {id(pair[side]): number for number, pair in enumerate(firm)})
            for side, nodes in enumerate((lefts, rights))
        )
        for place, ones in left_gaps.items():
            others = right_gaps.get(place, [])
            ones, others = ([node for node in side if token(node) is not None] for side in (ones, others))
            for block in aligned([token(node) for node in ones], [token(node) for node in others]):
                if block.same:
                    for step in range(block.left_end - block.left):
                        self._join(ones[block.left + step], others[block.right + step], why)

    def _elsewhere(self) -> None:
        """Pair what is left over in different places of the tree, and is the same."""
        for key, sure in ((_whole, False), (_asked, True)):
            lefts, rights = ([node for node in side.nodes if node.mate is None] for side in self._sides)
            known: dict[Hashable, list[Node]] = {}
            for node in reversed(rights if lefts else ()):
                if (found := key(node)) is not None:
                    known.setdefault(found, []).append(node)
            times = Counter(key(node) for node in lefts) if sure and known else Counter()
            for node in lefts:
                found = key(node) if node.mate is None else None
                others = known.get(found, []) if found is not None else []
                if sure and (times[found] > 1 or len(others) > 1):
                    continue
                while others and others[-1].mate is not None:
                    others.pop()
                if others:
                    self._join(node, others.pop(), "parent")
                    self._work()


def paired_children(left: Node) -> list[Pair]:
    """Return the children of a node whose mates are children of its mate."""
    return [(child, child.mate) for child in left.children if child.mate is not None and child.mate.parent is left.mate]


def inside(node: Node) -> Hashable:
    """Return what a node was answered, and all that is in it."""
    return node.status, node.answer, tuple(whole(child) for child in node.children)


def whole(node: Node) -> bytes:
    """Return a digest of a node and all that is in it."""
    waiting = [node]
    while waiting:
        one = waiting[-1]
        missing = [child for child in one.children if child.whole is None]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if one.whole is None:
            parts = [str(one.question), one.status, one.answer.hex(), *(str(child.whole) for child in one.children)]
            one.whole = content.digest(parts)
    assert node.whole is not None
    return node.whole


def _says_much(node: Node) -> bool:
    """Say whether what a node was answered, and what is in it, is enough to know it by."""
    return bool(node.children) or (node.end_seq is not None and len(node.answer) > len(b'{"status":"ok"}'))


def _whole(node: Node) -> Hashable:
    return whole(node)


def _asked(node: Node) -> Hashable:
    return node.question if node.kind in _CALLS else None


def _gaps(nodes: Sequence[Node], firm: dict[int, int]) -> dict[int, list[Node]]:
    """Return what has no mate, by the last firm one before it."""
    found: dict[int, list[Node]] = {}
    place = -1
    for node in nodes:
        place = firm.get(id(node), place)
        if node.mate is None:
            found.setdefault(place, []).append(node)
    return found


def _matched(lefts: list[Node], rights: list[Node]) -> list[Pair]:
    """Pair nodes that asked the same: lane by lane in order, or by their answers where more of them agree then."""
    if len(lefts) == 1 == len(rights):
        return [(lefts[0], rights[0])]
    in_order = _by_lane(lefts, rights)
    most = abs(len(lefts) - len(rights))
    if _differences(in_order, lefts, rights) == most:
        return in_order
    by_answer = _by_answer(lefts, rights)
    fewer = _differences(by_answer, lefts, rights) < _differences(in_order, lefts, rights)
    return by_answer if fewer else in_order


def _differences(pairs: list[Pair], lefts: list[Node], rights: list[Node]) -> int:
    """Count what would be said to differ."""
    other = sum(one.answer != two.answer for one, two in pairs)
    return other + len(lefts) + len(rights) - 2 * len(pairs)


def _by_lane(lefts: list[Node], rights: list[Node]) -> list[Pair]:
    """Pair the first with the first, the second with the second; in each lane, and then among what is left."""
    lanes: dict[str, list[Node]] = {}
    for node in rights:
        lanes.setdefault(node.lane, []).append(node)
    for nodes in lanes.values():
        nodes.reverse()
    found, left_over = [], []
    for node in lefts:
        if lanes.get(node.lane):
            found.append((node, lanes[node.lane].pop()))
        else:
            left_over.append(node)
    rest = sorted((node for nodes in lanes.values() for node in nodes), key=lambda node: node.start)
    return found + list(zip(left_over, rest, strict=False))


def _by_answer(lefts: list[Node], rights: list[Node]) -> list[Pair]:
    """Pair those that were answered the same, without crossing where they came one after the other."""
    if _one_after_the_other(lefts) and _one_after_the_other(rights):
        found: list[Pair] = []
        for block in aligned([node.answer for node in lefts], [node.answer for node in rights]):
            size = min(block.left_end - block.left, block.right_end - block.right)
            found += zip(lefts[block.left : block.left + size], rights[block.right : block.right + size], strict=True)
        return found
    known: dict[bytes, list[Node]] = {}
    for node in reversed(rights):
        known.setdefault(node.answer, []).append(node)
    found, left_over = [], []
    for node in lefts:
        if known.get(node.answer):
            found.append((node, known[node.answer].pop()))
        else:
            left_over.append(node)
    rest = sorted((node for nodes in known.values() for node in nodes), key=lambda node: node.start)
    return found + list(zip(left_over, rest, strict=False))


def _one_after_the_other(nodes: list[Node]) -> bool:
    return all(one.lane == other.lane and one.end < other.start for one, other in pairwise(nodes))
