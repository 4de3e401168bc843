from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.views.outside import BASE_US, FINISH, Log, Outside, Span, key_of, written

from playhead._clock import utc_text
from playhead.event.envelope import Event, parse
from playhead.views.imported import settled, standing, told
from playhead.views.timeline import Timeline

CALL = Span("t", "r", 2, 4, "tool.called", {"name": "find", "input": {"q": 1}}, {"status": "ok", "output": 1})


def sealed(outside: Outside) -> list[Event]:
    return [parse(line.rstrip(b"\n")) for line in outside.store.lines(outside.run)]


def seen(outside: Outside, **more: Any) -> list[Event]:
    return settled(sealed(outside), **more)


def short(events: list[Event]) -> list[str]:
    """Say of each event what it does to which span."""
    signs = {"started": "+", "invoked": "+", "called": "+", "finished": "-", "responded": "-", "returned": "-"}
    return [f"{signs.get(event.kind.partition('.')[2], event.kind)}{event.span or ''}" for event in events]


def event(seq: int, kind: str, span: str | None, parent: str | None, elapsed_us: int, data: Any = None) -> Event:
    return Event(v=1, run="run_x", seq=seq, time="2026-01-01T00:00:00.000000Z", elapsed_us=elapsed_us, kind=kind,
                 span=span, parent=parent, data={"name": "n"} if data is None else data, prev="", hash="")  # fmt: skip


def test_children_that_came_first_stand_in_their_parents() -> None:
    events = seen(written([Span("b", "a", 3, 5), Span("a", None, 1, 9)], [FINISH]))
    assert short(events) == ["+0", "emitter.described", "+a", "+b", "-b", "-a", "-0"]
    assert [one.elapsed_us for one in events] == [0, 0, 0, 2, 4, 8, 8]
    assert [one.seq for one in events] == [0, 1, 4, 2, 3, 5, 6]


def test_the_run_starts_at_its_earliest_event_and_ends_at_its_latest() -> None:
    outside = written([Span("b", "a", 30, 50)], [FINISH], [Span("a", None, 10, 90)], [FINISH])
    assert min(one.elapsed_us for one in sealed(outside)) == -20
    events = seen(outside)
    assert (events[0].kind, events[0].elapsed_us, events[0].time) == ("run.started", 0, utc_text(BASE_US + 10))
    assert (events[-1].kind, events[-1].elapsed_us, events[-1].time) == ("run.finished", 80, utc_text(BASE_US + 90))
    assert min(one.elapsed_us for one in events) == 0
    assert Timeline().take_all(events).finish().duration_us == 80


def test_a_span_that_was_told_anew_is_what_was_told_last() -> None:
    again = Span("t", "s", 3, 8, "model.invoked", {"model": "m", "request": "q"}, {"status": "error"})
    between = Span("t", "r", 2, 7, "tool.called", {"name": "other"}, {"status": "cancelled"})
    outside = written([CALL, Span("r", None, 1, 9), Span("s", "r", 1, 9)], [between], [again], [FINISH])
    events = seen(outside)
    opening, closing = (one for one in events if one.span == "t" and one.kind.startswith("model."))
    assert (opening.kind, opening.data, opening.key, opening.parent) == (again.opens, again.opened, key_of(again), "s")
    assert (opening.seq, opening.elapsed_us, opening.time) == (2, 2, utc_text(BASE_US + 3))
    assert (closing.kind, closing.data["status"], closing.parent) == ("model.responded", "error", "s")
    assert (closing.seq, closing.elapsed_us, closing.time) == (3, 7, utc_text(BASE_US + 8))
    told_anew = [one for one in events if one.kind == "span.revised"]
    assert [sorted(one.data) for one in told_anew] == [
        ["elapsed_us", "opens", "why"],
        ["elapsed_us", "opens", "parent", "why"],
    ]
    rows = [row for row in Timeline().take_all(events).rows() if not row.quiet]
    assert [(row.depth, row.kind, row.name) for row in rows] == [(0, "step", "s"), (1, "step", "s"), (2, "model", "m")]


