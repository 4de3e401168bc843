from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import _limits
from playhead.views.alignment import Block, aligned

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
