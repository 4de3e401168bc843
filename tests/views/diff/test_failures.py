"""Why a run failed is said, and what only follows from that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.views.diff.stories import (
    Part,
    Together,
    Writer,
    both_ways,
    diffed,
    model,
    note,
    recorded,
    run,
    step,
    together,
    told,
    tool,
)  # fmt: skip

from playhead.event.envelope import Event
from playhead.views.diff.comparison import compare
from playhead.views.diff.nodes import Node
from playhead.views.diff.saying import outcome_of
from playhead.views.diff.source import Recorded


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
