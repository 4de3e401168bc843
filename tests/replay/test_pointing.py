"""A place in a value is named by a path, and what is not there is said."""

from __future__ import annotations

from typing import Any

import pytest

from playhead.errors import UsageError
from playhead.replay.pointing import assignment, put


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b.0.c", {"a": {"b": [{"c": "new"}, 2]}, "x/y": 1}),
        ("/a/b/1", {"a": {"b": [{"c": 1}, "new"]}, "x/y": 1}),
        ("/x~1y", {"a": {"b": [{"c": 1}, 2]}, "x/y": "new"}),
        ("a.b.-1", {"a": {"b": [{"c": 1}, "new"]}, "x/y": 1}),
        ("a.b.-", {"a": {"b": [{"c": 1}, 2, "new"]}, "x/y": 1}),
    ],
)
def test_it_is_put_there(path: str, expected: Any) -> None:
    value = {"a": {"b": [{"c": 1}, 2]}, "x/y": 1}
    put(value, path, "new")
    assert value == expected


@pytest.mark.parametrize(
    ("path", "hint"),
    [("a.z", "At a are: b."), ("a.b.9", "a list of 1"), ("a.b.0.c", "has no parts"), ("q", "At the top are: a, e."),
     ("e.0", "empty")],
)  # fmt: skip
def test_what_is_not_there_is_said_with_what_is(path: str, hint: str) -> None:
    with pytest.raises(UsageError, match="nothing is at") as raised:
        put({"a": {"b": [1]}, "e": []}, path, 1)
    assert hint in str(raised.value.hint)


def test_objects_on_the_way_can_be_made() -> None:
    value: dict[str, Any] = {}
    put(value, "generationConfig.temperature", 0, creates=True)
    assert value == {"generationConfig": {"temperature": 0}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", ("a", 1)),
        ("a.b=x=y", ("a.b", "x=y")),
        ('a={"b": [1]}', ("a", {"b": [1]})),
        ("a=", ("a", "")),
        ("a=No", ("a", "No")),
    ],
)
def test_an_assignment_is_json_where_it_can_be(text: str, expected: tuple[str, Any]) -> None:
    assert assignment(text) == expected


@pytest.mark.parametrize("text", ["", "a", "=1"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not an assignment"):
        assignment(text)
