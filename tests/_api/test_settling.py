"""Runs that came from outside: every view shows them as they stand, in whatever order and pieces they came."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from tests.views.outside import FINISH, Log, Outside, Span, written

import playhead
from playhead._api.reading import Run
from playhead._api.reporting import report
from playhead._api.settling import Settled
from playhead.errors import BrokenLine
from playhead.store.reader import RunReader
from playhead.views.timeline import Timeline

OTHER = "run_01jqk3v8m0000g40r40m30e20a"


def run_of(outside: Outside) -> Run:
    return Run(outside.store, outside.run)


def rows_of(run: Run) -> list[Any]:
    timeline = Timeline().take_all(Settled(RunReader(run.store, run.id)).events())
    timeline.finish()
    return [row for row in timeline.rows() if not row.quiet and row.kind != "run.reopened"]


def summary_of(run: Run) -> dict[str, Any]:
    summary = Timeline().take_all(Settled(RunReader(run.store, run.id)).events()).finish()
    about = {name: getattr(summary, name) for name in summary.__dataclass_fields__}
    for name in ("id", "events"):  # which the pieces make
        del about[name]
    return about


class Labels:
    """Call events by what they are, and not by when they came."""

    def __init__(self, run: Run) -> None:
        self.of: dict[int, str] = {}
        for event in Settled(RunReader(run.store, run.id)).events():
            data = event.data
            self.of[event.seq] = f"{event.kind} {event.span or (data.get('otlp') or {}).get('digest') or ''}"

    def told(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: self.of.get(one, one) if name in ("seq", "end_seq", "parent") else self.told(one)
                for name, one in value.items()
            }
        return [self.told(one) for one in value] if isinstance(value, list) else value


def everything(run: Run) -> dict[str, Any]:
    labels = Labels(run)
    found: dict[str, Any] = {
        "rows": labels.told([row.as_dict() for row in rows_of(run)]),
        "summary": labels.told(summary_of(run)),
        "metrics": [{**run.metrics(by).as_dict(), "run": None} for by in ("model", "tool", "step")],
        "moments": {},
    }
    audit = playhead.audit(run).as_dict()["findings"]
    kept = ("rule", "severity", "what", "target", "path", "count")
    found["audit"] = sorted(str({name: one.get(name) for name in kept}) for one in audit)
    for seq, label in labels.of.items():
        if label.split()[0] not in ("span.revised", "run.reopened", "run.finished", "emitter.described"):
            moment = labels.told(run.at(seq).as_dict())
            found["moments"][label] = {name: one for name, one in moment.items() if name != "run"}
    return found


IDS = ["a", "b", "c", "d", "e", "f"]


@st.composite
def spans(draw: st.DrawFn, id: str) -> Span:
    start = draw(st.integers(0, 6))
    opens = draw(st.sampled_from(["step.started", "tool.called", "model.invoked"]))
    value = draw(st.integers(0, 1))
    status = draw(st.sampled_from(["ok", "error"]))
    if opens == "step.started":
        opened: dict[str, Any] = {"name": f"s{value}", "attributes": {"n": value}}
        closed: dict[str, Any] = {"status": status}
    elif opens == "tool.called":
        opened, closed = {"name": "t", "input": {"q": value}, "effects": ["write"]}, {"status": status, "output": value}
    else:
        opened = {"provider": "openai", "model": "gpt-5", "request": {"n": value}}
        closed = {"status": status, "response": f"r{value}", "usage": {"input": value, "output": 2}}
    parent = draw(st.sampled_from([None, "missing", *IDS]))
    return Span(id, parent, start, start + draw(st.integers(-1, 5)), opens, opened, closed)


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Any], list[list[Any]]]:
    """Give what a run is in the end, and batches in which it came."""
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, unique=True))
    last: list[Any] = [draw(spans(id)) for id in ids]
    for number in range(draw(st.integers(0, 3))):
        last.append(Log(draw(st.sampled_from([None, "a", "b"])), draw(st.integers(2, 3)), {"body": f"log {number}"}))
    coming: list[Any] = draw(st.permutations(last))
    for one in ids:
        for _ in range(draw(st.integers(0, 2))):  # it came before, in other forms
            place = next(at for at, each in enumerate(coming) if isinstance(each, Span) and each.id == one)
            coming.insert(draw(st.integers(0, place)), draw(spans(one)))
    batches: list[list[Any]] = [[]]
    for one in coming:
        batches[-1].append(one)
        if draw(st.booleans()):
            batches.append([FINISH] if draw(st.booleans()) else [])
    return last, [batch for batch in batches if batch]


@given(stories())
@settings(max_examples=150)
def test_the_same_spans_are_the_same_run_in_whatever_order_and_pieces_they_came(
    story: tuple[list[Any], list[list[Any]]],
) -> None:
    last, batches = story
    note(f"{last}\n{batches}")
    at_once = run_of(written([*last, FINISH]))
    in_pieces = run_of(written(*batches, [FINISH], run=OTHER))
    found = playhead.diff(at_once, in_pieces)
    note(str(found.as_dict()["deviations"]))
    assert (found.identical, found.deviations, found.config) == (True, [], [])
    assert everything(in_pieces) == everything(at_once)
    assert in_pieces.verify(deep=True).completeness.verdict == "complete"
    assert (in_pieces.status, in_pieces.name) == ("ok", "shop")


def ask(id: str, parent: str | None, start: int, question: str, answer: str, took: int = 2) -> Span:
    asked = {"provider": "openai", "model": "gpt-5", "request": {"messages": [{"role": "user", "content": question}]}}
    usage = {"input": 3, "output": 4}
    return Span(
        id, parent, start, start + took, "model.invoked", asked, {"status": "ok", "response": answer, "usage": usage}
    )


def step(id: str, start: int, end: int, parent: str | None = None, name: str | None = None, **attributes: Any) -> Span:
    return Span(id, parent, start, end, opened={"name": name or id, "attributes": attributes})


def differences(left: list[Any], right: list[Any]) -> list[tuple[str, str | None, str, str]]:
    ones = run_of(written(left, [FINISH])), run_of(written(right, [FINISH], run=OTHER))
    return [(one.type, one.cause, one.kind, one.name) for one in playhead.diff(*ones).deviations]


def test_time_travel_sees_what_was_told_last_in_the_order_of_the_times() -> None:
    late, early = ask("m2", "r", 6, "second", "two"), ask("m1", "r", 2, "first", "one")
    outside = written([late], [FINISH], [early, ask("m2", "r", 6, "the second", "two!")], [step("r", 0, 9), FINISH])
    run = run_of(outside)
    at = run.at(run.at("gpt-5#1").seq)
    assert at.is_settled
    assert (at.elapsed_us, at.model_calls, at.steps) == (4, 1, ["r"])
    assert (at.last_answer or {})["response"] == "one"
    at = run.at("gpt-5#2")
    assert ([one["content"] for one in at.messages], (at.last_answer or {})["response"]) == (["the second"], "two!")
    assert run.at(2).messages[0]["content"] == "the second"  # the line that was sealed first
    assert run.event(2).data["request"]["messages"][0]["content"] == "second"  # what was sealed there
    assert [one.seq for one in run.events()] == list(range(len(list(run.lines()))))
    assert (run.at(len(list(run.lines())) - 1).ended, run.at(at.seq).ended) == ("ok", None)


def test_time_travel_follows_a_run_of_which_more_comes() -> None:
    outside = written([ask("m2", "r", 6, "second", "two")])
    run = run_of(outside)
    assert (run.at(3).model_calls, run.at(3).elapsed_us) == (1, 2)
    outside.take([ask("m1", "r", 2, "first", "one")])
    assert (run.at(5).model_calls, run.at(3).model_calls, run.at(3).elapsed_us) == (1, 2, 6)


def test_a_span_that_was_half_written_can_be_gone_to() -> None:
    outside = written([step("a", 1, 9)])
    torn = outside.write("step.started", {"name": "b"}, 2, span="b", parent="a")
    run = run_of(outside.take([step("b", 2, 3, "a"), FINISH]))
    assert (run.at(torn).steps, run.at(torn).seq) == (["a", "b"], torn + 1)
    assert playhead.diff(run, run_of(written([step("b", 2, 3, "a"), step("a", 1, 9), FINISH]))).identical


def test_a_root_that_comes_last_adopts_the_run() -> None:
    asked = {"intent": "buy", "payload": {"n": 1}}
    opened = {"name": "buyer", "adopts": True, "input": asked, "agent": {"name": "buyer", "version": "2"}}
    root = Span("r", None, 0, 9, opened=opened, closed={"status": "ok", "adopts": True, "output": "bought"})
    run = run_of(written([ask("m", "r", 2, "q", "a")], [root, FINISH]))
    assert (run.name, run.input) == ("buyer", asked)
    summary = summary_of(run)
    assert (summary["name"], summary["request"], summary["agent"]) == ("buyer", asked, opened["agent"])
    assert [(row.depth, row.kind) for row in rows_of(run)] == [(0, "step"), (1, "model")]
    assert [one["name"] for one in run.metrics("agent").as_dict()["groups"]] == ["buyer"]


def test_calls_that_overlapped_have_no_order_and_those_that_did_not_have() -> None:
    root = step("r", 0, 30)
    one, other = ask("a", "r", 1, "one", "1", 5), ask("b", "r", 2, "two", "2", 5)
    turned = [ask("x", "r", 2, "one", "1", 5), ask("y", "r", 1, "two", "2", 5)]
    assert differences([root, one, other], [*turned, root]) == []
    apart = [ask("x", "r", 12, "one", "1", 5), ask("y", "r", 1, "two", "2", 5)]
    assert differences([root, one, ask("b", "r", 9, "two", "2", 5)], [*apart, root])[0][:2] == ("moved", None)


def test_a_diff_finds_what_differs_and_nothing_that_only_tells_of_the_way() -> None:
    left = [step("r", 0, 30), ask("a", "r", 1, "one", "1"), step("s", 5, 9, "r", "work", n=1)]
    right = [ask("x", "q", 1, "one", "another"), step("y", 5, 9, "q", "work", n=1), step("q", 0, 30, None, "r")]
    assert differences(left, right) == [("changed", "output_changed", "model", "gpt-5")]
    right[0] = ask("x", "q", 1, "one", "1")
    assert differences(left, right) == []
    right[1] = step("y", 5, 9, "q", "work", n=2)
    assert differences(left, right) == [("changed", "input_changed", "step", "work")]
    assert differences(left, left[:2]) == [("removed", None, "step", "work")]
    logs = [Log("a", 2, {"body": "x"})], [Log("a", 3, {"body": "y"})]
    assert differences(left + logs[0], left + logs[0]) == []
    assert [one[0] for one in differences(left + logs[0], left + logs[1])] == ["changed"]


def test_what_an_unfinished_run_had_completed_is_what_was_told_last() -> None:
    run = run_of(
        written([ask("m2", None, 6, "q", "two")], [ask("m1", None, 2, "q", "one"), ask("m2", None, 6, "q", "2")])
    )
    with pytest.warns(UserWarning, match="not replayable"):
        found = run.playback(force=True)
    assert [one["output"] for one in found.payload["completed"]] == ["one", "2"]


def test_a_run_that_was_reopened_is_complete_to_its_last_end_and_not_without_it() -> None:
    outside = written([step("b", 3, 4, "a")], [FINISH], [step("a", 1, 9)], [FINISH], [step("c", 1, 2, "a")])
    run = run_of(outside)
    assert (run.verify().completeness.verdict, run.status) == ("unfinished", "crashed")
    assert run.readiness().reasons == ["execution_incomplete"]
    outside.finish("error")
    verified = run.verify(deep=True)
    assert (verified.completeness.verdict, verified.root_checked, verified.open_tail) == ("complete", True, 0)
    assert (run.status, run.readiness().replayable) == ("error", True)
    assert sum(event.kind == "run.finished" for event in run.events()) == 3


def test_a_report_has_the_rows_as_they_stand_and_the_lines_as_they_came() -> None:
    run = run_of(written([ask("m", "r", 2, "old", "a")], [step("r", 0, 9), ask("m", "r", 3, "new", "b")], [FINISH]))
    found = report(run)
    shown = [row for row in found.runs[0].timeline if not row["quiet"]]
    assert [(row["depth"], row["name"], row["at_us"]) for row in shown] == [(0, "r", 0), (1, "gpt-5", 3)]
    assert shown[1]["answer"] == '"b"'
    assert '"kind":"model.invoked"' in found.runs[0].lines[2]
    assert found.runs[0].summary["received"]["rule"] == "trace"
    assert "otlp, trace 4bf92f3577b34da6a3ce929d0e0e4736; in the order of the times" in found.html()


def test_a_line_that_cannot_be_read_ends_what_is_shown() -> None:
    outside = written([step("b", 3, 4, "a"), step("a", 1, 9)], [FINISH])
    outside.store._logs[outside.run].buffer += b"no line\n"
    found: list[str] = []
    with pytest.raises(BrokenLine):
        found.extend(event.kind for event in Settled(RunReader(outside.store, outside.run)).events())
    assert found[-1] == "run.finished"
