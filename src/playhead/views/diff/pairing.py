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
from playhead.views.diff import order
from playhead.views.diff.gaps import Gaps
from playhead.views.diff.kin import Kin, Values, called
from playhead.views.diff.likeness import alike, asks_much, inside, says_much, share, whole
from playhead.views.diff.nodes import Node, Side
from playhead.views.diff.order import Pair
from playhead.views.diff.wrappers import opened, opened_by_question

# Returns what a question means, where two that are written otherwise may mean the same; None where there is nothing.
Meaning = Callable[[Node], Any]
_CALLS = frozenset({"model", "tool", "mcp", "http", "process"})


class Pairing:
    """Pair the nodes of two runs, in place: `mate` and `moved` say what came of it."""

    def __init__(
        self,
        left: Side,
        right: Side,
        meanings: tuple[Meaning, Meaning],
        nameless: tuple[Meaning, Meaning],
        values: tuple[Values, Values],
    ) -> None:
        """Take two sides, and for each who knows what a question means, without its name too, and its single values."""
        self._sides = left, right
        self._meanings, self._nameless = meanings, nameless
        self._waiting: list[Pair] = []
        self._kin = Kin(values)

    def pair(self) -> None:
        """Pair everything that belongs together."""
        left, right = (side.root for side in self._sides)
        if left is None or right is None:
            return
        self._mean()
        self._join(left, right)
        self._work()
        self._elsewhere()

    def _mean(self) -> None:
        """Take a question that only one side has for what it means: what is in a span is known by that, too."""
        models = [[node for node in side.nodes if node.kind == "model"] for side in self._sides]
        both = {node.question for node in models[0]} & {node.question for node in models[1]}
        for nodes, meaning in zip(models, self._meanings, strict=True) if all(models) else ():
            for node in nodes:
                if node.question not in both and (found := meaning(node)) is not None:
                    node.question = found

    def _work(self) -> None:
        unseen: tuple[list[Node], list[Node]] = ([], [])
        while self._waiting:
            left, right = self._waiting.pop()
            if left.kind == "tool" and any(
                side.replay and not node.children for side, node in zip(self._sides, (left, right), strict=True)
            ):
                for found, node in zip(unseen, (left, right), strict=True):
                    found += _contents(node)  # which a replay does not run
            else:
                self._children(left, right)
        for side, nodes in zip(self._sides, unseen, strict=True):
            side.leave_out(nodes)

    def _join(self, left: Node, right: Node, why: str = "") -> None:
        left.mate, right.mate = right, left
        left.moved = right.moved = why
        if left.children or right.children or left.effects or right.effects:
            self._waiting.append((left, right))

    def _children(self, left: Node, right: Node) -> None:
        lefts, rights = left.children, right.children
        start = 0
        for one, other in zip(lefts, rights, strict=False):
            if one.mate is not None or other.mate is not None:  # somewhere else, before what they are in was paired
                break
            if one.lane != other.lane or whole(one) != whole(other):
                break
            self._join(one, other)
            start += 1
        if start < len(lefts) and start < len(rights):
            self._rest(lefts[start:], rights[start:], left.lane)
        pairs = paired_children(left)
        for one, other in order.moved(pairs, left.lane) if start < len(pairs) else ():
            one.moved = other.moved = one.moved or "order"
        for one, other in order.checked_late(pairs, (left, right)):
            one.moved = other.moved = one.moved or "order"

    def _rest(self, lefts: list[Node], rights: list[Node], lane: str) -> None:
        """Pair siblings, beginning with what is sure: what was there once on each side. The others stand between."""
        lefts, rights = opened(lefts, rights)
        again = self._once(lefts, rights, lambda node: node.question)
        if again:
            self._once(lefts, rights, whole)
        gaps = Gaps(lefts, rights, lane, self._join)
        if again:
            gaps.align(whole)
        if (inner := opened_by_question(lefts, rights)) is not None:
            gaps, again = Gaps(*inner, lane, self._join), True
            gaps.align(whole)
        if again:
            gaps.align_by(alike)
            gaps.align(lambda node: (node.question, node.status))  # of several attempts those that ended alike
            gaps.align(lambda node: node.question)
            self._pair_by(*gaps.left_over(), lambda node: node.question, firm=gaps.firm())
        self._by_meaning(*gaps.left_over())
        self._akin(gaps)
        gaps.align(lambda node: (node.kind, node.name, inside(node)) if says_much(node) else None)
        self._renamed(gaps)
        gaps.align_attempts(lambda node: (node.kind, node.name))
        gaps.align_attempts(called)

    def _once(self, lefts: Sequence[Node], rights: Sequence[Node], key: Callable[[Node], Hashable]) -> bool:
        """Pair what has a key that no other one has on its side; say whether something else is on both sides."""
        known: list[dict[Hashable, Node | None]] = [{}, {}]
        for found, nodes in zip(known, (lefts, rights), strict=True):
            for node in nodes:
                if node.mate is None:
                    at = key(node)
                    found[at] = None if at in found else node
        again = False
        for at, one in known[0].items():
            if at in known[1]:
                other = known[1][at]
                if one is None or other is None:
                    again = True
                else:
                    self._join(one, other)
        return again

    def _pair_by(
        self,
        lefts: Iterable[Node],
        rights: Iterable[Node],
        key: Callable[[Node], Hashable],
        firm: Sequence[Pair] | None = None,
    ) -> None:
        """Pair what has the same key; of several those that were answered the same, else one after the other.

        What was answered otherwise, and would cross what is firm, is not the same thing at another place.
        """
        groups: dict[Hashable, tuple[list[Node], list[Node]]] = {}
        for side, nodes in enumerate((lefts, rights)):
            for node in nodes:
                if node.mate is None and (found := key(node)) is not None:
                    groups.setdefault(found, ([], []))[side].append(node)
        pairs = [pair for ones, others in groups.values() if ones and others for pair in _matched(ones, others)]
        if pairs and firm is not None:
            apart = {id(one) for one, _ in order.crossing(firm, pairs)}
            pairs = [(one, other) for one, other in pairs if id(one) not in apart or whole(one) == whole(other)]
        for one, other in pairs:
            self._join(one, other)

    def _by_meaning(self, lefts: Sequence[Node], rights: Sequence[Node]) -> None:
        """Pair questions that are written otherwise and mean the same."""
        asked = [{(node.kind, node.name) for node in side} for side in (lefts, rights)]
        both = asked[0] & asked[1]
        means: dict[int, Any] = {}
        for nodes, meaning in zip((lefts, rights), self._meanings, strict=True):
            for node in nodes:
                if (node.kind, node.name) in both and (found := meaning(node)) is not None:
                    means[id(node)] = node.question = found
        if means:
            self._pair_by(lefts, rights, lambda node: means.get(id(node)))

    def _akin(self, gaps: Gaps) -> None:
        """Pair calls by values that they alone have in common, where their place does not say which belong together."""
        pairs = self._kin.pairs(*gaps.unsure(), gaps.firm())
        for one, other in pairs:
            self._join(one, other)
        if pairs:
            gaps.divide()

    def _renamed(self, gaps: Gaps) -> None:
        """Pair what was asked and answered the same under another name; then spans that have most in common."""
        sides = gaps.left_over()
        names = [{(node.kind, node.name) for node in side} for side in sides]
        rest: dict[int, Any] = {}
        for side, nameless in enumerate(self._nameless):
            for node in sides[side]:
                if (node.kind, node.name) not in names[1 - side]:
                    asked = nameless(node) if says_much(node) or node.end_seq is not None else None
                    rest[id(node)] = asked if says_much(node) or asks_much(asked) else None

        def unnamed(node: Node) -> Hashable:
            found = rest.get(id(node))
            return None if found is None else (node.kind, found)

        def renamed(node: Node) -> Hashable:
            found = unnamed(node)
            return None if found is None else (found, inside(node))

        if rest:
            gaps.align(renamed, "name")
            gaps.align_by(lambda *sides: [pair for pair in alike(sides[0], sides[1], unnamed) if share(*pair)], "name")

    def _elsewhere(self) -> None:
        """Pair what is left over in different places of the tree, and is the same; what is in it goes with it."""
        for key, sure in ((_asked_around, True), (whole, False), (_asked, True)):
            lefts, rights = ([node for node in side.nodes if node.mate is None] for side in self._sides)
            if not lefts or not rights:
                return
            known: dict[Hashable, list[Node]] = {}
            for node in reversed(rights):
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
                if others and not (sure and node.parent is not None and node.parent.mate is others[-1].parent):
                    self._join(node, others.pop(), "parent")
                    self._work()


