from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replay.questions import chat, says

from playhead import _limits
from playhead.views.difference import ABSENT, Change, changes, encoded, equal

KEYS = st.sampled_from(["a", "b", "role", "content", "x/y", "~"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -0.0]) | st.text("ab ", max_size=4)
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(KEYS, inner, max_size=4))


def applied(left: Any, found: list[Change]) -> Any:
    """Do what the changes say: first inside of items, then take items away from lists, then put others in."""
    whole = [copy.deepcopy(left)]

    def holder(path: str) -> tuple[Any, Any]:
        at: Any = whole
        steps: list[Any] = [0, *(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])]
        for step in steps[:-1]:
            at = at[int(step) if isinstance(at, list) else step]
        return at, int(steps[-1]) if isinstance(at, list) else steps[-1]

    for change in found:
        inside, key = holder(change.path)
        if change.left is not ABSENT and change.right is not ABSENT:
            inside[key] = change.right
        elif isinstance(inside, dict):
            inside.update({key: change.right}) if change.left is ABSENT else inside.pop(key)
    for change in reversed(found):
        inside, key = holder(change.path) if change.right is ABSENT else (None, None)
        if isinstance(inside, list):
            del inside[key]
    for change in found:
        inside, key = holder(change.path) if change.left is ABSENT and change.path.count("/") == 1 else (None, None)
        if isinstance(inside, list):
            inside.insert(key, change.right)
    return whole[0]


@given(JSON, JSON)
def test_no_change_means_the_same_and_the_same_has_no_change(left: Any, right: Any) -> None:
    assert (not changes(left, right)) == equal(left, right) == (encoded(left) == encoded(right))
    assert changes(left, copy.deepcopy(left)) == []


@given(st.lists(st.dictionaries(KEYS, SCALARS, max_size=3) | SCALARS, max_size=8),
       st.lists(st.dictionaries(KEYS, SCALARS, max_size=3) | SCALARS, max_size=8))  # fmt: skip
def test_the_changes_of_a_list_make_the_right_one_of_the_left(left: Any, right: Any) -> None:
    assert encoded(applied(left, changes(left, right))) == encoded(right)


@given(st.dictionaries(KEYS, SCALARS | st.dictionaries(KEYS, SCALARS), max_size=5),
       st.dictionaries(KEYS, SCALARS | st.dictionaries(KEYS, SCALARS), max_size=5))  # fmt: skip
def test_the_changes_of_an_object_make_the_right_one_of_the_left(left: Any, right: Any) -> None:
    assert encoded(applied(left, changes(left, right))) == encoded(right)


@given(JSON, JSON)
def test_changes_can_be_written_as_json_and_are_few(left: Any, right: Any) -> None:
    found = changes(left, right)
    assert len(found) <= _limits.DIFFERENCE_CHANGES_MAX
    for change in found:
        assert set(change.as_dict()) <= {"path", "left", "right", "words"}
        json.dumps(change.as_dict())


def test_an_inserted_message_is_one_change() -> None:
    history = [says(f"turn {number}") for number in range(40)]
    left, right = chat(*history).input, chat(*history[:20], says("by the way"), *history[20:]).input
    assert changes(left, right) == [Change("/messages/20", right=says("by the way"))]
    assert changes(right, left) == [Change("/messages/20", left=says("by the way"))]


def test_a_changed_message_beside_an_inserted_one_is_paired_by_its_role() -> None:
    left = [says("You are careful.", "system"), says("Fix it.")]
    right = [says("You are careless.", "system"), {"role": "assistant", "content": "hm"}, says("Fix it!")]
    assert [change.path for change in changes(left, right)] == ["/0/content", "/1/content", "/1"]


def test_absent_is_not_null() -> None:
    assert changes({"a": None}, {}) == [Change("/a", left=None)]
    assert changes({}, {"a": None})[0].as_dict() == {"path": "/a", "right": None}


def test_one_and_one_point_zero_are_the_same_question_and_true_is_not() -> None:
    assert changes({"a": 1}, {"a": 1.0}) == []
    assert changes([1], [True]) == [Change("/0", 1, True)]


def test_bytes_are_one_value() -> None:
    assert changes({"x": {"$bytes": "YQ=="}}, {"x": {"$bytes": "Yg=="}})[0].path == "/x"


def test_a_container_with_too_many_changes_is_one_change() -> None:
    left = {"a": {str(number): number for number in range(100)}, "b": 1}
    right = {"a": {str(number): -number - 1 for number in range(100)}, "b": 1}
    assert changes(left, right) == [Change("/a", left["a"], right["a"])]


def test_a_text_has_its_words_in_json() -> None:
    assert Change("/x", "in 2025", "in 2026").as_dict()["words"] == "in [-2025-] {+2026+}"


@pytest.mark.parametrize("odd", [2**70, "\ud800", [2**70]])
def test_what_no_key_can_be_made_of_is_compared_all_the_same(odd: Any) -> None:
    assert changes({"a": [odd]}, {"a": [odd]}) == []
    assert changes({"a": [odd]}, {"a": [1]})


def test_what_is_in_marked_values_is_compared_by_the_names_that_people_give_it() -> None:
    def told(left: Any, right: Any) -> list[tuple[str, Any, Any]]:
        return [(one.path, one.left, one.right) for one in changes(left, right, marks=True)]

    def pairs(*pairs: list[Any]) -> dict[str, Any]:
        return {"$dict": list(pairs)}

    assert told(pairs([1, "a"], ["n", None], [3, "x"]), pairs([1, "a"], ["n", None], [3, "y"])) == [("/3", "x", "y")]
    assert told(pairs([1, pairs([2, 0])]), pairs([1, pairs([2, 1])])) == [("/1/2", 0, 1)]
    assert told({"a": 1}, pairs(["a", 1], [None, 2])) == [("/null", ABSENT, 2)]
    assert told({"$tuple": [1, 2]}, {"$tuple": [1, 3]}) == [("/1", 2, 3)]
    report = {"$object": "agent.Report", "fields": {"ok": True}}
    assert told(report, {**report, "fields": {"ok": False}}) == [("/ok", True, False)]
    # Of another sort, in another order, or with keys that are called alike, it is one value.
    for left, right in (
        (report, {**report, "$object": "agent.Other"}),
        ({"$tuple": [1]}, {"$frozenset": [1]}),
        (pairs([1, "a"], [2, "b"]), pairs([2, "b"], [1, "a"])),
        (pairs([1, "a"], ["1", "b"]), pairs([1, "a"], ["1", "c"])),
        (pairs([1, "a"]), {"1": "a"}),
        ({"$bytes": "aGk="}, {"$bytes": "aGo="}),
        (pairs(*([n, 0] for n in range(99))), pairs(*([n, 1] for n in range(99)))),
    ):
        assert told(left, right) == [("", left, right)]
    # Who looks for rules is told where it stands in the JSON.
    assert [one.path for one in changes({"a": pairs([1, 2])}, {"a": pairs([1, 3])})] == ["/a"]


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (["a" * 80, "b"], ["a" * 80, "c"], "[-b-] {+c+}"),
        ({"$set": [*range(90), "x"]}, {"$set": [*range(90), "y"]}, "[-x-] {+y+}"),
        ({"$bytes": "aGk="}, {"$bytes": "aGo="}, "[-aGk-] {+aGo+}"),
    ],
)
def test_of_values_that_look_alike_where_they_are_cut_the_place_is_shown_where_they_differ(
    left: Any, right: Any, words: str
) -> None:
    found = Change("", left, right).as_dict()
    assert found["left"] == left
    assert words in found["words"]
    assert "words" not in Change("", [1], [2]).as_dict()
