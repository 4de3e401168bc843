"""Find the shortest way from one sequence to another, and give up in time where they have little in common.

This is the greedy algorithm of Myers (1986): its work grows with the length and with the number of differences, which
is bounded here. Beyond the bound the middle counts as replaced, as a whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from playhead import _limits


class Block(NamedTuple):
    """A part of both sequences: the same in both, or replaced; either side of a replaced one may be empty."""

    same: bool
    left: int
    left_end: int
    right: int
    right_end: int


def aligned(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Block]:
    """Return blocks that cover both sequences in order; no two neighbours are of one sort, and none is empty."""
    start = _common(left, right)
    end = _common_end(left, right, start)
    path = _path(left[start : len(left) - end], right[start : len(right) - end])
    steps: list[Block] = []
    _add(steps, True, (0, start, 0, start))
    x = y = start
    for from_x, from_y, length in path:
        _add(steps, False, (x, start + from_x, y, start + from_y))
        x, y = start + from_x + length, start + from_y + length
        _add(steps, True, (x - length, x, y - length, y))
    _add(steps, False, (x, len(left) - end, y, len(right) - end))
    _add(steps, True, (len(left) - end, len(left), len(right) - end, len(right)))
    return steps


def balanced(
    tokens: tuple[Sequence[Hashable], Sequence[Hashable]], pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return pairs of places with the same tokens that leave as many places between them on both sides as can be.

    Where a token stands several times, one pair is as good as another; but what is left between two pairs on both
    sides was replaced, and what is left on one side alone came or went.
    """
    found = [(-1, -1), *pairs, (len(tokens[0]), len(tokens[1]))]
    places = range(1, len(found) - 1)
    for order, step in ((reversed(places), 1), (places, -1)):  # as late as what comes after allows, and back again
        for at in order:
            found[at] = _moved(tokens, found[at], found[at - step], found[at + step])
    return found[1:-1]


def _moved(
    tokens: tuple[Sequence[Hashable], Sequence[Hashable]],
    pair: tuple[int, int],
    behind: tuple[int, int],
    ahead: tuple[int, int],
) -> tuple[int, int]:
    """Return a pair as near to the one ahead of it on both sides, if it does not become less balanced by that."""
    x, y = pair
    apart = (ahead[0] - x) - (ahead[1] - y)
    if not apart:
        return pair
    for nearer in ((x + apart, y), (x, y - apart)):
        between = all(min(ends) < at < max(ends) for at, *ends in zip(nearer, behind, ahead, strict=True))
        if between and tokens[0][nearer[0]] == tokens[1][nearer[1]] == tokens[0][x]:
            before = (x - behind[0]) - (y - behind[1])
            after = (nearer[0] - behind[0]) - (nearer[1] - behind[1])
            if abs(after) <= abs(before) + abs(apart):
                return nearer
    return pair


def _add(steps: list[Block], same: bool, where: tuple[int, int, int, int]) -> None:
    left, left_end, right, right_end = where
    if left == left_end and right == right_end:
        return
    if steps and steps[-1].same == same:
        before = steps.pop()
        left, right = before.left, before.right
    steps.append(Block(same, left, left_end, right, right_end))


def _common(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    length = min(len(left), len(right))
    at = 0
    while at < length and left[at] == right[at]:
        at += 1
    return at


def _common_end(left: Sequence[Hashable], right: Sequence[Hashable], start: int) -> int:
    length = min(len(left), len(right)) - start
    at = 0
    while at < length and left[-1 - at] == right[-1 - at]:
        at += 1
    return at


def _path(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Return the stretches that are the same, as (left, right, length); none where there are too many differences."""
    if not left or not right:
        return []
    ends = {1: 0}  # the furthest point reached on each diagonal
    trace: list[dict[int, int]] = []
    for edits in range(min(len(left) + len(right), _limits.DIFFERENCE_EDITS_MAX) + 1):
        trace.append(dict(ends))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and ends[diagonal - 1] < ends[diagonal + 1])
            x = ends[diagonal + 1] if down else ends[diagonal - 1] + 1
            y = x - diagonal
            while x < len(left) and y < len(right) and left[x] == right[y]:
                x, y = x + 1, y + 1
            ends[diagonal] = x
            if x >= len(left) and y >= len(right):
                return _back(trace, len(left), len(right))
    return []


def _back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        ends, diagonal = trace[edits], x - y
        if edits == 0:
            before_x = before_y = at = 0
        else:
            down = diagonal == -edits or (diagonal != edits and ends[diagonal - 1] < ends[diagonal + 1])
            before = diagonal + 1 if down else diagonal - 1
            before_x, before_y = ends[before], ends[before] - before
            at = before_x if down else before_x + 1
        if x > at:
            found.append((at, at - diagonal, x - at))
        x, y = before_x, before_y
    return found[::-1]
