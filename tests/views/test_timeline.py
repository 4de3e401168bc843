from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.views.diff.stories import diffed

from playhead.event.envelope import Event
from playhead.event.kinds import PAYLOADS
from playhead.event.plain import text_mark
from playhead.views.moments import Moments
from playhead.views.spans import tree
from playhead.views.timeline import Timeline, window


class Story:
    """Write events by hand."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(
        self, kind: str, data: Any = None, span: str | None = None, parent: str | None = "0", lane: str = "0"
    ) -> Story:
        seq = len(self.events)
        self.events.append(
            Event(
                v=1,
                run="run_x",
                seq=seq,
                time="2026-01-01T00:00:00.000000Z",
                elapsed_us=seq * 1000,
                kind=kind,
                span=span,
                parent=parent,
                lane=lane,
                data={} if data is None else data,
                prev="",
                hash="",
            )
        )
        return self


def moment_at(events: list[Event], seq: int) -> Any:
    moments = Moments(lambda number: events[number])
    for event in events:
        moments.take(event)
    return moments.at(seq)


def started() -> Story:
    return Story().add("run.started", {"name": "n", "input": {"intent": "n"}}, span="0", parent=None)


def test_interleaved_children_stand_under_their_own_parents():
    story = started()
    story.add("step.started", {"name": "a"}, "1", lane="0.1").add("step.started", {"name": "b"}, "2", lane="0.2")
    story.add("note.added", {"text": "in a"}, None, "1").add("note.added", {"text": "in b"}, None, "2")
    story.add("step.finished", {"status": "ok"}, "2").add("note.added", {"text": "in a too"}, None, "1")
    story.add("step.finished", {"status": "error", "error": {"type": "E", "message": "m"}}, "1")
    rows = list(Timeline().take_all(story.events).rows())
    assert [(row.depth, row.name or row.detail) for row in rows] == [
        (0, "a"),
        (1, "in a"),
        (1, "in a too"),
        (0, "b"),
        (1, "in b"),
    ]
    assert [(row.status, row.duration_us, row.error) for row in rows if row.kind == "step"] == [
        ("error", 6000, "E: m"), ("ok", 3000, None),
    ]  # fmt: skip


def test_the_summary_counts_and_knows_how_it_ended():
    story = started()
    story.add("model.invoked", {"model": "m"}, "1").add(
        "model.responded", {"status": "ok", "usage": {"input": 3, "output": 4}}, "1"
    )
    story.add("model.invoked", {"model": "m"}, "2").add(
        "model.responded", {"status": "error", "error": {"type": "E"}}, "2"
    )
    story.add("tool.called", {"name": "t"}, "3").add("tool.returned", {"status": "ok"}, "3")
    story.add("gap.noted", {"reason": "disk_full", "count": 3}).add("gap.noted", {"reason": "disk_full"})
    story.add("run.finished", {"status": "ok", "output": 5, "redacted": {"openai_key": 2}}, "0", None)
    story.add("run.invalidated", {"why": "w", "by": "b"}, None, None)
    summary = Timeline().take_all(story.events).finish()
    assert (summary.model_calls, summary.tool_calls, summary.tokens_in, summary.tokens_out) == (2, 1, 3, 4)
    assert (summary.ended, summary.output, summary.after, summary.events) == ("ok", 5, 1, 11)
    assert summary.gaps == {"disk_full": 4}
    assert summary.redacted == {"openai_key": 2}
    assert summary.invalidated == {"seq": 10, "why": "w", "by": "b"}
    assert summary.duration_us == 9000
    assert summary.models == ["m"]


def test_a_reopened_run_has_no_end_until_the_next_one():
    story = started().add("run.finished", {"status": "ok"}, "0", None).add("run.reopened", {}, None, None)
    assert Timeline().take_all(story.events).finish().ended is None
    story.add("run.finished", {"status": "error"}, "0", None)
    assert Timeline().take_all(story.events).finish().ended == "error"


def test_the_agent_that_adopts_a_run_gives_it_its_name_and_request():
    story = started().add("step.started", {"name": "agent", "adopts": True, "input": {"intent": "agent"}}, "1")
    summary = Timeline().take_all(story.events).finish()
    assert (summary.name, summary.request) == ("agent", {"intent": "agent"})


def test_tags_of_the_run_and_of_the_agent_that_adopts_it_are_one():
    story = Story().add("run.started", {"name": "n", "tags": {"team": "x", "tier": "1"}}, span="0", parent=None)
    story.add("step.started", {"name": "agent", "adopts": True, "tags": {"team": "ops"}}, "1")
    assert Timeline().take_all(story.events).finish().tags == {"team": "ops", "tier": "1"}


def recorded_program() -> Story:
    story = Story().add("run.started", {"name": "n"}, span="0", parent=None)
    return story.add("process.started", {"argv": ["python", "agent.py"]}, "1")


def shown(story: Story) -> list[tuple[int, int]]:
    return [(row.seq, row.depth) for row in Timeline().take_all(story.events).rows()]


def test_what_a_program_wrote_stands_in_the_step_that_was_going_on():
    story = recorded_program().add("step.started", {"name": "agent", "adopts": True}, "2")
    story.add("output.written", {"stream": "stdout", "text": "hello\n"}, None, "1")
    story.add("tool.called", {"name": "t"}, "4", "2").add(
        "output.written", {"stream": "stdout", "text": "x"}, None, "1"
    )
    story.add("tool.returned", {"status": "ok"}, "4").add("step.finished", {"status": "ok"}, "2")
    story.add("output.written", {"stream": "stderr", "text": "bye"}, None, "1")
    story.add("process.exited", {"status": "ok", "exit_code": 0}, "1").add("note.added", {"text": "late"})
    assert shown(story) == [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 1), (10, 0)]


def test_what_a_program_wrote_while_several_things_went_on_belongs_to_none_of_them():
    story = recorded_program().add("step.started", {"name": "agent"}, "2")
    story.add("tool.called", {"name": "a"}, "3", "2", "0.1").add("tool.called", {"name": "b"}, "4", "2", "0.2")
    story.add("output.written", {"stream": "stdout", "text": "who?"}, None, "1")
    assert shown(story) == [(1, 0), (2, 1), (3, 2), (4, 2), (5, 2)]


def test_a_process_that_an_agent_starts_is_not_the_program_of_the_run():
    story = Story().add("run.started", {"name": "n", "agent": {"name": "n"}}, span="0", parent=None)
    story.add("process.started", {"argv": ["ls"]}, "1").add("step.started", {"name": "beside"}, "2")
    assert shown(story) == [(1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"argv": ["git", "commit", "-m", "fix it"]}, "git commit -m 'fix it'"),
        ({"argv": ["make test | tail -3"], "shell": True}, "make test | tail -3"),
        ({"argv": ["/opt/my tool"]}, "/opt/my tool"),
        ({"argv": "odd"}, "process"),
    ],
)
def test_a_process_is_one_line_with_its_command_and_its_exit_code(asked: dict[str, Any], name: str):
    story = started().add("process.started", asked, "1")
    story.add("process.exited", {"status": "error", "exit_code": 2, "stdout": "x"}, "1")
    (row,) = Timeline().take_all(story.events).rows()
    assert (row.kind, row.name, row.status, row.result) == ("process", name, "error", "exit 2")


def steps(*turns: tuple[str, dict[str, Any], str]) -> list[str]:
    story = started()
    for number, (name, attributes, status) in enumerate(turns, 1):
        story.add("step.started", {"name": name, "attempt": number, "attributes": attributes}, str(number))
        story.add("step.finished", {"status": status}, str(number))
    return [row.detail for row in Timeline().take_all(story.events).rows()]


def test_a_name_that_is_no_valid_unicode_is_shown_as_text():
    name = text_mark("caf\udce9.txt")  # as a file is called whose name is Latin-1
    story = Story().add("run.started", {"name": name}, "0", None).add("step.started", {"name": name}, "1")
    timeline = Timeline().take_all(story.events)
    assert [timeline.summary.name, *(row.name for row in timeline.rows())] == ["caf\\udce9.txt"] * 2


def test_turns_of_a_loop_are_not_attempts():
    assert steps(("s", {"i": 0}, "ok"), ("s", {"i": 1}, "ok"), ("s", {"i": 2}, "ok")) == ["i=0", "i=1", "i=2"]
    assert steps(("s", {}, "ok"), ("s", {}, "ok")) == ["", ""]
    assert steps(("s", {"i": 0}, "error"), ("s", {"i": 1}, "ok")) == ["i=0", "i=1"]


def test_the_same_step_after_a_failure_is_an_attempt_until_it_succeeds():
    turns = ("s", {"i": 0}, "error"), ("s", {"i": 0}, "cancelled"), ("s", {"i": 0}, "ok"), ("s", {"i": 0}, "ok")
    assert steps(*turns) == ["i=0", "attempt 2, i=0", "attempt 3, i=0", "i=0"]


def test_steps_side_by_side_are_not_attempts():
    story = started()
    for number in range(1, 5):
        story.add("step.started", {"name": "s", "attempt": number}, str(number), lane=f"0.{number}")
    for number in range(1, 5):
        story.add("step.finished", {"status": "error"}, str(number))
    assert [row.detail for row in Timeline().take_all(story.events).rows()] == [""] * 4


def test_what_a_tape_answered_cost_nothing():
    paid = {"status": "ok", "cost": 0.5, "usage": {"input": 3, "output": 4}}
    costs = {}
    for mode in ("exact", "fork", "model"):
        story = Story().add("run.started", {"origin": {"mode": mode, "run": "r"}}, span="0", parent=None)
        for span in "12":
            story.add("model.invoked", {"model": "m"}, span).add("model.responded", paid, span)
        story.add("replay.reported", {"live_spans": ["2"] if mode == "fork" else []})
        costs[mode] = Timeline().take_all(story.events).finish().cost
        assert moment_at(story.events, 4).cost == costs[mode]
    assert costs == {"exact": 0.0, "fork": 0.5, "model": 0.0}


def test_a_model_call_without_an_answer_says_so():
    story = started().add("model.invoked", {"model": "m"}, "1").add("model.responded", {"status": "ok"}, "1")
    story.add("model.invoked", {"model": "m"}, "3").add("model.responded", {"status": "ok", "finish": "stop"}, "3")
    story.add("model.invoked", {"model": "m"}, "5").add("model.responded", {"status": "error"}, "5")
    story.add("model.invoked", {"model": "m"}, "7").add("model.responded", {"status": "ok", "response": "hi"}, "7")
    rows = list(Timeline().take_all(story.events).rows())
    assert [(row.unanswered, row.answer) for row in rows] == [(True, ""), (False, ""), (False, ""), (False, '"hi"')]


def test_an_error_that_was_written_as_a_reference_is_followed():
    whole = {"type": "E", "message": "m", "cause": {"type": "C", "message": "c"}}
    story = started().add("step.started", {"name": "s"}, "1")
    story.add("step.finished", {"status": "error", "error": {"$same": "1#/error"}}, "1")
    (row,) = Timeline(lambda value: whole).take_all(story.events).rows()
    assert (row.error, row.causes) == ("E: m", ["caused by C: c"])


def test_a_program_that_was_killed_left_spans_in_flight_and_says_the_signal():
    story = recorded_program().add("step.started", {"name": "s"}, "2")
    story.add("process.exited", {"status": "error", "exit_code": -9}, "1")
    story.add("run.finished", {"status": "error", "error": {"type": "ProgramKilled"}}, "0", None)
    timeline = Timeline().take_all(story.events)
    assert [item["name"] for item in timeline.finish().in_flight] == ["s"]
    assert next(timeline.rows()).result == "killed by SIGKILL"


def test_redactions_that_nobody_counted_are_those_that_events_show():
    story = (
        started()
        .add("note.added", {"text": "[redacted:env] [redacted:url]"})
        .add("note.added", {"text": "[redacted:env]"})
    )
    timeline = Timeline().take_all(story.events)
    for _ in range(2):
        summary = timeline.finish()
        assert (summary.redacted, summary.redacted_at_least) == ({"env": 2, "url": 1}, ["env", "url"])
    story.add("run.finished", {"status": "error", "redacted": {"env": 7}}, "0", None)
    summary = timeline.take_all(story.events[-1:]).finish()
    assert (summary.redacted, summary.redacted_at_least) == ({"env": 7, "url": 1}, ["url"])


def test_where_an_error_only_says_that_the_program_failed_its_last_words_are_kept():
    story = recorded_program()
    story.add("output.written", {"stream": "stderr", "text": "Traceback\nKeyError: 'x'\n\n"}, None, "1")
    story.add("output.written", {"stream": "stdout", "text": "done\n"}, None, "1")
    failed = Story()
    failed.events = list(story.events)
    story.add("run.finished", {"status": "error", "error": {"type": "ProgramFailed"}}, "0", None)
    assert Timeline().take_all(story.events).finish().last_words == "KeyError: 'x'"
    failed.add("run.finished", {"status": "error", "error": {"type": "KeyError"}}, "0", None)
    assert Timeline().take_all(failed.events).finish().last_words is None


def test_what_was_open_at_the_end_is_in_flight():
    story = (
        started()
        .add("step.started", {"name": "s"}, "1")
        .add("http.sent", {"method": "GET", "url": "http://x"}, "2", "1")
    )
    flying = Timeline().take_all(story.events).finish().in_flight
    assert [(item["seq"], item["name"]) for item in flying] == [(1, "s"), (2, "GET http://x")]


def test_references_are_followed_only_where_a_row_says_them():
    asked: list[Any] = []

    def resolve(value: Any) -> Any:
        asked.append(value)
        return "resolved"

    story = started().add("model.invoked", {"model": "m", "request": {"$same": "0#/big"}}, "1")
    story.add("tool.called", {"name": "t", "input": {"x": {"$same": "0#/small"}}}, "2")
    rows = list(Timeline(resolve).take_all(story.events).rows())
    assert rows[1].detail == 'x="resolved"'
    assert asked == [{"$same": "0#/small"}]


def test_nesting_of_any_depth_can_be_laid_out():
    story = started()
    for depth in range(5000):
        story.add("step.started", {"name": str(depth)}, str(depth + 1), str(depth))
    rows = list(Timeline().take_all(story.events).rows())
    assert [row.depth for row in rows] == list(range(5000))


def test_a_window_keeps_the_beginning_and_the_end():
    story = started()
    for number in range(100):
        story.add("note.added", {"text": str(number)})
    rows = list(Timeline().take_all(story.events).rows())
    head, left_out, tail = window(rows, 10)
    assert ([row.seq for row in head], left_out, [row.seq for row in tail]) == ([*range(1, 9)], 90, [99, 100])
    assert window(rows, 0) == (rows, 0, [])
    assert window(rows, None) == (rows, 0, [])
    head, left_out, tail = window(rows, 1)
    assert (len(head), left_out, tail) == (1, 99, [])


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(max_size=3) | st.sampled_from(
            ["name", "argv", "usage", "input", "output", "error", "status", "count", "size", "redacted", "text",
             "files", "attempt", "$same", "$blob", "adopts", "reads", "commit", "exit_code", "attributes", "type"]
        ),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


kinds = st.sampled_from([*PAYLOADS, "my.own"])
spans = st.sampled_from([None, "0", "1", "2"])
fields = st.sampled_from(sorted({name for payload in PAYLOADS.values() for name in payload.__struct_fields__}))


@given(st.lists(st.tuples(kinds, anything, spans, spans), max_size=12))
def test_no_line_however_wrong_its_data_breaks_the_views(entries):
    story = Story()
    for kind, data, span, parent in entries:
        story.add(kind, data, span, parent)
    timeline = Timeline().take_all(story.events)
    timeline.finish()
    for row in timeline.rows():
        row.as_dict()


@given(st.lists(st.tuples(kinds, st.dictionaries(fields, anything, max_size=5), spans, spans), max_size=10))
@settings(max_examples=60)
def test_no_data_however_wrong_breaks_a_moment_or_a_diff(entries):
    story = started()
    for kind, data, span, parent in entries:
        story.add(kind, data, span, parent)
    moment_at(story.events, len(entries)).as_dict()
    assert not diffed(story.events, story.events).deviations
    diffed(story.events, story.events[:-1] or story.events, durations=True, ignore=["/output/x"]).as_dict()


@pytest.mark.parametrize("kind", PAYLOADS)
def test_every_kind_has_a_row_or_is_the_run_itself(kind):
    timeline = Timeline().take_all(started().add(kind, {"name": "x", "argv": ["ls"]}, "7").events)
    rows = list(timeline.rows())
    assert len(rows) == (0 if kind in ("run.started", "run.finished") else 1)


def test_messages_of_mcp_are_rows_and_notifications_of_one_sort_are_one() -> None:
    story = started()
    story.add("mcp.requested", {"method": "tools/list", "server": "npx files"}, "1", "0")
    for done in (1, 2, 3):
        story.add(
            "mcp.notified",
            {"method": "notifications/progress", "params": {"progress": done}, "from_server": True},
            None,
            "1",
        )
    story.add("mcp.notified", {"method": "notifications/message", "server": "npx files"}, None, "1")
    story.add("mcp.answered", {"status": "ok", "result": {"tools": []}}, "1", "0")
    listed, progress, message = Timeline().take_all(story.events).rows()
    assert (listed.kind, listed.name, listed.detail, listed.status) == ("mcp", "tools/list", "to npx files", "ok")
    assert listed.result == "{tools: []}"
    assert (progress.name, progress.detail, progress.folded) == ("notifications/progress", "from the server", 3)
    assert (message.name, message.detail, message.parent) == ("notifications/message", "to npx files", listed.seq)


ASKS = {"status": "ok", "http": {"status": 200}, "response": {"content": [
    {"type": "tool_use", "name": "grep", "input": {}}, {"type": "tool_use", "name": "read_issue", "input": {"number": 1}}]}}  # fmt: skip


def test_a_tool_that_was_inferred_took_no_time_that_anybody_knows():
    story = started().add("tool.called", {"name": "slow", "inferred": True}, "1")
    story.add("tool.returned", {"status": "ok", "inferred": True}, "1")
    story.add("step.started", {"name": "turn 1", "inferred": True}, "2").add("step.finished", {"status": "ok"}, "2")
    tool, turn = Timeline().take_all(story.events).rows()
    assert (tool.status, tool.duration_us) == ("ok", None)
    assert turn.duration_us == 1000
    assert [view.duration_us for view in tree(story.events)[0].children] == [None, 1000]


@pytest.mark.parametrize("early", [True, False])
def test_a_tool_that_was_asked_for_and_of_which_nothing_was_seen_is_named(early):
    def ran() -> None:
        story.add("tool.called", {"name": "grep", "asked_by": "1"}, "2").add("tool.returned", {"status": "ok"}, "2")

    story = started().add("model.invoked", {"model": "m"}, "1")
    if early:
        ran()
    story.add("model.responded", ASKS, "1")
    if not early:
        ran()
    answered = 4 if early else 2
    assert Timeline().take_all(story.events).finish().no_result == [
        {"seq": answered, "name": "read_issue", "arguments": "number=1"}
    ]
    story.add("tool.called", {"name": "read_issue", "asked_by": "1", "inferred": True}, "3")
    assert Timeline().take_all(story.events).finish().no_result == []


@pytest.mark.parametrize(
    ("invoked", "responded", "silent"),
    [
        ({"operation": "chat"}, {"response": "a"}, 1),
        ({}, {"chunks": {"sizes": [1]}}, 1),
        ({"operation": 5}, {"response": "a", "usage": {"cached": 3}}, 1),
        ({"operation": "chat"}, {"response": "a", "usage": {"input": 0, "output": 0}}, 0),
        ({"operation": "chat"}, {"response": "a", "status": "error"}, 0),
        ({"operation": "chat"}, {}, 0),  # nobody recorded an answer
        ({"operation": "embeddings"}, {"response": "a"}, 0),
        ({"operation": "batchEmbedContents"}, {"response": "a"}, 0),
        ({"operation": "countTokens"}, {"response": "a"}, 0),
        ({"operation": "count_tokens"}, {"response": "a"}, 0),
    ],
)
def test_answers_that_do_not_say_their_tokens_are_counted_where_one_expects_them(invoked, responded, silent):
    story = started().add("model.invoked", {"model": "m", **invoked}, "1")
    story.add("model.responded", {"status": "ok", **responded}, "1")
    assert Timeline().take_all(story.events).finish().calls_without_usage == silent


@pytest.mark.parametrize("early", [True, False])
def test_of_two_calls_of_one_tool_the_one_that_was_not_run_is_named(early):
    asks = [{"type": "tool_use", "id": id, "name": "grep", "input": {"for": id}} for id in "ab"]
    answer = {"status": "ok", "http": {"status": 200}, "response": {"content": asks}}
    for call, left in (("a", ["b"]), ("b", ["a"]), (None, ["b"]), ("elsewhere", ["b"])):
        story = started().add("model.invoked", {"model": "m"}, "1")
        kinds = [
            ("tool.called", {"name": "grep", "asked_by": "1", "call": call}, "2"),
            ("model.responded", answer, "1"),
        ]
        for one in kinds if early else kinds[::-1]:
            story.add(*one)
        no_result = Timeline().take_all(story.events).finish().no_result
        assert [item["arguments"] for item in no_result] == [f'for="{one}"' for one in left]


@pytest.mark.parametrize("change", [{"http": None}, {"status": "error"}])
def test_of_answers_by_hand_and_of_failed_ones_nothing_is_awaited(change):
    story = started().add("model.invoked", {"model": "m"}, "1").add("model.responded", {**ASKS, **change}, "1")
    assert Timeline().take_all(story.events).finish().no_result == []


def test_a_gap_that_loses_nothing_says_what_was_not_captured():
    story = started().add(
        "gap.noted", {"reason": "not_captured", "count": 0, "detail": {"source": "grpc", "where": "h"}}
    )
    missed = {"version": "3.9.1", "executable": "/usr/bin/python3", "why": "too old"}
    story.add("gap.noted", {"reason": "python_not_attached", "count": 0, "detail": missed})
    story.add("gap.noted", {"reason": "not_captured", "count": 0, "detail": {"source": "grpc", "where": "h"}})
    story.add("gap.noted", {"reason": "not_captured", "detail": 5}).add("gap.noted", {"reason": "full", "count": 2})
    timeline = Timeline().take_all(story.events)
    summary = timeline.finish()
    inside = "what happens inside Python 3.9.1 (/usr/bin/python3): too old"
    assert (summary.not_captured, summary.gaps) == (["grpc h", inside, "something"], {"full": 2})
    assert [(row.status, row.detail) for row in timeline.rows()] == [
        ("unseen", "grpc h"), ("unseen", inside), ("unseen", "grpc h"), ("unseen", "something"), ("error", "2 lost")
    ]  # fmt: skip
    assert moment_at(story.events, len(story.events) - 1).gaps == 1
