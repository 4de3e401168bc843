from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.views.diff.stories import (
    A_FEW,
    Part,
    both_ways,
    diffed,
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

from playhead.errors import MissingContent, NotComparable
from playhead.event.envelope import Event
from playhead.views.diff.comparison import compare

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
        events = run(*parts, run=run_id, external_id="x", received={"by": "otlp"})
        return [
            msgspec.structs.replace(one, elapsed_us=0 if one.kind == "step.finished" else one.elapsed_us)
            for one in events
        ]

    found = diffed(imported(step("one")), imported(step("one"), step("two"), run_id="run_b"))
    assert told(found) == [("added", None, "two")]


@pytest.mark.parametrize("name", [f"run_{letter}" for letter in "bcdefgh"])
def test_what_came_one_after_the_other_follows_whichever_run_is_looked_at_first(name: str) -> None:
    left, right = ([tool(f"{side}{at}", {"q": at}, f"{side} {at}") for at in range(5)] for side in "xy")
    found = both_ways(run(*left), run(*right, run=name))
    assert sorted(one[:2] for one in found if one[1] is None) == [("added", None), ("removed", None)]
    assert both_ways(run(), run(*right, run=name))[0][1] is None
    assert {one[1] for one in both_ways(run(), run(*right, run=name))[1:]} == {"follows"}


def test_a_process_of_another_environment_is_the_same_one() -> None:
    def process(python: str, code: int) -> Part:
        ended = {"status": "ok" if code == 0 else "error", "exit_code": code}
        return Part("process.started", {"argv": [python, "-m", "pytest"]}, ended)

    found = diffed(run(process("/a/bin/python", 0)), run(process("/b/bin/python", 1), run="run_b"))
    assert [(one.type, one.cause) for one in found.deviations] == [("changed", "input_changed")]


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
