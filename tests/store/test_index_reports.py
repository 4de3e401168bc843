from __future__ import annotations

from typing import Any

import pytest

from playhead.store import index_reports

LINE = "2026-01-02T03:04:05.000000Z"
LINE_US = 1767323045000000


@pytest.mark.parametrize(
    ("moment", "us"),
    [
        ("2026-01-02T03:04:05.1234567Z", LINE_US + 123456),
        ("2026-01-02T05:04:05+02:00", LINE_US),
        ("2026-01-02T03:04:05", LINE_US),  # no zone: UTC
        ("yesterday", LINE_US), (5, LINE_US), (None, LINE_US), ({"$same": "1#/x"}, LINE_US),
    ],
)  # fmt: skip
def test_the_moment_is_that_of_the_result_or_else_of_its_line(moment: Any, us: int) -> None:
    assert index_reports.result({"finished": moment}, LINE)[11] == us
    assert index_reports.commit({"committed": moment}, LINE)[5] == us


def test_a_test_is_named_as_people_do_and_the_first_line_tells_what_is_wrong() -> None:
    found = index_reports.result({"test": {"classname": "a.T", "name": "x", "message": "no\nmore"}}, LINE)
    assert (found[6], found[-1]) == ("a.T::x", "no")
    assert index_reports.result({"test": {"name": "x"}, "errors": ["first\nline", "second"]}, LINE)[6] == "x"
    assert index_reports.result({"errors": ["first\nline", "second"]}, LINE)[-1] == "first"
    assert index_reports.result({"test": 5, "errors": 5, "duration_us": "x", "ci": []}, LINE)[6] == 5


@pytest.mark.parametrize(
    ("told", "size"),
    [
        ({"files": ["a", "b"], "changes": [{"added": 3, "removed": 1}, {"added": 2, "removed": 0}]}, (2, 5, 1)),
        ({"files": ["image"], "changes": [{"path": "image"}]}, (1, None, None)),
        ({"files": ["a"]}, (1, None, None)),
        ({"files": ["a"], "changes": [{"added": -1, "removed": "x"}, 5]}, (1, None, None)),
        ({"files": ["a"], "changes": {"$same": "3#/changes"}}, (1, None, None)),
        ({"files": {"$same": "3#/files"}}, (None, None, None)),
        ({"files": ["a"], "shallow": True}, (None, None, None)),
        ({}, (None, None, None)),
    ],
)
def test_how_much_a_commit_changed_is_told_as_far_as_it_is_known(told: Any, size: Any) -> None:
    assert index_reports.commit({**told, "parents": ["x"]}, LINE)[7:] == (*size, ["x"])


@pytest.mark.parametrize(
    ("link", "made"),
    [(None, True), ("trailer", True), ("note", True), ("started_from", False), ("range", False), ([], False)],
)
def test_only_a_commit_that_the_run_made_is_written_by_it(link: Any, made: bool) -> None:
    assert index_reports.files_made({"files": ["a"], "link": link}) == (["a"] if made else [])
