from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.views.diff.stories import Part, Together, diffed, model, run, step, told, tool
from tests.views.diff.test_comparison import both_ways

from playhead.views.diff.comparison import Comparison


def save(number: int, text: str, lane: str = "0") -> Part:
    return tool("save", {"name": f"note{number}", "text": text}, len(text)).on(lane)


def job(number: int, text: str, lane: str) -> list[Part]:
    return [model(f"question {number}", "answer").on(lane), save(number, text, lane)]


def pairs(found: Comparison) -> list[list[tuple[str, Any, Any]]]:
    """Return the fields that differ of each deviation."""
    return [[(change.path, change.left, change.right) for change in one.changes] for one in found.deviations]


TEXT = ("/input/text", "A", "A!!")
LENGTH = ("/output", 1, 3)
INTERLEAVED = {
    "one after the other": [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)],
    "questions first": [(1, 0), (2, 0), (3, 0), (3, 1), (1, 1), (2, 1)],
    "in another order": [(3, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 1)],
}


@pytest.mark.parametrize("how", INTERLEAVED)
def test_calls_of_lanes_that_raced_are_paired_within_their_lane(how: str) -> None:
    def body(text: str, order: list[tuple[int, int]]) -> list[Part]:
        return [job(lane, text, f"0.{lane}")[at] for lane, at in order]

    left = run(*body("A", INTERLEAVED["one after the other"]))
    right = run(*body("A!!", INTERLEAVED[how]), run="run_b")
    both_ways(left, right)
    assert pairs(diffed(left, right)) == [[TEXT, LENGTH]] * 3


def test_jobs_that_other_threads_took_are_paired_by_what_they_alone_are_about() -> None:
    took = {1: "0.1", 2: "0.2", 3: "0.1", 4: "0.2"}
    others = {1: "0.2", 2: "0.1", 3: "0.1", 4: "0.2"}
    for make in (lambda *given: [save(*given)], job):
        left = run(*(part for number, lane in took.items() for part in make(number, "A", lane)))
        right = run(*(part for number, lane in others.items() for part in make(number, "A!!", lane)), run="run_b")
        found = diffed(left, right)
        both_ways(left, right)
        assert sorted(pairs(found)) == [[TEXT, LENGTH]] * 4


def test_a_call_among_others_that_all_changed_is_told_by_its_arguments() -> None:
    left = run(*(save(number, "A") for number in (1, 2, 3)))
    right = run(*(save(number, "A!!") for number in (9, 1, 2, 3)), run="run_b")
    both_ways(left, right)
    found = diffed(left, right)
    assert pairs(found) == [[], *[[TEXT, LENGTH]] * 3]
    assert [one.type for one in found.deviations] == ["added", "changed", "changed", "changed"]


def test_what_would_cross_is_not_paired_by_its_arguments() -> None:
    left = run(
        tool("search", {"q": "a", "limit": 5}), tool("search", {"q": "b", "limit": 9}), tool("search", {"q": "c"})
    )
    right = run(tool("search", {"q": "d", "limit": 9}), tool("search", {"q": "e", "limit": 5}), run="run_b")
    both_ways(left, right)
    assert {one.type for one in diffed(left, right).deviations} <= {"changed", "removed"}


def test_a_program_that_does_the_same_in_threads_keeps_its_pairs() -> None:
    left = run(*(save(number, "A") for number in (1, 2, 3)))
    right = run(Together(tuple(save(number, "A!!", f"0.{number}") for number in (1, 2, 3)), (2, 0, 1)), run="run_b")
    both_ways(left, right)
    assert pairs(diffed(left, right)) == [[TEXT, LENGTH]] * 3


@pytest.mark.parametrize("number", range(6))
def test_which_of_two_that_stand_in_one_place_is_named_first_does_not_vary(number: int) -> None:
    left = run(tool("a"), tool("b", {"q": 1}, "x"), tool("end"))
    right = run(tool("a"), tool("c", {"z": 2}, "y"), tool("end"), run=f"run_{number}")
    right = [msgspec.structs.replace(event, time="2026-01-02T00:00:00.000000Z") for event in right]
    assert [one[0] for one in both_ways(left, right)] == ["added", "removed"]


def http(url: str, body: str) -> Part:
    return Part("http.sent", {"method": "GET", "url": url}, {"outcome": "ok", "status": 200, "body": body})


