from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.views.diff.stories import (
    Part,
    Together,
    Writer,
    diffed,
    effect,
    model,
    note,
    policy,
    recorded,
    run,
    step,
    together,
    told,
    tool,
    unfinished,
)  # fmt: skip

from playhead.errors import MissingContent, NotComparable, UsageError
from playhead.event.envelope import Event
from playhead.views.diff.comparison import compare
from playhead.views.diff.measures import costs_told, tokens_told
from playhead.views.diff.nodes import Node
from playhead.views.diff.saying import outcome_of
from playhead.views.diff.source import Recorded

SIBLINGS = [tool("search", {"q": number}, f"answer {number}") for number in range(50)]
GENERIC = [step("span", number=number, output=f"answer {number}") for number in range(50)]
SAME = [tool("poll", {}, "waiting") for _ in range(50)]
INSERTED = {
    "calls": (SIBLINGS, tool("search", {"q": "new"}, "other")),
    "generic spans": (GENERIC, step("span", number=99, output="other")),
    "identical calls": (SAME, tool("poll", {}, "waiting")),
    "identical calls and another answer": (SAME, tool("poll", {}, "ready")),
    "a step with calls in it": (SIBLINGS, step("extra")),
}


def both_ways(left: list[Event], right: list[Event], **options: Any) -> list[tuple[str, str | None, str]]:
    """Compare, check that the other way round mirrors it, and return what differs."""
    options = {"durations": True, **options}
    found, mirror = diffed(left, right, **options), diffed(right, left, **options)
    turned = {"added": "removed", "removed": "added"}
    assert [
        (turned.get(one.type, one.type), one.cause, one.right_seq, one.left_seq, one.deviation_point)
        for one in mirror.deviations
    ] == [(one.type, one.cause, one.left_seq, one.right_seq, one.deviation_point) for one in found.deviations]
    for one, other in zip(found.deviations, mirror.deviations, strict=True):
        assert [change.mirrored() for change in other.changes] == one.changes
    assert [change.mirrored() for change in mirror.config] == found.config
    times = ("left_us", "right_us", "left_seq", "right_seq", "unknown")  # path and name are those of the left one
    assert [turned_round(one, times) for one in mirror.durations or ()] == [
        {name: one[name] for name in times} for one in found.durations or ()
    ]
    assert turned_round(mirror.failures) == found.failures
    for name, one in found.metrics.items():
        assert {side: mirror.metrics[name][side] for side in ("left", "right")} == turned_round(one, ("left", "right"))
    assert (mirror.output_differs, mirror.identical) == (found.output_differs, found.identical)
    return told(found)


def turned_round(one: dict[str, Any], names: Any = None) -> dict[str, Any]:
    """Return something that has fields of both sides with the sides exchanged."""
    sides = {"left": "right", "right": "left", "left_us": "right_us", "right_us": "left_us",
             "left_seq": "right_seq", "right_seq": "left_seq"}  # fmt: skip
    return {name: one[sides.get(name, name)] for name in names or one}


@pytest.mark.parametrize("name", INSERTED)
@pytest.mark.parametrize("at", [0, 1, 25, 49, 50])
@pytest.mark.parametrize("nested", [False, True])
def test_one_insertion_is_one_deviation_wherever_it_is(name: str, at: int, nested: bool) -> None:
    siblings, new = INSERTED[name]
    longer = [*siblings[:at], new, *siblings[at:]]
    bodies = [[step("outer", step("inner", *body), tool("after"))] if nested else body for body in (siblings, longer)]
    left, right = run(*bodies[0]), run(*bodies[1], run="run_b")
    assert both_ways(left, right) == [("added", None, new.data["name"])]
    assert both_ways(right, left) == [("removed", None, new.data["name"])]


@pytest.mark.parametrize("siblings", [SIBLINGS, GENERIC])
@pytest.mark.parametrize(("was", "now"), [(10, 40), (40, 10), (0, 49), (20, 21)])
@pytest.mark.parametrize("nested", [False, True])
def test_one_that_changed_its_place_is_one_move(siblings: list[Part], was: int, now: int, nested: bool) -> None:
    other = [*siblings[:was], *siblings[was + 1 :]]
    other.insert(now, siblings[was])
    bodies = [[step("outer", *body)] if nested else body for body in (siblings, other)]
    found = both_ways(run(*bodies[0]), run(*bodies[1], run="run_b"))
    assert [(type, cause) for type, cause, _ in found] == [("moved", None)]


def test_a_call_that_moved_into_another_step_is_one_move() -> None:
    call = tool("search", {"q": 1}, "found")
    left = run(step("plan", call, tool("think")), step("act", tool("write")))
    right = run(step("plan", tool("think")), step("act", call, tool("write")), run="run_b")
    assert both_ways(left, right) == [("moved", None, "search")]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("twice", [False, True])
def test_what_is_in_a_call_that_moved_goes_with_it(first: bool, twice: bool) -> None:
    x, y, z = tool("x", 1, "found"), tool("y", 2, "y"), tool("z", 3, "z")
    was, now = ((x, y), (x, z)) if first else ((y, x), (z, x))
    beside = [x] if twice else []
    left = run(*beside, step("a", tool("t", 1, "t", *was)), step("b", tool("k", 9)))
    right = run(step("a"), step("b", tool("k", 9), tool("t", 1, "t", *now)), run="run_b")
    assert sorted((type, name) for type, _, name in both_ways(left, right)) == sorted(
        [("moved", "t"), ("added", "z"), ("removed", "y"), *[("removed", "x")] * twice]
    )


@pytest.mark.parametrize("siblings", [SIBLINGS[:6], GENERIC[:6]])
def test_calls_that_overlapped_and_ended_in_another_order_do_not_deviate(siblings: list[Part]) -> None:
    left = run(together(*siblings, ends=range(6)))
    right = run(together(*reversed(siblings), ends=[3, 1, 5, 0, 2, 4]), run="run_b")
    assert both_ways(left, right) == []


