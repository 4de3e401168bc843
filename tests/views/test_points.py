from __future__ import annotations

from typing import Any

import pytest

from playhead.event.envelope import Event
from playhead.views import points
from playhead.views.timeline import Timeline


def event(kind: str, data: Any) -> Event:
    return Event(v=1, run="run_x", seq=3, time="2026-01-02T03:04:05.000000Z", elapsed_us=1, kind=kind, span=None,
                 parent=None, lane="0", key=None, data=data, prev="", hash="")  # fmt: skip


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"commit": "a" * 40, "message": "Fix it\n\nbody"}, "aaaaaaaaaa Fix it"),
        ({"commit": "a" * 40, "message": "Fix", "link": "trailer"}, "aaaaaaaaaa Fix (its message names this run)"),
        (
            {"commit": "a" * 40, "message": "Fix", "link": "started_from"},
            "aaaaaaaaaa Fix (this run was started from it)",
        ),
        ({"commit": 5, "message": [], "link": {}}, "5 []"),
    ],
)
def test_a_commit_is_said_with_why_it_belongs_to_the_run(data: dict[str, Any], told: str) -> None:
    assert points.said("git.committed", data, "", None) == told


@pytest.mark.parametrize(
    ("data", "told", "status"),
    [
        ({"job": "t", "result": "success", "counts": {"passed": 3}}, "success · 3 passed", "ok"),
        ({"step": "s", "result": "failure", "errors": ["bad\nmore"], "log": "x" * 999}, "s · failure · bad", "error"),
        (
            {"test": {"classname": "a.T", "name": "x", "message": "no"}, "result": "failure"},
            "a.T::x · failure · no",
            "error",
        ),
        ({"result": "cancelled"}, "cancelled", "cancelled"),
        ({"result": "unknown"}, "unknown", "point"),
        ({"result": ["x"], "counts": 5, "errors": "x", "test": 7, "step": {"a": 1}}, '{a: 1} · ["x"]', "point"),
        ({}, "", "point"),
    ],
)
def test_what_ci_reported_is_said_in_few_words_and_has_the_sign_of_its_result(
    data: dict[str, Any], told: str, status: str
) -> None:
    row = Timeline().row_of(event("ci.reported", data))
    assert (row.detail, row.status, row.name) == (told, status, data.get("job", ""))
