from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import _limits
from playhead.views.alignment import Block, aligned, balanced

LISTS = st.lists(st.integers(0, 5), max_size=40)


@given(LISTS, LISTS)
def test_blocks_cover_both_lists_in_order_and_alternate(left: list[int], right: list[int]) -> None:
    blocks = aligned(left, right)
    at_left = at_right = 0
    for block in blocks:
        assert (block.left, block.right) == (at_left, at_right)
        at_left, at_right = block.left_end, block.right_end
        if block.same:
            assert left[block.left : block.left_end] == right[block.right : block.right_end]
    assert (at_left, at_right) == (len(left), len(right))
    assert all(one.same != other.same for one, other in itertools.pairwise(blocks))


@given(LISTS, LISTS)
def test_as_much_as_possible_is_the_same(left: list[int], right: list[int]) -> None:
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for x, one in enumerate(left):
        for y, other in enumerate(right):
            longer = max(lengths[x][y + 1], lengths[x + 1][y])
            lengths[x + 1][y + 1] = lengths[x][y] + 1 if one == other else longer
    found = sum(block.left_end - block.left for block in aligned(left, right) if block.same)
    # What is the same at both ends is taken first, which costs nothing: a longest one can always begin with it.
    assert found == lengths[-1][-1]


def test_beyond_the_limit_the_middle_is_replaced_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "DIFFERENCE_EDITS_MAX", 3)
    blocks = aligned([0, *range(10, 20), 1], [0, *range(30, 40), 1])
    assert blocks == [Block(True, 0, 1, 0, 1), Block(False, 1, 11, 1, 11), Block(True, 11, 12, 11, 12)]


def pairs_of(left: list[int], right: list[int]) -> list[tuple[int, int]]:
    return [
        (block.left + step, block.right + step)
        for block in aligned(left, right)
        if block.same
        for step in range(block.left_end - block.left)
    ]


def unbalanced(left: list[int], right: list[int], pairs: list[tuple[int, int]]) -> int:
    ends = [(-1, -1), *pairs, (len(left), len(right))]
    return sum(abs((x - before_x) - (y - before_y)) for (before_x, before_y), (x, y) in itertools.pairwise(ends))


@given(LISTS, LISTS)
def test_balanced_pairs_are_as_many_in_order_and_never_less_balanced(left: list[int], right: list[int]) -> None:
    before = pairs_of(left, right)
    after = balanced((left, right), before)
    assert len(after) == len(before)
    assert all(left[x] == right[y] for x, y in after)
    assert all(x < other_x and y < other_y for (x, y), (other_x, other_y) in itertools.pairwise(after))
    assert unbalanced(left, right, after) <= unbalanced(left, right, before)


def test_pairs_leave_as_many_places_on_both_sides() -> None:
    left, right = [0, 0, 0, 0, 0], [1, 0, 2, 0, 3]
    assert balanced((left, right), [(0, 1), (1, 3)]) == [(1, 1), (3, 3)]
    assert balanced((right, left), [(1, 3), (3, 4)]) == [(1, 1), (3, 3)]