@pytest.mark.parametrize("same", [False, True])
@given(st.permutations(range(5)), st.permutations(range(5)), st.integers(0, 4))
@settings(max_examples=60)
def test_of_calls_that_overlapped_the_one_that_asked_something_else_is_one_change(
    same: bool, begun: list[int], ended: list[int], changed: int
) -> None:
    calls = [step("span", number=number // 2 if same else number, output=number // 2) for number in range(5)]
    other = list(calls)
    other[changed] = step("span", number=9, output=changed // 2)
    left, right = (
        run(together(*calls), tool("end")),
        run(together(*(other[at] for at in begun), ends=ended), tool("end"), run="run_b"),
    )
    assert both_ways(left, right) == [("changed", "input_changed", "span")]


def test_lanes_that_raced_do_not_deviate_even_where_their_calls_did_not_overlap() -> None:
    one, other = (tool(name, {}, name).on(lane) for name, lane in (("a", "0.1"), ("b", "0.2")))
    assert both_ways(run(one, other), run(other, one, run="run_b")) == []


def test_lanes_that_only_have_other_numbers_since_one_came_or_went_raced_too() -> None:
    tasks = [step("task", tool("get", number), number=number) for number in range(12)]
    left = [task.on(f"0.{number}") for number, task in enumerate(tasks)]
    right = [task.on(f"0.{number}") for number, task in enumerate(tasks[1:])]
    for ones in (left, left[::-1]):
        found = both_ways(run(*ones), run(*right, run="run_b"))
        assert found == [("removed", None, "task"), ("removed", "follows", "get")]
    swapped = [tasks[1].on("0.0"), tasks[0].on("0.1"), *left[2:]]
    assert both_ways(run(*left), run(*swapped, run="run_b")) == [("moved", None, "task")]


def test_calls_of_a_lane_in_another_order_deviate_once() -> None:
    one, other = (tool(name, {}, name).on("0.1") for name in "ab")
    assert [type for type, _, _ in both_ways(run(one, other), run(other, one, run="run_b"))] == ["moved"]


@pytest.mark.parametrize("act", [tool("write", {"path": "a"}), effect("a")])
def test_a_policy_check_that_comes_after_the_effect_is_one_deviation(act: Part) -> None:
    left, right = run(policy("a"), act, note("end")), run(act, policy("a"), note("end"), run="run_b")
    assert both_ways(left, right) == [("moved", None, "fs.write")]
    assert diffed(left, right).deviations[0].why == "order"


def test_the_mode_of_a_policy_is_of_the_setting_and_its_decisions_are_compared() -> None:
    def checked(mode: str, decision: str = "deny") -> Part:
        found = policy("a", decision)
        return replace(found, data={**found.data, "mode": mode})

    modes = [{"digest": "d", "mode": mode} for mode in ("observe", "enforce")]
    left, right = run(checked("observe"), policy=modes[0]), run(checked("enforce"), policy=modes[1], run="run_b")
    assert both_ways(left, right) == []
    assert [change.path for change in diffed(left, right).config] == ["/policy/mode"]
    right = run(checked("enforce", "allow"), policy=modes[1], run="run_b")
    assert both_ways(left, right) == [("changed", "output_changed", "fs.write")]


def test_a_run_that_asked_no_model_or_was_refused_by_all_cost_nothing() -> None:
    failed, silent = (
        Part("model.invoked", {"model": "gpt-5", "request": {}}, {"status": status}) for status in ("error", "ok")
    )
    found = diffed(run(), run(failed, run="run_b"))
    assert found.metrics["cost"] == {"left": 0.0, "right": 0.0, "delta": 0.0}
    found = diffed(run(failed), run(silent, unfinished(failed), run="run_b"))
    assert found.metrics["cost"] == {"left": 0.0, "right": None, "delta": None}


def test_another_status_is_one_deviation() -> None:
    left = run(tool("a"), tool("b", {}, "fine"), tool("c"))
    right = run(tool("a"), tool("b", {}, "broke", status="error"), tool("c"), run="run_b")
    assert both_ways(left, right) == [("changed", "status_changed", "b")]
    assert {change.path for change in diffed(left, right).deviations[0].changes} == {"/status", "/output", "/error"}


def test_a_call_without_an_end_is_another_status() -> None:
    left, right = run(tool("a"), tool("b")), run(tool("a"), unfinished(tool("b")), finished=False, run="run_b")
    assert both_ways(left, right) == [("changed", "status_changed", "b"), ("changed", "follows", "agent")]


def test_another_answer_to_the_same_question_is_the_origin_and_what_it_led_to_follows() -> None:
    talk = [{"role": "user", "content": "hi"}]
    more = [*talk, {"role": "assistant", "content": "A"}]
    left = run(step("turn", model(talk, "A"), tool("search", {"q": "A"}, "x")), model(more, "end"), output="end")
    other = [*talk, {"role": "assistant", "content": "B"}]
    right = run(
        step("turn", model(talk, "B"), tool("search", {"q": "B"}, "y"), tool("extra")), model(other, "end"),
        output="other", run="run_b",
    )  # fmt: skip
    found = diffed(left, right)
    both_ways(left, right)
    assert found.headline is found.first
    assert found.headline is not None
    assert (found.headline.cause, found.headline.left_seq) == ("output_changed", 2)
    assert [one.cause for one in found.deviations[1:]] == ["follows"] * (len(found.deviations) - 1)
    assert [one.deviation_point for one in found.deviations] == [True] + [False] * (len(found.deviations) - 1)
    assert ("added", "follows", "extra") in told(found)
    assert found.output_differs is True


def test_each_branch_has_its_own_deviation_point() -> None:
    def branches(one: str, other: str) -> list[Any]:
        calls = [tool("a", {}, one).on("0.1"), tool("b", {}, other).on("0.2")]
        more = [tool("a2", {"of": one}).on("0.1"), tool("b2", {"of": other}).on("0.2")]
        return [together(*calls), *more]

    found = diffed(run(*branches("1", "2")), run(*branches("3", "4"), run="run_b"))
    assert [(one.name, one.cause, one.deviation_point) for one in found.deviations] == [
        ("a", "output_changed", True), ("b", "output_changed", True), ("a2", "follows", False), ("b2", "follows", False),
    ]  # fmt: skip


def test_what_was_cancelled_since_a_task_beside_it_failed_follows() -> None:
    def body(*statuses: str) -> list[Any]:
        calls = [tool("fetch", {"n": number}, "x", status=status) for number, status in enumerate(statuses)]
        return [together(*(call.on(f"0.{number}") for number, call in enumerate(calls)))]

    left, right = run(*body("ok", "ok", "ok")), run(*body("error", "cancelled", "cancelled"), run="run_b")
    assert [one[1] for one in both_ways(left, right)] == ["status_changed", "follows", "follows"]
    # The first that failed is in its own lane, the second one is not.
    lanes = ("0.1", "0.2", "0.1")
    ones = [[tool("fetch", {"n": number}, "x", status=status).on(lane) for number, (status, lane) in
             enumerate(zip(statuses, lanes, strict=True))]
            for statuses in (("ok", "ok", "ok"), ("error", "error", "cancelled"))]  # fmt: skip
    left, right = run(together(*ones[0])), run(together(*ones[1]), run="run_b")
    assert [one[1] for one in both_ways(left, right)] == ["status_changed", "status_changed", "follows"]
    left = run(*body("ok", "ok", "ok"))
    # Nobody failed before it: it was cancelled for a reason of its own.
    right = run(*body("cancelled", "ok", "error"), run="run_b")
    assert [one[1] for one in both_ways(left, right)] == ["status_changed", "status_changed"]


@pytest.mark.parametrize("older_fails", [False, True])
@pytest.mark.parametrize("in_steps", [True, False])
def test_what_is_missing_in_what_was_cancelled_since_a_task_beside_it_failed_follows(
    in_steps: bool, older_fails: bool
) -> None:
    def task(number: int, *inside: Part, status: str = "ok") -> list[Part]:
        if not in_steps:
            return [one.on(f"0.{number}") for one in inside]
        whole = step(f"s{number}", *(one.on(f"0.{number}") for one in inside))
        return [replace(whole, closing={"status": status}).on(f"0.{number}")]

    def ended(*outcomes: str) -> list[Part]:
        values = [[f"0.{2 - at}", 1_000 + at, outcome] for at, outcome in enumerate(outcomes)]
        return [] if in_steps else [Part("ambient.read", {"reads": [{"of": "lane.ended", "by": "", "values": values}]})]

    def all_of(*tasks: list[Part], outcomes: tuple[str, ...]) -> Part:
        parts = [part for task in tasks for part in task]  # where there are steps, the second one is over first
        return step("all", *([Together(tuple(parts), (1, 0))] if in_steps else parts), *ended(*outcomes))

    one, two = tool("get", {"n": 1}, "1"), tool("get", {"n": 2}, "2")
    broken = task(2, tool("get", {"n": 2}, "bad row", status="error"), status="error")
    fine = all_of(task(1, one), task(2, two), outcomes=("ok", "ok"))
    failed = all_of(task(1, status="cancelled"), broken, outcomes=("error", "cancelled"))
    names = ("run_b", "run_a") if older_fails else ("run_a", "run_b")
    left, right = run(fine, run=names[0]), run(failed, run=names[1])
    both_ways(left, right)
    found = diffed(left, right)
    kept = [(one.type, one.cause) for one in found.deviations if one.type != "changed"]
    assert kept == [("removed", "follows")]
    assert found.headline is found.first
    assert found.headline is not None
    assert (found.headline.cause, found.headline.left_seq) == ("status_changed", 6 if in_steps else 4)
    assert found.headline.deviation_point
    # Where nobody failed beside it, what is missing came about for another reason.
    alone = all_of(task(1, status="cancelled"), task(2, two), outcomes=("ok", "cancelled"))
    found = diffed(left, run(alone, run=names[1]))
    assert ("removed", "follows") not in [(one.type, one.cause) for one in found.deviations]


def test_what_is_missing_deep_in_what_was_cancelled_is_found_without_climbing_out_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slot: Any = Node.parent
    looks = 0

    def parent(node: Node) -> Any:
        nonlocal looks
        looks += 1
        return slot.__get__(node)

    def looked(deep: int) -> int:
        nonlocal looks
        inner, bare = note("end"), note("end")
        for number in range(deep):
            inner, bare = step("in", tool("get", number), inner), step("in", bare)
        values = [["0.2", 1, "error"], ["0.1", 2, "cancelled"]]
        ended = Part("ambient.read", {"reads": [{"of": "lane.ended", "by": "", "values": values}]})
        left = run(tool("other").on("0.2"), inner.on("0.1"))
        right = run(tool("other", None, "e", status="error").on("0.2"), bare.on("0.1"), ended, run="run_b")
        looks = 0
        assert [one.cause for one in diffed(left, right).deviations if one.type == "removed"] == ["follows"] * deep
        return looks

    monkeypatch.setattr(Node, "parent", property(parent, slot.__set__))
    assert looked(120) < 3 * looked(60)


def test_why_a_run_failed_is_said_where_the_other_one_did_not_fail_so() -> None:
    trace = 'Traceback (most recent call last):\n  File "/a/agent.py", line 4, in read\n    x\nKeyError: 1\n'
    out = [Part("output.written", {"stream": "stderr", "text": text}) for text in (trace[:40], trace[40:])]

    def ended(events: list[Event], error: dict[str, Any]) -> list[Event]:
        return [*events[:-1], msgspec.structs.replace(events[-1], data={"status": "error", "error": error})]

    by_program = {"type": "ProgramFailed", "message": "the program ended with exit code 1"}
    frames = [
        {"file": "/a/agent.py", "line": 4, "name": "read"},
        {"file": "/b/site-packages/x.py", "line": 1, "name": "y"},
    ]
    own = {"type": "KeyError", "message": "1", "frames": frames}
    told = {"error": "KeyError: 1", "where": "agent.py:4 in read", "causes": [], "asked": []}
    left = run(tool("a"))
    for right in (ended(run(tool("a"), *out, run="run_b"), by_program), ended(run(tool("a"), run="run_b"), own)):
        assert diffed(left, right).failures == {"left": None, "right": told}
        assert diffed(right, left).failures == {"left": told, "right": None}
    assert diffed(left, ended(run(run="run_b"), by_program)).failures["right"] == {
        "error": "ProgramFailed: the program ended with exit code 1", "where": None, "causes": [], "asked": [],
    }  # fmt: skip


TRACE = 'Traceback (most recent call last):\n  File "/a/agent.py", line 4, in read\n    x\n'


def test_runs_that_failed_for_another_reason_behind_the_same_error_did_not_fail_alike() -> None:
    def ended(name: str, *behind: str, line: int = 1, grouped: bool = True) -> list[Event]:
        inner = [{"type": one, "message": "x", "frames": [{"file": "a.py", "line": line}]} for one in behind]
        reason: dict[str, Any] = {"errors": inner} if grouped else {"cause": inner[0]}
        events = run(tool("a"), run=name)
        data = {"status": "error", "error": {"type": "E", "message": "could not", **reason}}
        return [*events[:-1], msgspec.structs.replace(events[-1], data=data)]

    for grouped in (True, False):
        left, right = ended("run_a", "KeyError", grouped=grouped), ended("run_b", "ValueError", grouped=grouped)
        for ones in ((left, right), (right, left)):
            found = diffed(*ones)
            assert found.output_differs is True
            path = "/error/errors/0/type" if grouped else "/error/cause/type"
            assert [change.path for change in found.deviations[0].changes] == [path]
            (tone, said, _) = outcome_of(found.identical, found.output_differs, found.failures, True)
            assert (tone, said) == ("bad", "both runs failed, each in its own way")
    printed = (
        f"{TRACE}{one}: x\n\nDuring handling of the above exception, another exception occurred:\n\n{TRACE}E: could not\n"
        for one in ("KeyError", "ValueError")
    )
    by_program = {"status": "error", "error": {"type": "ProgramFailed", "message": "exit code 1"}}
    programs = []
    for name, stderr in zip(("run_a", "run_b"), printed, strict=True):
        events = run(Part("output.written", {"stream": "stderr", "text": stderr}), run=name)
        programs.append([*events[:-1], msgspec.structs.replace(events[-1], data=by_program)])
    found = diffed(*programs)
    assert [failed and failed["causes"] for failed in found.failures.values()] == [
        ["caused by KeyError: x"], ["caused by ValueError: x"],
    ]  # fmt: skip
    assert outcome_of(False, found.output_differs, found.failures, True)[1] == "both runs failed, each in its own way"
    # Where it was raised, and in which order a group has its errors, is no difference.
    moved = diffed(ended("run_a", "KeyError", grouped=False), ended("run_b", "KeyError", line=2, grouped=False))
    assert outcome_of(False, moved.output_differs, moved.failures, True)[1] == "both runs failed alike"
    assert not diffed(ended("run_a", "KeyError", "ValueError"), ended("run_b", "ValueError", "KeyError", line=2))


def test_an_error_that_is_written_as_a_reference_is_compared_with_all_that_it_says() -> None:
    def ended(name: str, message: str) -> Recorded:
        failed = replace(tool("a"), closing={"status": "error", "error": {"$same": "1#/error"}})
        found = recorded(run(failed, run=name))
        return replace(found, value=lambda value: {"type": "E", "message": message} if "$same" in value else value)

    assert not compare(ended("run_a", "late"), ended("run_b", "late"))
    assert compare(ended("run_a", "late"), ended("run_b", "early"))


def test_of_a_run_that_failed_it_is_said_which_tools_were_asked_for_in_vain() -> None:
    calls = [{"function": {"name": name, "arguments": '{"n": 1}'}} for name in ("read", "read", "save")]
    asks = model({}, {"choices": [{"message": {"role": "assistant", "tool_calls": calls}}]})
    body = [model({"first": 1}, "calls nothing"), asks, tool("read", {"n": 1})]
    failed = run(*body, run="run_b")
    failed[-1] = msgspec.structs.replace(failed[-1], data={"status": "error", "error": {"type": "E", "message": "m"}})
    found = diffed(run(*body), failed).failures
    assert found["left"] is None
    assert found["right"] is not None
    assert found["right"]["asked"] == ["read(n=1)", "save(n=1)"]


def test_a_renamed_step_is_recognised() -> None:
    inside = (tool("search", {"q": 1}, "found"), note("looked"))
    left, right = run(step("plan", *inside), tool("end")), run(step("planning", *inside), tool("end"), run="run_b")
    assert both_ways(left, right) == [("moved", None, "plan")]
    (one,) = diffed(left, right).deviations
    assert (one.why, [(change.path, change.left, change.right) for change in one.changes]) == (
        "name", [("/name", "plan", "planning")],
    )  # fmt: skip


def test_a_renamed_tool_is_recognised() -> None:
    left = run(tool("read", {"path": "a"}, "text of a"), tool("end"))
    right = run(tool("read_file", {"path": "a"}, "text of a"), tool("end"), run="run_b")
    assert both_ways(left, right) == [("moved", None, "read")]


def test_a_wrapper_that_was_put_around_is_one_addition() -> None:
    calls = [tool("search", {"q": number}, f"{number}") for number in range(3)]
    left, right = run(note("a"), *calls, note("b")), run(note("a"), step("retry", *calls), note("b"), run="run_b")
    assert both_ways(left, right) == [("added", None, "retry")] + [("moved", "follows", "search")] * 3
    assert both_ways(right, left) == [("removed", None, "retry")] + [("moved", "follows", "search")] * 3


def test_spans_put_around_each_other_and_renamed_ones_inside_of_renamed_ones_are_recognised() -> None:
    calls = [tool("search", {"q": number}, f"{number}") for number in range(2)]
    left = run(note("a"), *calls, note("b"))
    right = run(note("a"), step("retry", step("try", *calls)), note("b"), run="run_b")
    wrapped = [("added", None, "retry"), ("added", "follows", "try")] + [("moved", "follows", "search")] * 2
    assert both_ways(left, right) == wrapped
    left = run(step("plan", step("look", *calls)))
    right = run(step("planning", step("looking", *calls)), run="run_b")
    assert both_ways(left, right) == [("moved", None, "plan"), ("moved", None, "look")]


def test_a_renamed_tool_is_known_by_its_arguments_where_it_gives_nothing_back() -> None:
    def silent(name: str, **arguments: Any) -> Part:
        return Part("tool.called", {"name": name, "input": arguments}, {"status": "ok"})

    mail = {"to": "bob", "text": "hello"}
    left, right = run(silent("send_mail", **mail)), run(silent("mail_send", **mail), run="run_b")
    assert both_ways(left, right) == [("moved", None, "send_mail")]
    left, right = run(silent("lock")), run(silent("unlock"), run="run_b")
    assert sorted(both_ways(left, right)) == [("added", None, "unlock"), ("removed", None, "lock")]


@pytest.mark.parametrize(("past", "inside"), [(2, 8), (5, 20), (20, 100)])
def test_a_large_step_that_moved_past_small_ones_is_one_move(past: int, inside: int) -> None:
    calls = [tool("search", {"q": number}, f"{number}") for number in range(past)]
    review = step("review", *(tool("look", {"at": number}) for number in range(inside)))
    assert both_ways(run(review, *calls), run(*calls, review, run="run_b")) == [("moved", None, "review")]
    assert both_ways(run(review, calls[0]), run(calls[0], review, run="run_b")) == [("moved", None, "search")]


def wrote(text: str, stream: str = "stdout") -> Part:
    return Part("output.written", {"stream": stream, "text": text})


def test_what_was_printed_before_anything_differed_is_an_origin_in_its_place() -> None:
    def body(mode: str, price: int) -> tuple[Part, ...]:
        return wrote(f"mode {mode}\n"), tool("price", {"of": "tea"}, price)

    left, right = run(*body("a", 2)), run(*body("b", 3), run="run_b")
    expected = [("changed", "output_changed", "stdout"), ("changed", "output_changed", "price")]
    assert both_ways(left, right) == expected
    assert told(diffed(right, left)) == expected
    after = run(*reversed(body("a", 2))), run(*reversed(body("b", 3)), run="run_b")
    assert both_ways(*after) == [("changed", "output_changed", "price"), ("changed", "follows", "stdout")]
    more = run(tool("price", {"of": "tea"}, 2)), run(*body("b", 3), run="run_b")
    assert both_ways(*more) == expected


def test_a_run_that_was_reopened_and_not_ended_again_is_open() -> None:
    reopened = Part("run.reopened", {"why": "more came"})
    left = run(tool("look"))
    right = run(tool("look"), run="run_b")
    writer = Writer("run_b", events=right, spans=9)
    writer.write(reopened, "0", "0")
    writer.write(tool("wipe", {}, "failed", status="error"), "0", "0")
    found = diffed(left, right)
    assert told(found) == [("added", None, "wipe"), ("changed", "follows", "agent")]
    assert found.output_differs is None
    writer.emit("run.finished", {"status": "ok", "output": "done"}, "0", None, "0")
    assert diffed(left, right).output_differs is False


def conversation(ids: str) -> list[Part]:
    """Make a loop of a model and a tool, with the ids that a provider gave to the calls of this run."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    parts: list[Part] = []
    for number in range(3):
        id, asks = f"call_{ids}{number}", {"name": "f", "arguments": f'{{"i": {number}}}'}
        said = {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": asks}]}
        answer = {"id": f"cmpl-{ids}{number}", "object": "chat.completion", "choices": [{"message": said}]}
        parts += [model({"messages": list(messages)}, answer), tool("f", {"i": number}, number)]
        messages += [said, {"role": "tool", "tool_call_id": id, "content": str(number)}]
    return parts


def test_new_ids_of_a_provider_do_not_hide_a_renaming_or_a_wrapper() -> None:
    left, right = run(step("work", *conversation("a"))), run(step("job", *conversation("b")), run="run_b")
    assert both_ways(left, right) == [("moved", None, "work")]
    left, body = run(*conversation("a")), conversation("b")
    one = run(*body[:2], step("w", body[2]), *body[3:], run="run_b")
    assert both_ways(left, one) == [("added", None, "w"), ("moved", "follows", "gpt-5")]
    some = run(*body[:2], step("w", *body[2:]), run="run_b")
    assert [one for one in both_ways(left, some) if one[1] != "follows"] == [("added", None, "w")]


A_FEW = [tool(f"tool {at}", at, at) for at in range(6)]


@pytest.mark.parametrize("around", [False, True])
def test_another_answer_is_an_origin_too_where_a_span_was_put_around_or_taken_away(around: bool) -> None:
    bare = run(*A_FEW)
    other = [*A_FEW[:3], tool(A_FEW[3].data["name"], A_FEW[3].data["input"], "other"), *A_FEW[4:]]
    inside = run(*other[:2], step("round", *other[2:5]), *other[5:], run="run_b")
    found = diffed(bare, inside) if around else diffed(inside, bare)
    assert [(one.cause, one.name) for one in found.deviations if one.cause != "follows"] == [
        (None, "round"),
        ("output_changed", A_FEW[3].data["name"]),
    ]
    assert [one.name for one in found.deviations if one.deviation_point] == ["round"]


@pytest.mark.parametrize("ids", [("run_a", "run_b"), ("run_b", "run_a")])
def test_what_moved_out_of_a_span_does_not_explain_that_the_span_is_gone(ids: tuple[str, str]) -> None:
    one, two, three, four = A_FEW[:4]
    left = run(one, two, step("round", three, four), run=ids[0])
    found = diffed(left, run(three, one, two, four, run=ids[1]))
    assert [(change.type, change.cause) for change in found.deviations if change.name == "round"] == [("removed", None)]
    assert found.headline is not None
    assert found.headline.name == "round"


def test_a_renamed_step_is_recognised_where_something_in_it_was_answered_otherwise() -> None:
    other = [*A_FEW[:3], tool(A_FEW[3].data["name"], A_FEW[3].data["input"], "other"), *A_FEW[4:]]
    found = diffed(run(step("plan", *A_FEW)), run(step("think", *other), run="run_b"))
    assert told(found) == [("moved", None, "plan"), ("changed", "output_changed", A_FEW[3].data["name"])]
    assert found.headline is not None
    assert found.headline.cause == "output_changed"


def test_steps_of_other_names_that_have_little_in_common_are_two() -> None:
    found = diffed(run(step("plan", *A_FEW[:4])), run(step("think", A_FEW[0], *A_FEW[4:]), run="run_b"))
    assert {("removed", "plan"), ("added", "think")} <= {(one.type, one.name) for one in found.deviations}


def test_another_name_explains_nothing_that_comes_after_it() -> None:
    left = run(step("plan", A_FEW[0]), *A_FEW[1:])
    right = run(step("think", A_FEW[0]), *A_FEW[1:4], tool("new"), *A_FEW[4:], run="run_b")
    found = diffed(left, right)
    assert told(found) == [("moved", None, "plan"), ("added", None, "new")]
    assert found.headline is not None
    assert found.headline.name == "new"
    assert [one.deviation_point for one in found.deviations] == [True, False]


def test_a_span_that_ended_before_it_began_by_the_clock_of_another_follows_not_from_itself() -> None:
    def imported(*parts: Any, run_id: str = "run_a") -> list[Event]:
        events = run(*parts, run=run_id, external_id="x")
        return [
            msgspec.structs.replace(one, elapsed_us=0 if one.kind == "step.finished" else one.elapsed_us)
            for one in events
        ]

    found = diffed(imported(step("one")), imported(step("one"), step("two"), run_id="run_b"))
    assert told(found) == [("added", None, "two")]


def test_a_step_that_was_added_takes_what_is_in_it_along() -> None:
    left = run(tool("a"), tool("b"))
    right = run(tool("a"), step("new", tool("x"), step("deep", tool("y"))), tool("b"), run="run_b")
    found = diffed(left, right)
    both_ways(left, right)
    assert told(found) == [
        ("added", None, "new"),
        ("added", "follows", "x"),
        ("added", "follows", "deep"),
        ("added", "follows", "y"),
    ]


def test_a_retry_that_was_not_needed_is_one_removal() -> None:
    failed, fine = tool("fetch", {}, "timeout", status="error"), tool("fetch", {}, "page")
    assert both_ways(run(failed, fine, tool("end")), run(fine, tool("end"), run="run_b")) == [
        ("removed", None, "fetch")
    ]


LOOP = [step("attempt", tool("ask", {}, "same"), tool("search", {"q": number}, f"{number}")) for number in range(50)]


@pytest.mark.parametrize("at", [0, 1, 25, 49, 50])
def test_a_round_that_was_put_into_a_loop_is_one_addition_and_those_after_it_keep_their_mates(at: int) -> None:
    new = step("attempt", tool("ask", {}, "same"), tool("search", {"q": "new"}, "new"))
    found = both_ways(run(*LOOP), run(*LOOP[:at], new, *LOOP[at:], run="run_b"))
    assert found == [("added", None, "attempt"), ("added", "follows", "ask"), ("added", "follows", "search")]


@pytest.mark.parametrize("changed", [24, 25])
def test_a_round_that_changed_beside_a_new_one_is_paired_by_what_is_in_it(changed: int) -> None:
    new = step("attempt", tool("fetch", {"q": "new"}, "new"))
    other = [step("attempt", tool("ask", {}, "same"), tool("search", {"q": changed}, "other"))]
    rounds = [*LOOP[:changed], *other, *LOOP[changed + 1 :]]
    found = both_ways(run(*LOOP), run(*rounds[:25], new, *rounds[25:], run="run_b"))
    assert sorted(one[0::2] for one in found) == [("added", "attempt"), ("added", "fetch"), ("changed", "search")]


def test_repeated_questions_with_other_answers_do_not_cross() -> None:
    left = run(*(tool("poll", {}, answer) for answer in "abcd"))
    right = run(*(tool("poll", {}, answer) for answer in "bcde"), run="run_b")
    assert both_ways(left, right) == [("removed", None, "poll"), ("added", "follows", "poll")]


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=60)
def test_a_wrapper_is_the_only_origin_even_among_calls_that_ask_the_same(chance: Any, loops: bool) -> None:
    def body(depth: int) -> list[Part]:
        return [
            step("loop" if loops else f"step {chance.randrange(10**9)}", *body(depth - 1))
            if depth and chance.random() < 0.45
            else tool(chance.choice("abc"), {"q": chance.randrange(4)}, chance.randrange(2))
            for _ in range(chance.randint(2, 6))
        ]

    siblings = body(3)
    first = chance.randrange(len(siblings))
    last = chance.randint(first + 1, len(siblings))
    wrapped = [*siblings[:first], step("wrapper", *siblings[first:last]), *siblings[last:]]
    found = both_ways(run(*siblings), run(*wrapped, run="run_b"))
    assert [one for one in found if one[1] != "follows"] == [("added", None, "wrapper")]


@given(st.integers(1, 12), st.data())
@settings(max_examples=100)
def test_one_of_many_identical_calls_that_changed_is_one_change(several: int, data: Any) -> None:
    at = data.draw(st.integers(0, several - 1))
    for other, want in (
        (tool("poll", {}, "ready"), ("changed", "output_changed", "poll")),
        (tool("poll", {}, "refused", status="error"), ("changed", "status_changed", "poll")),
        (tool("poll", {"hard": True}, "waiting"), ("changed", "input_changed", "poll")),
        (tool("ask", {}, "waiting"), ("moved", None, "poll")),
    ):
        left = [tool("poll", {}, "waiting")] * several
        right = [*left[:at], other, *left[at + 1 :]]
        assert both_ways(run(*left), run(*right, run="run_b")) in ([want], [("moved", None, "ask")])


def test_several_of_many_identical_calls_that_changed_are_as_many_changes() -> None:
    left = ["waiting"] * 40
    right = [f"other {at}" if at in (0, 3, 4, 17, 38) else "waiting" for at in range(40)]
    found = both_ways(*(run(*(tool("poll", {}, one) for one in side), run=name)
                        for side, name in ((left, "run_a"), (right, "run_b"))))  # fmt: skip
    assert found == [("changed", "output_changed", "poll")] + [("changed", "output_changed", "poll")] * 4


def interleaved(lanes: list[list[Part]], chance: Any) -> list[Part]:
    """Let lanes run beside each other, as the scheduler likes it."""
    waiting = [[part.on(f"0.{number}") for part in lane] for number, lane in enumerate(lanes, 1)]
    found = []
    while any(waiting):
        found.append(chance.choice([lane for lane in waiting if lane]).pop(0))
    return found


@given(st.randoms(use_true_random=False), st.booleans(), st.data())
@settings(max_examples=150)
def test_lanes_are_compared_each_by_itself_however_they_were_scheduled(chance: Any, alone: bool, data: Any) -> None:
    def call() -> Part:
        return tool("poll", {"q": chance.randrange(10**9) if alone else 0}, chance.choice(["waiting", chance.random()]))

    lanes = [[call() for _ in range(chance.randint(1, 5))] for _ in range(chance.randint(2, 4))]
    assert both_ways(run(*interleaved(lanes, chance)), run(*interleaved(lanes, chance), run="run_b")) == []
    lane = data.draw(st.integers(0, len(lanes) - 1))
    at = data.draw(st.integers(0, len(lanes[lane]) - 1))
    before, after = lanes[lane][:at], lanes[lane][at + 1 :]
    for changed, want in (
        ([*before, tool("poll", {"hard": 1}, lanes[lane][at].closing["output"]), *after], ("changed", "input_changed")),  # type: ignore[index]
        ([*before, tool("poll", lanes[lane][at].data["input"], "other"), *after], ("changed", "output_changed")),
        ([*before, step("wrapper", *(part.on(f"0.{lane + 1}") for part in lanes[lane][at:]))], ("added", None)),
    ):
        other = [*lanes[:lane], changed, *lanes[lane + 1 :]]
        found = both_ways(run(*interleaved(lanes, chance)), run(*interleaved(other, chance), run="run_b"))
        assert [one[:2] for one in found if one[1] != "follows"] == [want]


@pytest.mark.parametrize("name", [f"run_{letter}" for letter in "bcdefgh"])
def test_what_came_one_after_the_other_follows_whichever_run_is_looked_at_first(name: str) -> None:
    left, right = ([tool(f"{side}{at}", {"q": at}, f"{side} {at}") for at in range(5)] for side in "xy")
    found = both_ways(run(*left), run(*right, run=name))
    assert sorted(one[:2] for one in found if one[1] is None) == [("added", None), ("removed", None)]
    assert both_ways(run(), run(*right, run=name))[0][1] is None
    assert {one[1] for one in both_ways(run(), run(*right, run=name))[1:]} == {"follows"}


def artifact(name: str, digest: str) -> Part:
    return Part("artifact.created", {"name": name, "role": "context_pack", "digest": digest, "size": 1})


def test_numbers_that_the_store_gives_to_artifacts_of_one_name_are_no_difference() -> None:
    left = run(artifact("a/pack.json", "1").on("0.1"), artifact("a/pack~2.json", "2").on("0.2"), artifact("x", "3"))
    right = run(
        artifact("a/pack.json", "2").on("0.2"),
        artifact("a/pack~2.json", "1").on("0.1"),
        artifact("x", "3"),
        run="run_b",
    )
    assert both_ways(left, right) == []
    later = run(*(artifact(name, name[:1]) for name in ("b.tar.gz", "b~2.tar.gz", "c")))
    added = run(*(artifact(name, digest) for name, digest in (("b.tar.gz", "0"), ("b~2.tar.gz", "b"), ("b~3.tar.gz", "b"),
                                                              ("c", "c"))), run="run_b")  # fmt: skip
    assert both_ways(later, added) == [("added", None, "b.tar.gz")]


def test_a_round_around_another_round_is_taken_away_or_renamed_and_what_is_in_it_stays() -> None:
    inner = step("round", tool("b", {}, "b"))
    around = step("round", tool("a", {}, "a"), inner, tool("c", {}, "c"))
    left = run(tool("first"), around)
    taken = run(tool("first"), *around.inside, run="run_b")
    assert [one for one in both_ways(left, taken) if one[1] != "follows"] == [("removed", None, "round")]
    assert [one for one in both_ways(taken, left) if one[1] != "follows"] == [("added", None, "round")]
    only = run(step("round", inner), tool("end"))
    renamed = run(step("turn", inner), tool("end"), run="run_b")
    assert both_ways(only, renamed) == [("moved", None, "round")]


def test_lanes_of_lanes_are_compared_however_deep() -> None:
    lanes = ["0" + ".1" * depth for depth in range(1, 1200)]
    left, right = (
        run(*(tool("ask", {"q": at}, answer).on(lane) for at, lane in enumerate(lanes)), run=name)
        for name, answer in (("run_a", "a"), ("run_b", "b"))
    )
    assert len(diffed(left, right).deviations) == len(lanes)


def test_what_a_policy_decided_by_itself_is_no_difference_to_a_replay() -> None:
    checked = Part("policy.checked", {"capability": "fs.write", "resource": "x", "decision": "allow", "by": "policy"})
    asked = policy("src/")
    live = run(tool("write", {}, "ok", checked), asked)
    replay = run(tool("write", {}, "ok"), asked, run="run_b", origin={"mode": "exact", "run": "run_a"})
    assert both_ways(live, replay) == []
    assert both_ways(live, run(tool("write", {}, "ok"), asked, run="run_b")) == [("removed", None, "fs.write")]
    again = run(tool("write", {}, "ok"), run="run_b", origin={"mode": "exact", "run": "run_a"})
    assert both_ways(live, again) == [("removed", None, "fs.write")]


def test_what_another_policy_decided_and_did_not_stop_is_of_the_setting() -> None:
    def checked(resource: str, decision: str = "allow", mode: str = "observe") -> Part:
        about = {"capability": "fs.write", "resource": resource, "decision": decision, "mode": mode}
        return Part("policy.checked", {**about, "by": "policy"})

    bare = run(tool("a"), policy("src/"))
    watched = run(tool("a"), checked("x"), checked("y", "deny"), policy("src/"), run="run_b", policy={"digest": "p"})
    assert both_ways(bare, watched) == []
    body = tool("a"), checked("x"), policy("src/"), checked("y", "deny", "enforce")
    stopped = run(*body, run="run_b", policy={"digest": "q"})
    found = diffed(bare, stopped)
    assert found.headline is not None
    assert (found.headline.type, found.headline.right_seq) == ("added", 5)
    same = run(tool("a"), checked("x"), policy("src/"), run="run_b", policy={"digest": "p"})
    assert both_ways(watched, same) == [("removed", None, "fs.write")]  # the policy is the same: less was done


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


def test_a_process_of_another_environment_is_the_same_one() -> None:
    def process(python: str, code: int) -> Part:
        ended = {"status": "ok" if code == 0 else "error", "exit_code": code}
        return Part("process.started", {"argv": [python, "-m", "pytest"]}, ended)

    found = diffed(run(process("/a/bin/python", 0)), run(process("/b/bin/python", 1), run="run_b"))
    assert [(one.type, one.cause) for one in found.deviations] == [("changed", "input_changed")]


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


def test_what_is_ignored_of_texts_is_not_compared_in_what_was_printed_either() -> None:
    def printed(text: str, name: str) -> list[Event]:
        return run(Part("output.written", {"stream": "stdout", "text": text}), run=name)

    left, right = printed("a", "run_a"), printed("b", "run_b")
    assert both_ways(left, right) == [("changed", "output_changed", "stdout")]
    assert both_ways(left, right, ignore=["/text"]) == []


def test_identical_questions_are_compared_in_their_order() -> None:
    left = run(*(tool("poll", {}, answer) for answer in "abc"))
    right = run(*(tool("poll", {}, answer) for answer in "axc"), run="run_b")
    assert both_ways(left, right) == [("changed", "output_changed", "poll")]


def test_the_ids_that_a_provider_gives_are_no_difference() -> None:
    def story(call: str, answer: str, run_id: str) -> list[Event]:
        asked = {
            "id": answer,
            "object": "chat.completion",
            "created": len(answer),
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "tool_calls": [{"id": call, "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                    }
                }
            ],
        }
        messages = [{"role": "user", "content": "go"}]
        later = [*messages, asked["choices"][0]["message"], {"role": "tool", "tool_call_id": call, "content": "1"}]  # type: ignore[index]
        return run(
            model({"messages": messages}, asked),
            model({"messages": later}, {"id": "x" + answer, "object": "o", "choices": [{"text": "done"}]}),
            run=run_id,
        )

    assert both_ways(story("call_a", "cmpl-1", "run_a"), story("call_b", "cmpl-22", "run_b")) == []


def test_what_is_given_to_a_tool_is_compared_with_its_ids() -> None:
    def said(id: str) -> dict[str, Any]:
        return {
            "type": "message",
            "content": [{"type": "tool_use", "id": "t", "name": "get", "input": {"id": id, "type": "user"}}],
        }

    left, right = run(model("q", said("7"))), run(model("q", said("8")), run="run_b")
    assert both_ways(left, right) == [("changed", "output_changed", "gpt-5")]
    assert [change.path for change in diffed(left, right).deviations[0].changes] == ["/response/content/0/input/id"]


def test_a_changed_prompt_is_named_by_its_path_and_its_words() -> None:
    left = run(model({"messages": [{"role": "user", "content": "Fix the login"}]}, "ok"))
    right = run(model({"messages": [{"role": "user", "content": "Fix the logout"}]}, "ok"), run="run_b")
    (one,) = diffed(left, right).deviations
    assert (one.type, one.cause) == ("changed", "input_changed")
    assert one.as_dict()["changes"] == [
        {
            "path": "/request/messages/0/content",
            "left": "Fix the login",
            "right": "Fix the logout",
            "words": "Fix the [-login-] {+logout+}",
        }
    ]


def test_what_is_ignored_is_not_compared() -> None:
    left = run(tool("now", {"at": 1, "q": 2}, {"time": 1, "rows": [{"id": 1, "v": 2}]}))
    right = run(tool("now", {"at": 5, "q": 2}, {"time": 9, "rows": [{"id": 4, "v": 2}]}), run="run_b")
    assert both_ways(left, right) == [("changed", "input_changed", "now")]
    assert both_ways(left, right, ignore=["/input/at", "/output/time"]) == [("changed", "output_changed", "now")]
    assert both_ways(left, right, ignore=["/input/at", "/output/time", "/output/rows/*/id"]) == []
    with pytest.raises(UsageError, match="not a path"):
        diffed(left, right, ignore=["output"])


@pytest.mark.parametrize(
    ("left", "right", "ignore", "paths"),
    [
        ([1, 2, 3], [1, 2, 4], ["/output/0", "/output/1"], ["/output/2"]),
        ([1, 2, 3], [9, 8, 3], ["/output/0", "/output/1"], []),
        ([1, 2, 3], [9, 8, 3], ["/output/1", "/output/0"], []),
        ([1, 2, 3], [9, 2, 4], ["/output/0"], ["/output/2"]),
        ([1, 2], [1], ["/output/1"], []),
        ([1, 2], [], ["/output/0"], ["/output/1"]),
        ([1, 2], [3, 4, 5], ["/output/*"], []),
    ],
)
def test_items_of_lists_that_are_ignored_leave_their_numbers_to_the_others(
    left: list[int], right: list[int], ignore: list[str], paths: list[str]
) -> None:
    ones = run(tool("t", {}, left)), run(tool("t", {}, right), run="run_b")
    for found in (diffed(*ones, ignore=ignore), diffed(*ones[::-1], ignore=ignore)):
        assert [change.path for one in found.deviations for change in one.changes] == paths


@pytest.mark.parametrize(
    ("left", "right", "ignore", "path"),
    [
        (2, 9, "/output/*", "/output"),
        ({"a": 1}, [1], "/output/*", "/output"),
        ({"a/b": 1}, {"a/b": 2}, "/output/a/b", "/output/a~1b"),
    ],
)
def test_what_a_path_does_not_name_is_told_with_the_field_that_differs(
    left: Any, right: Any, ignore: str, path: str
) -> None:
    found = diffed(run(tool("t", {}, left)), run(tool("t", {}, right), run="run_b"), ignore=[ignore])
    assert [[change.path for change in one.changes] for one in found.deviations] == [[path]]


@pytest.mark.parametrize(
    ("ignore", "left_over"),
    [
        ("/files_read/~1tmp~1a", ["/files_read/~1tmp~1b", "/git/commit"]),
        ("/files_read//tmp/a", ["/files_read/~1tmp~1b", "/git/commit"]),
        ("/files_read//tmp", ["/git/commit"]),
        ("/files_read//tmp/*", ["/git/commit"]),
        ("/files_read/*", ["/git/commit"]),
        ("/files_read", ["/git/commit"]),
        ("/*/commit", ["/files_read/~1tmp~1a", "/files_read/~1tmp~1b"]),
        ("/files_read/tmp", ["/files_read/~1tmp~1a", "/files_read/~1tmp~1b", "/git/commit"]),
    ],
)
def test_what_is_ignored_is_not_told_of_the_setting_either(ignore: str, left_over: list[str]) -> None:
    def reading(digest: str) -> list[dict[str, Any]]:
        reads = [{"of": "open", "values": [{"path": f"/tmp/{name}", "digest": digest} for name in "ab"]}]
        return run(Part("ambient.read", {"reads": reads}), git={"commit": digest})

    for ones in (("1", "2"), ("2", "1")):
        found = diffed(*map(reading, ones), ignore=[ignore])
        assert sorted(change.path for change in found.config) == left_over


def test_many_differences_in_the_setting_keep_the_names_of_their_parts() -> None:
    def reading(digest: str) -> list[dict[str, Any]]:
        groups = [
            {"of": of, "values": [{"path": f"{at}.py", "digest": digest} for at in range(30)]}
            for of in ("open", "import")
        ]
        return run(Part("ambient.read", {"reads": groups}))

    paths = [change.path for change in diffed(reading("1"), reading("2")).config]
    assert (len(paths), "/code/0.py" in paths, "/files_read/29.py" in paths) == (60, True, True)


def test_numbers_that_are_the_same_are_no_difference_and_true_is_not_one() -> None:
    assert both_ways(run(tool("a", {}, [1, 2.0])), run(tool("a", {}, [1.0, 2]), run="run_b")) == []
    assert both_ways(run(tool("a", {}, 1)), run(tool("a", {}, True), run="run_b")) == [
        ("changed", "output_changed", "a")
    ]


def test_the_setting_is_told_beside_and_is_no_deviation() -> None:
    left = run(
        effect("/a"),
        git={"commit": "1", "branch": "main"},
        environment={"packages": {"openai": "1"}},
        policy={"digest": "x"},
    )
    right = run(
        effect("/b"),
        git={"commit": "2", "branch": "main"},
        environment={"packages": {"openai": "2"}},
        policy={"digest": "y"},
        run="run_b",
    )
    found = diffed(left, right)
    assert found.identical is True
    assert {change.path for change in found.config} == {
        "/git/commit",
        "/packages/openai",
        "/policy/digest",
        "/effects/file.written/0",
    }


def test_files_of_two_folders_are_compared_as_they_are_called_in_them() -> None:
    def ran(folder: str, digest: str, name: str) -> list[Event]:
        def read(of: str, file: str, digest: str) -> dict[str, Any]:
            return {"of": of, "values": [{"path": f"{folder}/{file}", "digest": digest}]}

        reads = [read("import", "agent.py", "1"), read("open", "prices.json", digest)]
        entrypoint = {"argv": ["python", "agent.py"], "cwd": folder, "file": f"{folder}/agent.py"}
        body = (Part("ambient.read", {"reads": reads}), effect(f"{folder}/out.txt"))
        return run(*body, run=name, entrypoint=entrypoint)

    found = diffed(ran("/home/ada/agent", "2", "run_a"), ran("/home/ci/work", "3", "run_b"))
    assert [change.path for change in found.config] == ["/entrypoint/cwd", "/files_read/prices.json"]


def test_what_a_policy_decided_is_the_same_in_another_folder_and_after_another_time() -> None:
    def ran(folder: str, name: str, rule: str) -> list[Event]:
        about = {"by": "policy", "decision": "deny", "capability": "fs.write", "resource": f"{folder}/out.txt"}
        late = {"rule": rule, "reason": f"1.{len(folder)} of 1 seconds are used"}
        return run(Part("policy.checked", {**about, **late}), run=name, entrypoint={"cwd": folder})

    assert both_ways(ran("/home/ada", "run_a", "limit"), ran("/home/ci/work", "run_b", "limit")) == []
    other = ran("/home/ci/work", "run_b", "default")
    assert both_ways(ran("/home/ada", "run_a", "limit"), other) == [("changed", "output_changed", "fs.write")]


def test_model_parameters_and_system_prompt_are_part_of_the_setting() -> None:
    def story(temperature: float, prompt: str, model_name: str) -> list[Any]:
        request = {
            "temperature": temperature,
            "messages": [{"role": "system", "content": prompt}, {"role": "user", "content": "x"}],
        }
        return [model(request, "ok", model_name)]

    found = diffed(run(*story(0.0, "Be kind", "a")), run(*story(0.7, "Be curt", "b"), run="run_b"))
    assert [change.path for change in found.config] == ["/models/0", "/parameters/temperature/0", "/system_prompts/0"]


def test_provider_and_the_model_that_answered_are_part_of_the_setting() -> None:
    def story(provider: str, *answered: str | None) -> list[Part]:
        asked = {"provider": provider, "model": "m", "request": "?"}
        return [Part("model.invoked", asked, {"status": "ok", "model": one, "response": "r"}) for one in answered]

    same = diffed(run(*story("openai", "m-1", None)), run(*story("openai", "m-1", "m"), run="run_b"))
    assert (same.config, same.deviations) == ([], [])
    found = diffed(run(*story("openai", "m-1")), run(*story("azure", "m-2"), run="run_b"))
    assert [(one.path, one.left, one.right) for one in found.config] == [
        ("/providers/0", "openai", "azure"),
        ("/models_that_answered/0", "m-1", "m-2"),
    ]
    assert found.deviations == []


def test_durations_are_told_only_where_they_are_asked_for_and_an_unknown_one_is_said() -> None:
    slow = [tool("a"), *(note(str(number)) for number in range(2))]
    left = run(*slow, tool("b"))
    right = run(step("x"), run="run_b")
    assert diffed(left, right).durations is None
    one = run(together(tool("a"), tool("b"), ends=[0, 1]))
    other = run(
        together(
            tool("a"),
            *(tool(f"c{number}") for number in range(30)),
            unfinished(tool("b")),
            ends=[*range(30, 0, -1), 31, 0],
        ),
        run="run_b",
    )
    found = diffed(one, other, durations=True).durations
    assert found is not None
    assert [(entry["name"], entry["unknown"]) for entry in found if entry["kind"] == "tool"] == [
        ("a", False),
        ("b", True),
    ]


def test_the_longer_time_is_on_its_side_whichever_run_is_named_first() -> None:
    slow, quick = (step("s", *(note(str(number)) for number in range(count))) for count in (40, 2))
    for name in ("run_b", "run_c", "run_d", "run_e"):  # of which some come before the other
        found = diffed(run(slow), run(quick, run=name), durations=True).durations
        assert [(one["left_us"], one["right_us"]) for one in found or () if one["kind"] == "step"] == [(41_000, 3_000)]
        both_ways(run(slow), run(quick, run=name))


def test_two_times_that_nobody_knows_are_not_said_to_be_the_same() -> None:
    crashed = [run(tool("a"), note("no time"), unfinished(tool("b")), run=name) for name in ("run_a", "run_b")]
    found = diffed(*crashed, durations=True)
    assert found.identical
    assert found.durations is not None
    assert [(one["name"], one["left_us"], one["right_us"], one["unknown"]) for one in found.durations] == [
        ("b", None, None, True)
    ]


def test_what_cannot_be_compared_is_an_error_and_never_no_difference() -> None:
    with pytest.raises(NotComparable, match="the right run has no beginning"):
        diffed(run(tool("a")), [])


def test_foreign_data_with_orphans_double_ids_and_circles_is_compared() -> None:
    orphan = Part("tool.called", {"name": "lost"}, {"status": "ok"}, parent="nowhere")
    double = Part("tool.called", {"name": "twice"}, {"status": "ok"}, span="9")
    circle = [
        Part("step.started", {"name": "a"}, {"status": "ok"}, span="a", parent="b"),
        Part("step.started", {"name": "b"}, {"status": "ok"}, span="b", parent="a"),
        Part("step.started", {"name": "c"}, {"status": "ok"}, span="c", parent="c"),
    ]
    body = [orphan, double, double, *circle]
    assert both_ways(run(*body), run(*body, run="run_b")) == []
    assert both_ways(run(*body), run(*body, tool("x"), run="run_b")) == [("added", None, "x")]


parts = st.recursive(
    st.builds(
        tool, st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 2), status=st.sampled_from(["ok", "error"])
    )
    | st.builds(note, st.sampled_from("xyz"))
    | st.builds(policy, st.sampled_from("pq"), st.sampled_from(["allow", "deny"]))
    | st.builds(lambda part: unfinished(part), st.builds(tool, st.sampled_from("abc")))
    | st.builds(
        lambda one, other: together(one.on("0.1"), other.on("0.2")),
        st.builds(tool, st.sampled_from("ab")),
        st.builds(tool, st.sampled_from("ab")),
    ),
    lambda inner: st.builds(
        lambda name, inside: step(name, *inside), st.sampled_from("st"), st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(parts, max_size=6))
@settings(max_examples=60)
def test_a_run_does_not_differ_from_itself(body: list[Any]) -> None:
    assert both_ways(run(*body), run(*body)) == []
    assert both_ways(run(*body), run(*body, run="run_b")) == []


@given(st.lists(parts, max_size=5), st.lists(parts, max_size=5))
@settings(max_examples=100)
def test_both_ways_round_say_the_same(left: list[Any], right: list[Any]) -> None:
    found = both_ways(run(*left), run(*right, run="run_b"))
    assert (found == []) == (both_ways(run(*right), run(*left, run="run_b")) == [])


def test_what_a_tape_answered_cost_nothing() -> None:
    paid = Part("model.invoked", {"model": "gpt-5", "request": {}}, {"status": "ok", "cost": 0.5})
    exact = run(paid, run="run_b", origin={"mode": "exact", "run": "run_a"})
    assert diffed(run(paid), exact).metrics["cost"] == {"left": 0.5, "right": 0.0, "delta": -0.5}
    reported = Part("replay.reported", {"live_spans": ["2"]})
    fork = run(paid, paid, reported, run="run_b", origin={"mode": "fork", "run": "run_a"})
    assert diffed(run(paid, paid), fork).metrics["cost"] == {"left": 1.0, "right": 0.5, "delta": -0.5}


def test_a_value_that_is_gone_on_one_side_is_no_other_answer() -> None:
    gone = {"$blob": "f" * 64, "len": 40_000, "as": "json"}

    def resolve(value: Any) -> Any:
        if value == gone or (isinstance(value, dict) and gone in value.values()):
            raise MissingContent("a blob is not there")
        return value

    left, right = run(tool("read", {}, {"large": 1})), run(tool("read", {}, gone), run="run_b")
    for one, other in ((left, right), (right, left)):
        found = compare(*(replace(recorded(events), value=resolve) for events in (one, other)))
        assert (found.identical, found.deviations) == (None, [])
        assert [missing["seq"] for missing in found.not_compared] == [2]
    failed = run(replace(tool("read", {}), closing={"status": "error", "output": gone}), run="run_b")
    found = compare(*(replace(recorded(events), value=resolve) for events in (left, failed)))
    assert [(one.cause, [change.path for change in one.changes]) for one in found.deviations] == [
        ("status_changed", ["/status"])
    ]


def test_a_value_that_was_erased_is_not_said_to_differ() -> None:
    erased = {"read": [{"$commit": "c" * 64, "len": 9}]}
    left, right = run(tool("read", {}, {"read": ["secret"]})), run(tool("read", {}, erased), run="run_b")
    for one, other, seqs in ((left, right, [2]), (right, left, [2]), (right, right, [2, 2])):
        found = diffed(one, other)
        assert (found.identical, found.deviations) == (None, [])
        assert [(missing["seq"], missing["why"]) for missing in found.not_compared] == [
            (seq, "a value was erased") for seq in seqs
        ]


def test_what_some_calls_cost_nobody_knows_is_no_sum() -> None:
    def asked(model: str) -> Part:
        return Part("model.invoked", {"model": model, "request": {}}, {"status": "ok", "usage": {"input": 1_000_000}})

    prices = lambda provider, model: [{"input": [[0, 2.5]], "output": [[0, 10.0]]}] if model == "known" else None  # noqa: E731
    found = diffed(run(asked("known")), run(asked("known"), asked("own"), run="run_b"), prices=prices)
    assert found.metrics["cost"] == {"left": 2.5, "right": 2.5, "delta": None, "partial": ["right"]}
    assert costs_told(found.metrics["cost"]) == ("$2.50", "$2.50 + unknown")
    assert costs_told(diffed(run(), run(asked("own"), run="run_b"), prices=prices).metrics["cost"]) == (
        "$0.00",
        "unknown",
    )


def test_tokens_that_nobody_said_are_not_none() -> None:
    def asked(**usage: int) -> Part:
        return Part("model.invoked", {"model": "gpt-5", "request": {}}, {"status": "ok", "usage": usage})

    silent, told = run(asked()), run(asked(input=41, output=6), run="run_b")
    some, free = run(asked(input=41, output=6), asked(), run="run_c"), run(run="run_d")
    for right, tokens, words in (
        (told, {"left": None, "right": 41, "delta": None}, ("unknown", "41")),
        (some, {"left": None, "right": 41, "delta": None, "partial": ["right"]}, ("unknown", "41 + unknown")),
        (free, {"left": None, "right": 0, "delta": None}, ("unknown", "0")),
    ):
        found = diffed(silent, right).metrics["tokens_input"]
        assert (found, tokens_told(found)) == (tokens, words)
    assert diffed(free, told).metrics["tokens_output"] == {"left": 0, "right": 6, "delta": 6}


def test_parameters_inside_of_others_are_of_the_setting() -> None:
    def asked(**request: Any) -> Part:
        return model({"messages": [], **request}, "yes")

    left = run(asked(generationConfig={"temperature": 0, "schema": {"a": 1}}, stop=["a"]))
    right = run(asked(generationConfig={"temperature": 1, "schema": {"a": 2}}, stop=["b"]), run="run_b")
    paths = [change.path for change in diffed(left, right).config]
    assert paths == [
        "/parameters/generationConfig.schema/0", "/parameters/generationConfig.temperature/0", "/parameters/stop/0"
    ]  # fmt: skip


def test_the_order_in_which_tasks_first_ask_and_the_numbers_of_processes_are_not_of_the_setting() -> None:
    def asked(system: str) -> Part:
        return model({"messages": [{"role": "system", "content": system}, {"role": "user", "content": system}]}, "yes")

    def signalled(number: int) -> Part:
        return Part("effect.observed", {"what": "process.signalled", "target": str(number)})

    one, other = asked("be brief"), asked("be kind")
    left, right = run(together(one, other), signalled(4)), run(together(other, one), signalled(5), run="run_b")
    assert diffed(left, right).config == []
