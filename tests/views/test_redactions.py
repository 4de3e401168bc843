from __future__ import annotations

import pytest

from playhead.views.redactions import marks, told


def test_marks_are_found_wherever_they_stand() -> None:
    value = {"a": [{"$redacted": "field"}, "x [redacted:url-secret] y [redacted:env]"], "b": {"c": "[redacted:"}}
    assert sorted(marks(value)) == ["env", "field", "url-secret"]


@pytest.mark.parametrize("other", [2**70, "\ud800"])
def test_marks_are_found_beside_what_json_has_no_room_for(other: object) -> None:
    assert marks([other, {"$redacted": "field"}]) == ["field"]


def test_what_nobody_counted_is_said_as_the_least() -> None:
    assert told({"header": 1, "field": 1200}, ["header"]) == "1,200 field, at least 1 header"
    assert told({}, []) == ""
