from __future__ import annotations

from typing import Any

import pytest
from tests.views.diff.stories import diffed, recorded, run, tool

from playhead.views.diff.children import Child, Started, paired
from playhead.views.diff.comparison import compare


def started(run: str, name: str = "kid", *argv: str) -> Started:
    return Started(run, name, argv)


def pairs(lefts: list[Started], rights: list[Started]) -> list[tuple[str | None, str | None]]:
    return [(one and one.run, other and other.run) for one, other in paired(lefts, rights)]  # type: ignore[misc]


def test_runs_are_paired_by_their_names_and_arguments_in_order() -> None:
    lefts = [started("a"), started("b"), started("c", "other")]
    rights = [started("d"), started("e", "other"), started("f"), started("g")]
    assert pairs(lefts, rights) == [("a", "d"), ("b", "f"), ("c", "e"), (None, "g")]
    assert pairs(lefts, []) == [("a", None), ("b", None), ("c", None)]


def test_those_that_began_at_once_are_known_by_their_arguments_and_of_others_the_name_is_enough() -> None:
    lefts = [started("a", "kid", "1"), started("b", "kid", "2"), started("c", "kid", "/tmp/x")]
    rights = [started("d", "kid", "/tmp/y"), started("e", "kid", "2"), started("f", "kid", "1")]
    assert pairs(lefts, rights) == [("a", "f"), ("b", "e"), ("c", "d")]


@pytest.mark.parametrize(
    ("children", "identical"),
    [
        ([], True),
        ([Child("a", "x", "y", diffed(run(), run(run="run_b")))], True),
        ([Child("a", "x", "y", problem="unreadable")], None),
        ([Child("a", "x", "y", problem="unreadable"), Child("a", "x", None)], False),
        ([Child("a", "x", "y", diffed(run(tool("t")), run(run="run_b")))], False),
    ],
)
def test_runs_are_identical_where_those_that_they_started_are(children: list[Child], identical: Any) -> None:
    found = compare(recorded(run()), recorded(run(run="run_b")), None, lambda: children)
    assert found.identical is identical
    assert bool(found) is (identical is False)
    assert found.as_dict()["children"] == [child.as_dict() for child in children]