def _contents(node: Node) -> list[Node]:
    found = list(node.children)
    for one in found:
        found += one.children  # which the loop goes on to
    return found


def paired_children(left: Node) -> list[Pair]:
    """Return the children of a node whose mates are children of its mate."""
    return [(child, child.mate) for child in left.children if child.mate is not None and child.mate.parent is left.mate]


def _asked(node: Node) -> Hashable:
    return node.question if node.kind in _CALLS else None


def _asked_around(node: Node) -> Hashable:
    return _asked(node) if node.children else None


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
    return _by(lefts, rights, lambda node: node.lane)


def _by_answer(lefts: list[Node], rights: list[Node]) -> list[Pair]:
    """Pair those that were answered the same, without crossing where they came one after the other."""
    if _one_after_the_other(lefts) and _one_after_the_other(rights):
        found: list[Pair] = []
        for block in aligned([node.answer for node in lefts], [node.answer for node in rights]):
            size = min(block.left_end - block.left, block.right_end - block.right)
            found += zip(lefts[block.left : block.left + size], rights[block.right : block.right + size], strict=True)
        return found
    return _by(lefts, rights, lambda node: node.answer)


def _by(lefts: list[Node], rights: list[Node], key: Callable[[Node], Hashable]) -> list[Pair]:
    """Pair those of the same key one after the other, and then what is left."""
    known: dict[Hashable, list[Node]] = {}
    for node in reversed(rights):
        known.setdefault(key(node), []).append(node)
    found, left_over = [], []
    for node in lefts:
        if known.get(key(node)):
            found.append((node, known[key(node)].pop()))
        else:
            left_over.append(node)
    rest = sorted((node for nodes in known.values() for node in nodes), key=lambda node: node.start)
    return found + list(zip(left_over, rest, strict=False))


def _one_after_the_other(nodes: list[Node]) -> bool:
    return all(one.lane == other.lane and one.end < other.start for one, other in pairwise(nodes))