def test_a_parent_that_was_told_before_the_last_time_still_holds() -> None:
    first, last = Span("t", "s", 2, 4), Span("t", "s", 2, 5)
    events = seen(written([Span("t", "r", 2, 4), Span("s", None, 1, 9)], [first], [last]))
    assert [one.parent for one in events if one.span == "t"][:2] == ["s", "s"]


def test_what_adopts_the_run_does_so_after_it_was_told_anew() -> None:
    root = {"name": "shop", "adopts": True}
    outside = written([Span("r", None, 1, 9, opened=root, closed={"status": "ok", "adopts": True})])
    outside.take([Span("r", None, 1, 9, opened={"name": "store"})])
    summary = Timeline().take_all(seen(outside)).finish()
    assert summary.name == "store"
    assert [one.data.get("adopts") for one in seen(outside) if one.span == "r"] == [True, True, None]


def test_a_span_that_is_not_there_and_is_told_anew_stays_a_point() -> None:
    events = [
        event(0, "run.started", "0", None, 0, {"external_id": "x", "received": {"by": "otlp"}}),
        event(1, "span.revised", "gone", "0", 5, {"why": "joined", "opens": "step.started", "opened": {"name": "a"}}),
    ]
    assert short(settled(events)) == ["+0", "span.revisedgone"]
    assert [row.quiet for row in Timeline().take_all(settled(events)).rows()] == [True]


def test_what_a_revision_says_may_be_a_reference_as_a_whole() -> None:
    same = {"$same": "1#"}
    events = [
        event(0, "run.started", "0", None, 0, {"external_id": "x", "received": {"by": "otlp"}}),
        event(1, "step.started", "a", "0", 1),
        event(2, "step.finished", "a", "0", 2),
        event(3, "span.revised", "a", "0", 2, {"why": "joined", "opened": same, "closed": {"status": "ok"}}),
    ]
    assert settled(events, lambda value: {"name": "what it was"})[1].data == {"name": "what it was"}


@given(st.dictionaries(
    st.sampled_from(["why", "opens", "opened", "closed", "elapsed_us", "parent"]),
    st.sampled_from([None, 1, "step.started", "tool.called", "run.started", "no.kind", [], [1], [1, 2], [1, 10**30], {}, {"name": 1}]),
))  # fmt: skip
def test_a_revision_of_any_form_raises_nothing(data: dict[str, Any]) -> None:
    events = [
        event(0, "run.started", "0", None, 0, {"external_id": "x", "received": {"by": "otlp"}}),
        event(1, "step.started", "a", "0", 1),
        event(2, "step.finished", "a", "0", 2, {"status": "ok"}),
        event(3, "span.revised", "a", "0", 2, data),
    ]
    rows = list(Timeline().take_all(settled(events)).rows())
    assert sorted(row.seq for row in rows) == [1, 3]


def test_ends_come_after_the_body_and_then_what_was_added_while_it_was_ended() -> None:
    outside = written([Span("a", None, 1, 5)], [FINISH])
    outside.write("ci.reported", {"job": "test"}, 3)
    outside.take([Span("b", "a", 2, 3)])
    outside.write("note.added", {"text": "while it went on"}, 2)
    outside.finish()
    outside.write("run.invalidated", {"why": "wrong"}, 0)
    events = seen(outside)
    assert short(events)[2:] == [
        *("+a", "note.added", "+b", "-b", "-a"), *("-0", "run.reopened", "-0"), *("ci.reported", "run.invalidated"),
    ]  # fmt: skip
    summary = Timeline().take_all(events).finish()
    assert (summary.after, summary.ended, summary.duration_us) == (2, "ok", 4)


def test_of_one_moment_outer_spans_begin_first_and_end_last() -> None:
    spans = [
        Span("inner", "outer", 5, 5),
        Span("outer", "all", 5, 5),
        Span("all", None, 1, 5),
        Span("next", None, 5, 6),
    ]
    events = seen(written(spans))
    assert short(events)[2:] == ["+all", "+next", "+outer", "+inner", "-inner", "-outer", "-all", "-next"]


