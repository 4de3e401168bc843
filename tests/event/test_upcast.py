"""Old lines are brought up to the present format by a table of pure functions."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from playhead.errors import BrokenLine
from playhead.event.envelope import FORMAT
from playhead.event.upcast import CURRENT, TABLE, upcast


def test_the_table_leads_from_every_old_format_to_the_present_one() -> None:
    assert CURRENT == FORMAT
    assert sorted(TABLE) == list(range(1, CURRENT))


def test_a_line_of_the_present_format_is_returned_as_it_is() -> None:
    fields = {"v": CURRENT, "data": {"x": 1}, "unknown": True}
    assert upcast(fields) is fields


def test_a_line_of_a_newer_format_is_returned_as_it_is() -> None:
    fields = {"v": CURRENT + 5, "data": None}
    assert upcast(fields) is fields


def test_each_step_is_taken_once_and_in_order() -> None:
    def rename(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "v": 2, "kind": fields["type"]}

    def widen(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "v": 3, "data": {"value": fields["data"], "was": fields["kind"]}}

    old = {"v": 1, "type": "a.b", "data": 5, "colour": "red"}
    before = copy.deepcopy(old)
    assert upcast(old, {1: rename, 2: widen}, current=3) == {
        "v": 3, "type": "a.b", "kind": "a.b", "data": {"value": 5, "was": "a.b"}, "colour": "red",
    }  # fmt: skip
    assert old == before


@pytest.mark.parametrize("version", [None, 0, -1, "1", 1.0, [], {}])
def test_a_line_without_a_version_is_refused(version: Any) -> None:
    with pytest.raises(BrokenLine):
        upcast({"v": version})
    with pytest.raises(BrokenLine):
        upcast({})
