"""What was denied is counted as often as it was, and said in a line."""

from __future__ import annotations

from typing import Any

from tests.views.test_timeline import Story

from playhead.views.denials import told
from playhead.views.timeline import Timeline


def checked(resource: str, decision: str = "deny", mode: str = "enforce", **more: Any) -> dict[str, Any]:
    return {"capability": "fs.write", "resource": resource, "decision": decision, "mode": mode, "rule": "r", **more}


def denied(*decisions: dict[str, Any]) -> str:
    story = Story().add("run.started", {"name": "r"}, span="0", parent=None)
    for decision in decisions:
        story.add("policy.checked", decision)
    return told(Timeline().take_all(story.events).finish().denied, 2)


def test_what_is_stopped_and_what_would_be_are_told_apart() -> None:
    assert denied(checked("a", "allow")) == ""
    assert denied(checked("a"), checked("b", "ask")) == "2 denied: fs.write a, fs.write b"
    assert denied(checked("a", mode="observe")) == "1 would be denied: fs.write a"
    assert denied(checked("a"), checked("a"), checked("b"), checked("c")) == (
        "4 denied: fs.write a, fs.write b, and 1 more"
    )


def test_what_was_not_recorded_each_time_is_counted_each_time() -> None:
    often = [checked("a"), *(checked("a", times=times) for times in (2, 3, 100, 1000))]
    assert denied(*often, checked("b")) == "1,001 denied: fs.write a, fs.write b"
