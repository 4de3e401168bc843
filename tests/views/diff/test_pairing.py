"""What belongs together is recognised, whatever became of its name, its place and what is around it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.views.diff.stories import (
    A_FEW,
    Part,
    both_ways,
    diffed,
    note,
    run,
    step,
    told,
    tool,
)  # fmt: skip


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


def test_identical_questions_are_compared_in_their_order() -> None:
    left = run(*(tool("poll", {}, answer) for answer in "abc"))
    right = run(*(tool("poll", {}, answer) for answer in "axc"), run="run_b")
    assert both_ways(left, right) == [("changed", "output_changed", "poll")]