def test_another_model_is_one_change_and_its_answer_is_compared() -> None:
    def talk(name: str, said: str) -> Part:
        request = {"model": name, "messages": [{"role": "user", "content": "hi"}]}
        return step("turn", model(request, {"content": said}, name))

    left, right = run(talk("gpt-5", "42"), tool("end")), run(talk("gpt-5-mini", "forty"), tool("end"), run="run_b")
    assert both_ways(left, right) == [("changed", "input_changed", "gpt-5")]
    assert pairs(diffed(left, right)) == [[
        ("/model", "gpt-5", "gpt-5-mini"), ("/request/model", "gpt-5", "gpt-5-mini"), ("/response/content", "42", "forty"),
    ]]  # fmt: skip


def test_two_models_are_told_apart_by_what_they_were_asked() -> None:
    left = run(model({"q": "plan"}, "A", "large"), model({"q": "sum"}, "B", "small"))
    right = run(model({"q": "plan"}, "C", "small"), model({"q": "sum"}, "D", "tiny"), run="run_b")
    both_ways(left, right)
    assert [[change[0] for change in one] for one in pairs(diffed(left, right))] == [["/model", "/response"]] * 2


def test_another_query_is_one_change() -> None:
    left = run(http("http://a/items?page=1", "one"), tool("end"))
    right = run(http("http://a/items?page=2", "two"), tool("end"), run="run_b")
    assert [one[:2] for one in both_ways(left, right)] == [("changed", "input_changed")]
    assert told(diffed(left, right))[0][2].endswith(("page=1", "page=2"))


def test_of_several_attempts_those_that_ended_well_are_held_against_each_other() -> None:
    failed, fine = tool("fetch", {}, "timeout", status="error"), tool("fetch", {}, "page")
    for attempts in ([failed], [failed, failed]):
        left, right = run(fine, tool("end")), run(*attempts, tool("fetch", {}, "other"), tool("end"), run="run_b")
        added = [("added", None, "fetch"), *[("added", "follows", "fetch")] * (len(attempts) - 1)]
        assert both_ways(left, right) == [*added, ("changed", "output_changed", "fetch")]
        assert pairs(diffed(left, right))[-1] == [("/output", "page", "other")]


@pytest.mark.parametrize("names", [("run_a", "run_b"), ("run_b", "run_a")])
@pytest.mark.parametrize(
    ("ones", "others", "together"),
    [
        (["ok"], ["error", "error", "ok"], [(0, 2)]),
        (["error", "ok"], ["error", "error", "ok"], [(0, 0), (1, 2)]),
        (["error"], ["error", "ok"], [(0, 0)]),
        (["ok"], ["error", "error"], [(0, 1)]),
    ],
)
def test_of_attempts_at_a_question_that_is_another_those_that_ended_alike_are_held_against_each_other(
    ones: list[str], others: list[str], together: list[tuple[int, int]], names: tuple[str, str]
) -> None:
    def asked(topic: str, statuses: list[str]) -> list[Part]:
        return [tool("ask", {"q": f"sum up {topic}"}, f"{topic} {status}", status=status) for status in statuses]

    def body(topic: str, statuses: list[str]) -> list[Part]:
        return [tool("look", {}, topic), *asked(topic, statuses), *asked(f"more of {topic}", ["ok"]), tool("end")]

    left, right = run(*body("alpha", ones), run=names[0]), run(*body("beta", others), run=names[1])
    both_ways(left, right)
    found = diffed(left, right)
    paired = [(one.left_seq, one.right_seq) for one in found.deviations if one.type == "changed" and one.name == "ask"]
    first = 3  # seq of the first of them; each has two events
    assert paired == [
        *((first + 2 * one, first + 2 * other) for one, other in together),
        (first + 2 * len(ones), first + 2 * len(others)),
    ]


@pytest.mark.parametrize("name", ["run_b", "run_c", "run_d"])
def test_of_steps_that_were_attempted_again_those_that_ended_well_are_held_against_each_other(name: str) -> None:
    def attempt(answer: str, status: str = "ok") -> Part:
        found = step("ask", tool("fetch", {}, answer, status=status))
        return replace(found, closing={"status": status})

    left, right = run(attempt("page")), run(attempt("timeout", "error"), attempt("other"), run=name)
    found = both_ways(left, right)
    assert [one[::2] for one in found if one[1] != "follows"] == [("added", "ask"), ("changed", "fetch")]
    assert [("/output", "page", "other")] in pairs(diffed(left, right))