def test_nothing_stands_before_what_it_is_in_whatever_the_clocks_said() -> None:
    outside = written([Span("b", "a", 1, 4), Span("a", None, 3, 2)], [Log("a", 0, {"body": "x"})])
    events = seen(outside)
    assert short(events)[2:] == ["+a", "log.emitted", "+b", "-a", "-b"]
    assert [one.elapsed_us for one in events][2:] == [3, 0, 1, 2, 4]
    rows = [row for row in Timeline().take_all(events).rows() if not row.quiet]
    assert [(row.depth, row.kind, row.duration_us) for row in rows] == [
        (0, "step", 0), (1, "log.emitted", None), (1, "step", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parents", "rows"),
    [
        ({"a": "a"}, "a0"),
        ({"a": "b", "b": "a"}, "a0 b1"),
        ({"a": "b", "b": "a", "c": "b"}, "a0 b1 c2"),
        ({"c": "a", "a": "b", "b": "c"}, "a0 c1 b2"),
        ({"a": "gone", "b": "a"}, "a0 b1"),
    ],
)
def test_spans_that_are_in_each_other_stand_at_the_top(parents: dict[str, str], rows: str) -> None:
    spans = [Span(one, parents[one], at, 9, opened={"name": one}) for at, one in enumerate(sorted(parents))]
    for order in (spans, spans[::-1]):
        found = Timeline().take_all(seen(written(order))).rows()
        assert " ".join(f"{row.name}{row.depth}" for row in found if not row.quiet) == rows
        assert {one.parent for one in seen(written(order)) if one.span == "a"} == {
            "gone" if parents["a"] == "gone" else "0"
        }


def test_spans_as_deep_as_may_be_are_no_matter() -> None:
    deep = 20_000
    spans = [Span(str(at), str(at - 1) if at > 1 else None, at, 3 * deep - at) for at in range(1, deep)]
    events = seen(written(reversed(spans)))
    assert [one.span for one in events[2 : deep + 1]] == [str(at) for at in range(1, deep)]
    assert max(row.depth for row in Timeline().take_all(events).rows()) == deep - 2


def test_a_span_that_was_half_written_when_its_writer_died_counts_once() -> None:
    outside = written([Span("a", None, 1, 9)])
    outside.write("step.started", {"name": "s"}, 2, span="b", parent="a")
    outside.take([Span("b", "a", 2, 3)])
    events = seen(outside)
    assert short(events)[2:] == ["+a", "+b", "-b", "-a"]
    assert Timeline().take_all(events).finish().in_flight == []


def test_a_recorded_run_is_taken_as_it_is_and_event_by_event() -> None:
    taken = []

    def lines() -> Iterator[Event]:
        for seq in range(10):
            taken.append(seq)
            yield event(seq, "note.added" if seq else "run.started", None, "0", -seq)

    going_on = standing(lines())
    assert [next(going_on).seq, next(going_on).seq] == [0, 1]
    assert taken == [0, 1]
    assert list(standing([])) == []


def test_it_is_said_what_made_a_run_of_what_came() -> None:
    assert told({"by": "otlp", "rule": "session", "trace": "t"}, "s1") == "otlp, session s1; in the order of the times"
    assert (told(None, "x"), told("odd", None)) == ("", "")


def test_logs_stand_in_their_spans_and_say_what_they_hold() -> None:
    logs = [
        Log("a", 2, {"name": "gen_ai.choice", "severity": "INFO", "body": {"content": "hello"}}),
        Log("a", 3, {"severity": "WARN", "body": "disk is full"}),
        Log(None, 4, {"body": 7}),
        Log("gone", 5, {}),
    ]
    rows = list(Timeline().take_all(seen(written([*logs, Span("a", None, 1, 9)]))).rows())
    assert [(row.depth, row.kind, row.name, row.detail) for row in rows if not row.quiet] == [
        (0, "step", "s", ""),
        (1, "log.emitted", "gen_ai.choice", 'INFO {content: "hello"}'),
        (1, "log.emitted", "", "WARN disk is full"),
        (0, "log.emitted", "", "7"),
        (0, "log.emitted", "", ""),
    ]
    assert [(row.kind, row.detail) for row in rows if row.quiet] == [("emitter.described", "shop")]
