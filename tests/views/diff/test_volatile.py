"""Two runs that differ in nothing but what is ignored, or what a rule calls volatile, do not differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.views.diff.stories import Part, Together, diffed, model, run, step, together, told, tool

from playhead.capture.dialects.table import DIALECTS
from playhead.event.normalise import Normalisers, rule_of
from playhead.views.aside import UNASKED

Stamp = Callable[[], int]
IGNORED = [
    *("/input/at", "/output/at", "/request/at", "/attributes/at", "/input/payload/at", "/params/at", "/data/at"),
    *("/body/at", "/result/at", "/response/at", "/options/at", "/resource"),
]
RULES = Normalisers([rule_of("at", path="/at"), rule_of("inner", path="/*/at")])


def http(body: Any, answer: Any) -> Part:
    return Part("http.sent", {"method": "GET", "url": "http://x/a", "body": body}, {"outcome": "ok", "body": answer})


def mcp(params: Any, result: Any) -> Part:
    return Part("mcp.requested", {"method": "tools/call", "params": params}, {"status": "ok", "result": result})


def process(options: Any) -> Part:
    return Part("process.started", {"argv": ["ls"], "options": options}, {"status": "ok", "exit_code": 0})


MADE: dict[str, Callable[[Any, Any], Part]] = {
    "tool": lambda asked, answered: tool("t", asked, answered),
    "model": lambda asked, answered: model(asked, answered),
    "http": http,
    "mcp": mcp,
    "process": lambda asked, answered: process(asked),
    "note": lambda asked, answered: Part("note.added", {"text": "n", "data": asked}),
    "policy": lambda asked, answered: Part(
        "policy.checked", {"capability": "c", "resource": str(asked), "decision": "allow"}
    ),
}
CALLS = ("tool", "model", "http", "mcp", "process")


def stamped(shape: Any, stamp: Stamp) -> Any:
    """Make a part: whatever has a field `at`, has another one in each run."""
    what, question, answer, inside = shape
    if what == "step":
        made = step("s", *(stamped(one, stamp) for one in inside), at=stamp(), x=question)
    elif what == "together":
        made = together(*(one for inner in inside if not isinstance(one := stamped(inner, stamp), Together)))
    else:
        made = MADE[what]({"at": stamp(), "x": question}, {"at": stamp(), "x": answer})
    return made


small = st.integers(0, 2)
shapes = st.recursive(
    st.tuples(st.sampled_from(sorted(MADE)), small, small, st.just(())),
    lambda inner: st.tuples(st.sampled_from(["step", "together"]), small, small, st.lists(inner, max_size=4)),
    max_leaves=12,
)


def both(body: list[Any], stamps: list[int], **only: Any) -> list[Any]:
    """Write the same run twice, with other stamps."""
    runs = []
    for name, values in (("run_a", stamps), ("run_b", stamps[::-1])):
        given = iter(values * 200)
        parts = [stamped(shape, lambda given=given: next(given)) for shape in body]
        runs.append(run(*parts, run=name, input={"intent": "agent", "payload": {"at": next(given), **only}}))
    return runs


@given(st.lists(shapes, max_size=5), st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_what_differs_in_ignored_fields_alone_does_not_differ(body: list[Any], stamps: list[int]) -> None:
    found = diffed(*both(body, stamps), ignore=IGNORED)
    assert [(one.type, one.cause, one.kind, one.changes) for one in found.deviations] == []
    assert found.identical is True


@given(st.lists(shapes, max_size=5), st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_what_differs_in_what_a_rule_calls_volatile_alone_does_not_differ(body: list[Any], stamps: list[int]) -> None:
    kept = [path for path in IGNORED if path not in ("/request/at", "/params/at", "/options/at")]
    found = diffed(*both(body, stamps), ignore=kept, normalisers=RULES)
    assert [(one.type, one.cause, one.kind, one.changes) for one in found.deviations] == []


@pytest.mark.parametrize("path", ["/input", "/input/payload", "/input/payload/at", "/input/*/at"])
def test_the_input_of_the_run_itself_can_be_ignored(path: str) -> None:
    left, right = both([("tool", 1, 1, ())], [1, 2])
    assert told(diffed(left, right))[0] == ("changed", "input_changed", "agent")
    ignore = [path, "/input/at", "/output/at"]
    assert told(diffed(left, right, ignore=ignore)) == []
    other = run(tool("t", {"at": 1, "x": 1}, {"x": 2}), run="run_b")
    assert told(diffed(left, other, ignore=ignore)) == [("changed", "output_changed", "t")]


def test_the_status_can_be_ignored() -> None:
    failed = replace(tool("t", 1), closing={"status": "error"})
    right = run(replace(tool("t", 1), closing={"status": "ok"}), run="run_b")
    left = run(failed)
    assert told(diffed(left, right)) == [("changed", "status_changed", "t")]
    assert told(diffed(left, right, ignore=["/status"])) == []
    assert told(diffed(run(replace(failed, closing=None)), right, ignore=["/status"])) == []


@pytest.mark.parametrize(
    ("ones", "ignore", "differs"),
    [
        (({"$dict": [[1, "a"], [3, "x"]]}, {"$dict": [[1, "a"], [3, "y"]]}), "/output/3", False),
        (({"$dict": [[1, "a"], [3, "x"]]}, {"$dict": [[1, "b"], [3, "y"]]}), "/output/3", True),
        (({"$dict": [[1, {"at": 1}]]}, {"$dict": [[1, {"at": 2}]]}), "/output/*/at", False),
        (({"$object": "R", "fields": {"at": {"$tuple": [1, 2]}}}, {"$object": "R", "fields": {"at": {"$tuple": [1, 3]}}}),
         "/output/at/1", False),
        (({"$object": "R", "fields": {"at": 1}}, {"$object": "S", "fields": {"at": 2}}), "/output/at", True),
        (({"$tuple": [1]}, {"$set": [2]}), "/output/*", False),
        (({"$decimal": "1"}, {"$decimal": "2"}), "/output/$decimal", False),
        (({"$decimal": "1"}, {"$decimal": "2"}), "/output/decimal", True),
    ],
)  # fmt: skip
def test_what_is_in_a_marked_value_is_ignored_by_the_name_that_the_diff_gives_it(
    ones: tuple[Any, Any], ignore: str, differs: bool
) -> None:
    left, right = run(tool("t", 1, ones[0])), run(tool("t", 1, ones[1]), run="run_b")
    assert told(diffed(left, right)) == [("changed", "output_changed", "t")]
    assert bool(diffed(left, right, ignore=[ignore])) is differs


def test_a_rule_names_the_parts_of_a_question_as_in_a_replay() -> None:
    def asked(stamp: int, page: str) -> list[Any]:
        request = {"model": "gpt-5", "messages": [], "user": stamp}
        wire = {"method": "POST", "url": "https://api.openai.com/v1/responses"}
        data = {"model": "gpt-5", "operation": "chat", "request": request, "http": wire}
        called = Part("model.invoked", data, {"status": "ok", "response": 1})
        return [Part("http.sent", {"method": "GET", "url": f"http://x/{page}"}, {"outcome": "ok"}), called]

    left, right = run(*asked(1, "a")), run(*asked(2, "b"), run="run_b")
    url = rule_of("url", path="/url", kinds=["http.sent"])
    user = rule_of("user", path="/user", kinds=["model.invoked"], names=["gpt-5"])
    assert len(diffed(left, right, normalisers=Normalisers([url])).deviations) == 1
    assert told(diffed(left, right, normalisers=Normalisers([url, user]))) == []
    assert told(diffed(left, right, normalisers=Normalisers([url]), ignore=["/request/user"])) == []


def test_what_a_request_tells_its_provider_alone_is_not_compared_either_where_something_is_ignored() -> None:
    wire = {"method": "POST", "url": "https://api.openai.com/v1/responses"}
    ones = [
        run(
            Part(
                "model.invoked", {"model": "m", "request": {"seed": at, "metadata": at}, "http": wire}, {"status": "ok"}
            ),
            run=f"run_{at}",
        )
        for at in (1, 2)
    ]
    assert told(diffed(*ones, ignore=["/request/seed"])) == []
    assert {name for dialect in DIALECTS for name in dialect.volatile} == UNASKED
