"""What a policy decided, what a replay leaves out and what was imported is compared for what it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.views.diff.stories import (
    Part,
    both_ways,
    diffed,
    effect,
    note,
    policy,
    run,
    step,
    tool,
)  # fmt: skip

from playhead.event.envelope import Event


@pytest.mark.parametrize("act", [tool("write", {"path": "a"}), effect("a")])
def test_a_policy_check_that_comes_after_the_effect_is_one_deviation(act: Part) -> None:
    left, right = run(policy("a"), act, note("end")), run(act, policy("a"), note("end"), run="run_b")
    assert both_ways(left, right) == [("moved", None, "fs.write")]
    assert diffed(left, right).deviations[0].why == "order"


def test_what_a_policy_decided_by_itself_is_no_difference_to_a_replay() -> None:
    checked = Part("policy.checked", {"capability": "fs.write", "resource": "x", "decision": "allow", "by": "policy"})
    asked = policy("src/")
    live = run(tool("write", {}, "ok", checked), asked)
    replay = run(tool("write", {}, "ok"), asked, run="run_b", origin={"mode": "exact", "run": "run_a"})
    assert both_ways(live, replay) == []
    assert both_ways(live, run(tool("write", {}, "ok"), asked, run="run_b")) == [("removed", None, "fs.write")]
    again = run(tool("write", {}, "ok"), run="run_b", origin={"mode": "exact", "run": "run_a"})
    assert both_ways(live, again) == [("removed", None, "fs.write")]


def test_what_the_agent_itself_asks_is_compared_whatever_the_policy_and_of_another_one_the_decision_alone() -> None:
    def asked(rule: str, decision: str = "allow", **policy: Any) -> Part:
        about = {"capability": "repo.write", "resource": "a.py", "decision": decision, "rule": rule}
        return Part("policy.checked", {**about, **policy})

    ruled = {"by": "policy", "asked": "agent"}
    bare = run(asked("none"))
    ones = [run(asked(f"rule {of}", **ruled), run=f"run_{of}", policy={"digest": of}) for of in "pq"]
    for left, right in ((bare, ones[0]), ones):
        assert both_ways(left, right) == []
    assert both_ways(ones[0], run(run="run_b")) == [("removed", None, "repo.write")]
    assert both_ways(ones[0], run(run="run_b", policy={"digest": "q"})) == [("removed", None, "repo.write")]
    denied = run(asked("rule q", "deny", **ruled), run="run_b", policy={"digest": "q"})
    assert both_ways(ones[0], denied) == [("changed", "output_changed", "repo.write")]
    assert [change.path for change in diffed(ones[0], denied).deviations[0].changes] == ["/decision", "/rule"]
    other_rule = run(asked("rule r", **ruled), run="run_b", policy={"digest": "p"})
    assert both_ways(ones[0], other_rule) == [("changed", "output_changed", "repo.write")]  # of the same policy


def test_what_was_imported_into_one_run_alone_is_no_difference() -> None:
    def reported(events: list[Event], *results: str) -> list[Event]:
        last = events[-1]
        return events + [
            msgspec.structs.replace(last, seq=last.seq + at, kind="ci.reported", span=None, data={"job": "test", "result": one})
            for at, one in enumerate(results, 1)
        ]  # fmt: skip

    bare, other = run(tool("a")), run(tool("a"), run="run_b")
    assert both_ways(reported(bare, "success"), other) == []
    assert both_ways(reported(bare, "success"), reported(other, "success")) == []
    assert [one[0] for one in both_ways(reported(bare, "success"), reported(other, "failure"))] == ["changed"]
    within = run(tool("a"), Part("ci.reported", {"job": "test", "result": "success"}), run="run_b")
    assert [one[0] for one in both_ways(bare, within)] == ["added"]


def test_what_is_inside_of_a_tool_that_a_replay_did_not_run_is_no_difference() -> None:
    ran = tool("think", {}, "so", step("inner", note("a"), tool("ask", {}, "b")))
    live = run(tool("first"), ran, ran, tool("last"))
    answered = tool("think", {}, "so")
    exact = run(tool("first"), answered, answered, tool("last"), run="run_b", origin={"mode": "exact", "run": "run_a"})
    assert both_ways(live, exact) == []
    assert diffed(live, exact).metrics["tool_calls"] == {"left": 6, "right": 4, "delta": -2}
    fork = run(tool("first"), answered, ran, run="run_b", origin={"mode": "fork", "run": "run_a"})
    assert both_ways(live, fork) == [("removed", None, "last")]
    assert len(both_ways(live, run(tool("first"), answered, answered, tool("last"), run="run_b"))) == 6


def test_what_a_policy_decided_is_the_same_in_another_folder_and_after_another_time() -> None:
    def ran(folder: str, name: str, rule: str) -> list[Event]:
        about = {"by": "policy", "decision": "deny", "capability": "fs.write", "resource": f"{folder}/out.txt"}
        late = {"rule": rule, "reason": f"1.{len(folder)} of 1 seconds are used"}
        return run(Part("policy.checked", {**about, **late}), run=name, entrypoint={"cwd": folder})

    assert both_ways(ran("/home/ada", "run_a", "limit"), ran("/home/ci/work", "run_b", "limit")) == []
    other = ran("/home/ci/work", "run_b", "default")
    assert both_ways(ran("/home/ada", "run_a", "limit"), other) == [("changed", "output_changed", "fs.write")]
