from __future__ import annotations

import random
import sys
import tracemalloc
from typing import Any

import msgspec
import pytest

from playhead.event.envelope import Event
from playhead.views.metrics import metrics_of
from playhead.views.moments import Moment, Moments

PRICED = [{"input": [[0, 2.5]], "output": [[0, 10.0]]}]


def state_at(story: list[Event], seq: int) -> Moment:
    """Take a whole story, and return how it stood at one event."""
    moments = Moments(lambda number: story[number], lambda provider, model: PRICED if model == "gpt-4o" else None)
    for event in story:
        moments.take(event)
    return moments.at(seq)


def events(*entries: tuple[str, dict[str, Any], str | None]) -> list[Event]:
    return [
        Event(
            v=1,
            run="run_x",
            seq=seq,
            time="t",
            elapsed_us=seq * 10,
            kind=kind,
            span=span,
            parent="0",
            data=data,
            prev="",
            hash="",
        )
        for seq, (kind, data, span) in enumerate(entries)
    ]


STORY = events(
    ("run.started", {"name": "n", "context_pack": "d0"}, "0"),
    ("step.started", {"name": "plan"}, "1"),
    ("model.invoked", {"model": "m", "request": "first"}, "2"),
    ("model.responded", {"status": "ok", "response": "one", "usage": {"input": 5, "output": 2}}, "2"),
    ("artifact.created", {"name": "context_pack.json", "role": "context_pack", "digest": "d1", "size": 3}, None),
    ("policy.checked", {"capability": "write", "decision": "deny", "resource": "/"}, None),
    ("step.finished", {"status": "ok"}, "1"),
    ("model.invoked", {"model": "m", "request": "second"}, "7"),
    ("artifact.created", {"name": "patch", "digest": "d2", "size": 3}, None),
    ("run.finished", {"status": "ok"}, "0"),
    ("run.invalidated", {"why": "w"}, None),
)


def test_nothing_that_came_later_is_known():
    state = state_at(STORY, 2)
    assert (state.seq, state.kind, state.elapsed_us) == (2, "model.invoked", 20)
    assert [(item["seq"], item["since_us"]) for item in state.open_spans] == [(1, 10), (2, 20)]
    assert state.last_request == {"seq": 2, "model": "m", "request": "first"}
    assert state.last_answer is None
    assert state.context_pack == {"seq": 0, "digest": "d0", "name": None}
    assert (state.tokens_in, state.policy_checks, state.artifacts, state.finished) == (0, [], [], False)


def test_the_latest_of_each_is_in_force():
    state = state_at(STORY, 8)
    assert state.last_request is not None
    assert state.last_request["request"] == "second"
    assert state.last_answer is not None
    assert (state.last_answer["seq"], state.last_answer["response"]) == (3, "one")
    assert state.context_pack == {"seq": 4, "digest": "d1", "name": "context_pack.json"}
    assert [(check["seq"], check["decision"]) for check in state.policy_checks] == [(5, "deny")]
    assert [made["name"] for made in state.artifacts] == ["context_pack.json", "patch"]
    assert (state.tokens_in, state.tokens_out, state.model_calls) == (5, 2, 2)
    assert [item["name"] for item in state.open_spans] == ["m"]


def test_the_end_is_known_and_what_follows_it_keeps_it():
    assert state_at(STORY, 9).finished
    assert state_at(STORY, 10).finished


def test_how_the_run_had_ended_is_known_from_its_end_on():
    error = {"type": "E", "message": "m"}
    story = events(
        ("run.started", {"name": "n"}, "0"),
        ("run.finished", {"status": "error", "error": error}, "0"),
        ("run.reopened", {}, None),
    )
    states = [state_at(story, seq) for seq in range(3)]
    assert [(state.finished, state.ended, state.error) for state in states] == [
        (False, None, None), (True, "error", error), (False, None, None),
    ]  # fmt: skip


def test_only_what_is_asked_for_is_looked_up():
    asked: list[int] = []

    def fetch(seq: int) -> Event:
        asked.append(seq)
        return msgspec.structs.replace(STORY[seq], data={**STORY[seq].data, "request": "whole"})

    moments = Moments(fetch)
    for event in STORY:
        moments.take(event)
    moment = moments.at(10)
    assert (moment.tokens_in, len(moment.artifacts), asked) == (5, 2, [])
    assert moment.last_request is not None
    assert (moment.last_request["request"], asked) == ("whole", [7])


def test_events_after_the_one_asked_for_are_not_read():
    def events_from(seq: int):  # type: ignore[no-untyped-def]
        yield from STORY[seq:5]
        raise AssertionError("read on")

    moments = Moments(lambda number: STORY[number])
    moments.follow(events_from, 3)
    assert moments.at(3).seq == 3
    assert moments.taken == 4
    moments.follow(events_from, 2)
    assert moments.taken == 4


@pytest.mark.parametrize("closes", [0.1, 0.5])
def test_what_is_open_is_known_at_every_event(closes):
    entries: list[tuple[str, dict[str, Any], str | None]] = [("run.started", {"name": "n"}, "0")]
    open_now: list[str] = []
    expected: list[list[str]] = [[]]
    chance = random.Random(4)
    for number in range(400):
        if open_now and chance.random() < closes:
            gone = open_now.pop(chance.randrange(len(open_now)))
            entries.append(("step.finished", {"status": "ok"}, gone))
        else:
            open_now.append(f"s{number}")
            entries.append(("step.started", {"name": f"s{number}"}, f"s{number}"))
        expected.append(list(open_now))
    story = events(*entries)
    moments = Moments(lambda seq: story[seq])
    for event in story:
        moments.take(event)
        assert [one["name"] for one in moments.at(event.seq).open_spans] == expected[event.seq]
    for seq in (*range(401), *range(400, -1, -1)):
        assert [one["name"] for one in moments.at(seq).open_spans] == expected[seq]


def lane(entry: Event, lane: str) -> Event:
    return msgspec.structs.replace(entry, lane=lane)


def test_a_lane_has_the_prompt_and_the_pack_of_those_that_led_to_it():
    plain = events(
        ("run.started", {"name": "n", "context_pack": "d0"}, "0"),
        ("model.invoked", {"model": "m", "request": "main"}, "1"),
        ("model.invoked", {"model": "m", "request": "one"}, "2"),
        ("artifact.created", {"name": "p1", "role": "context_pack", "digest": "d1"}, None),
        ("model.invoked", {"model": "m", "request": "two"}, "3"),
        ("note.added", {"text": "in one"}, None),
        ("note.added", {"text": "in main"}, None),
        ("note.added", {"text": "in three"}, None),
    )
    lanes = ["0", "0", "0.1", "0.1", "0.2", "0.1", "0", "0.3"]
    story = [lane(event, where) for event, where in zip(plain, lanes, strict=True)]
    found = [state_at(story, seq) for seq in range(8)]
    assert [(one.last_request or {}).get("request") for one in found] == [
        None,
        "main",
        "one",
        "one",
        "two",
        "one",
        "two",
        "main",
    ]
    assert [(one.context_pack or {}).get("digest") for one in found] == ["d0", "d0", "d0", "d1", "d0", "d1", "d1", "d0"]


def test_what_a_lane_asked_is_not_hidden_by_what_went_on_beside_it_where_it_began():
    plain = events(
        ("run.started", {"name": "n", "context_pack": "d0"}, "0"),
        ("model.invoked", {"model": "m", "request": "before"}, "1"),
        ("note.added", {"text": "a worker begins"}, None),
        ("model.invoked", {"model": "m", "request": "main"}, "2"),
        ("artifact.created", {"name": "p1", "role": "context_pack", "digest": "d1"}, None),
        ("note.added", {"text": "it goes on"}, None),
        ("model.invoked", {"model": "m", "request": "worker"}, "3"),
        ("model.invoked", {"model": "m", "request": "main again"}, "4"),
        ("note.added", {"text": "it goes on"}, None),
    )
    lanes = ["0", "0", "0.1", "0", "0", "0.1", "0.1", "0", "0.1"]
    story = [lane(event, where) for event, where in zip(plain, lanes, strict=True)]
    found = [state_at(story, seq) for seq in (2, 5, 6, 8)]
    assert [(one.last_request or {}).get("request") for one in found] == ["before", "before", "worker", "worker"]
    assert [(one.context_pack or {}).get("digest") for one in found] == ["d0"] * 4


def test_what_a_task_did_beside_a_question_is_not_taken_for_what_led_to_its_answer():
    plain = events(
        ("run.started", {"name": "n", "context_pack": "d0"}, "0"),
        ("artifact.created", {"name": "p1", "role": "context_pack", "digest": "d1"}, None),
        ("model.invoked", {"model": "m", "request": "plan"}, "1"),
        ("artifact.created", {"name": "p2", "role": "context_pack", "digest": "d2"}, None),
        ("model.invoked", {"model": "m", "request": "title"}, "2"),
        ("model.responded", {"status": "ok", "response": "planned"}, "1"),
        ("note.added", {"text": "done"}, None),
        ("model.responded", {"status": "ok", "response": "titled"}, "2"),
        ("artifact.created", {"name": "p3", "role": "context_pack", "digest": "d3"}, None),
        ("note.added", {"text": "done"}, None),
    )
    lanes = ["0", "0", "0", "0.1", "0.1", "0", "0", "0.1", "0.1", "0"]
    story = [lane(event, where) for event, where in zip(plain, lanes, strict=True)]
    main, beside = ("plan", "planned", "d1"), ("title", "titled", "d2")
    for seq, expected in ((5, main), (6, main), (7, beside), (9, main)):
        found = state_at(story, seq)
        assert found.last_request is not None
        assert found.last_answer is not None
        assert found.context_pack is not None
        told = found.last_request["request"], found.last_answer["response"], found.context_pack["digest"]
        assert told == expected


def test_messages_are_read_off_requests_of_every_shape():
    said = [{"role": "user", "content": "hi"}]
    shapes = {
        "chat": ({"messages": said}, said),
        "responses": ({"instructions": "be", "input": "hi"}, [{"role": "system", "content": "be"}, *said]),
        "messages": ({"system": "be", "messages": said}, [{"role": "system", "content": "be"}, *said]),
        "contents": ({"contents": [{"parts": [{"text": "hi"}]}]}, [{"role": None, "parts": [{"text": "hi"}]}]),
        "text": ("hi", said),
        "nothing": (7, []),
    }
    for request, expected in shapes.values():
        story = events(("run.started", {"name": "n"}, "0"), ("model.invoked", {"model": "m", "request": request}, "1"))
        assert state_at(story, 1).messages == expected


def test_what_was_read_and_spent_by_then_is_known():
    story = events(
        ("run.started", {"name": "n"}, "0"),
        (
            "ambient.read",
            {"reads": [{"of": "os.environ", "by": "a", "values": [{"MODE": "x"}, {"HOME": None}]}], "count": 2},
            None,
        ),
        ("model.invoked", {"model": "gpt-4o"}, "2"),
        ("model.responded", {"status": "ok", "usage": {"input": 1_000_000, "output": 0}}, "2"),
        ("ambient.read", {"reads": [{"of": "os.environ", "by": "a", "values": [{"MODE": "y"}]}], "count": 1}, None),
        ("model.invoked", {"model": "unheard-of"}, "5"),
        ("model.responded", {"status": "ok", "usage": {"input": 7, "output": 1}}, "5"),
    )
    assert [(state_at(story, seq).ambient["reads"], state_at(story, seq).ambient["variables"].get("MODE")) for seq in (0, 1, 3, 4)] == [
        (0, None), (2, "x"), (2, "x"), (3, "y"),
    ]  # fmt: skip
    assert [state_at(story, seq).cost is None for seq in (2, 3)] == [True, False]
    assert state_at(story, 6).cost_unpriced == ["unheard-of"]
    assert [one["value"] for one in state_at(story, 4).ambient["last"]] == [
        {"MODE": "x"},
        {"HOME": None},
        {"MODE": "y"},
    ]


def test_events_from_outside_are_in_the_order_of_their_times():
    arrived = events(
        ("run.started", {"name": "n", "external_id": "trace", "received": {"by": "otlp"}}, "0"),
        ("model.invoked", {"model": "m", "request": "late"}, "2"),
        ("model.invoked", {"model": "m", "request": "early"}, "1"),
    )
    times = [0, 500, 20]
    story = [msgspec.structs.replace(event, elapsed_us=us) for event, us in zip(arrived, times, strict=True)]
    moments = Moments(lambda seq: story[seq])
    moments.follow(lambda seq: story[seq:], 1)
    found = [moments.at(seq).last_request or {} for seq in range(3)]
    assert [one.get("request") for one in found] == [None, "late", "early"]


def test_going_elsewhere_does_not_depend_on_how_long_the_run_is():
    steps: dict[int, int] = {}
    for size in (1_000, 100_000):
        entries = [("run.started", {"name": "n"}, "0")] + [
            ("step.started" if number % 2 else "step.finished", {"name": "s", "status": "ok"}, f"s{(number + 1) // 2}") for number in range(1, size)
        ]  # fmt: skip
        story = events(*entries)  # type: ignore[arg-type]
        moments = Moments(lambda seq, story=story: story[seq])  # type: ignore[misc]
        for event in story:
            moments.take(event)
        moments.at(size // 2)
        counted = 0

        def count(*_: object) -> None:
            nonlocal counted
            counted += 1

        sys.setprofile(count)
        try:
            for seq in range(size - 200, size):
                moment = moments.at(seq)
                assert moment.open_spans is not None
                assert moment.last_request is None
        finally:
            sys.setprofile(None)
        steps[size] = counted
    assert steps[100_000] < 2 * steps[1_000]


def test_spans_that_never_close_and_names_without_a_price_take_memory_in_proportion():
    taken: dict[int, int] = {}
    for size in (2_000, 16_000):
        kinds = ("step.started", "model.invoked", "model.responded", "ambient.read")
        entries: list[tuple[str, dict[str, Any], str | None]] = [("run.started", {"name": "n"}, "0")]
        for number in range(size):
            kind = kinds[number % 4]
            read = {"reads": [{"of": "os.environ", "by": "a", "values": [{f"V{number}": "x"}]}], "count": 1}
            data: dict[str, Any] = {"name": "s", "model": f"m{number // 4}", "usage": {"input": 1}, **read}
            entries.append((kind, data, f"m{number // 4}" if kind.startswith("model") else f"s{number}"))
        story = events(*entries)
        moments = Moments(lambda seq, story=story: story[seq])  # type: ignore[misc]
        tracemalloc.start()
        for event in story:
            moments.take(event)
        taken[size] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        last = moments.at(size)
        assert (len(last.open_spans), len(last.cost_unpriced)) == (size // 4, size // 4)
    assert taken[16_000] < 12 * taken[2_000]


def test_little_is_looked_at_where_little_is_open_after_much_was():
    size = 4_000
    opened = [("step.started", {"name": "s"}, f"s{number}") for number in range(size)]
    closed = [("step.finished", {"status": "ok"}, f"s{number}") for number in range(1, size)]
    story = events(("run.started", {"name": "n"}, "0"), *opened, *closed)
    looked: list[int] = []
    moments = Moments(lambda seq: (looked.append(seq), story[seq])[1])
    for event in story:
        moments.take(event)
    lines = 0

    def count(frame: Any, *_: Any) -> Any:
        nonlocal lines
        lines += 1
        return count

    sys.settrace(count)
    try:
        found = moments.at(len(story) - 1).open_spans
    finally:
        sys.settrace(None)
    assert ([one["seq"] for one in found], looked) == ([1], [1])
    assert lines < size / 4


def test_at_every_event_is_spent_what_metrics_say_of_a_run_that_ended_there():
    prices = lambda provider, model: PRICED if model == "gpt-4o" else None  # noqa: E731
    story = events(
        ("run.started", {"name": "n"}, "0"),
        ("model.invoked", {"model": "gpt-4o", "operation": "embeddings"}, "1"),
        ("model.responded", {"status": "ok"}, "1"),
        ("model.invoked", {"model": "gpt-4o"}, "3"),
        ("model.responded", {"status": "ok"}, "3"),
        ("model.invoked", {"model": "gpt-4o"}, "5"),
        ("model.invoked", {"model": "unheard-of"}, "6"),
        ("model.responded", {"status": "ok", "usage": {"input": 1_000, "output": 10}}, "5"),
        ("model.responded", {"status": "error", "http": {"status": 429}}, "6"),
        ("model.invoked", {"model": "unheard-of"}, "9"),
        ("model.responded", {"status": "ok", "usage": {"input": 1}}, "9"),
        ("model.responded", {"status": "ok", "usage": {"input": 1}}, "9"),
        ("model.invoked", {"model": "gpt-4o"}, "12"),
    )
    told = set()
    for mode in (None, "exact"):
        whole = [msgspec.structs.replace(story[0], data={"name": "n", "origin": {"mode": mode}}), *story[1:]]
        moments = Moments(lambda seq, whole=whole: whole[seq], prices)  # type: ignore[misc]
        for event in whole:
            moments.take(event)
        for seq in range(len(whole)):
            moment, models = moments.at(seq), metrics_of(whole[: seq + 1], prices=prices).total.models
            assert models is not None
            answered_by_a_tape = 0.0 if mode and moment.model_calls else None
            found = (moment.cost, moment.cost_unpriced, moment.calls_without_usage)
            assert found == (answered_by_a_tape if mode else models.cost, models.unpriced, models.without_usage), seq
            told.add(moment.calls_without_usage)
    assert told == {0, 1, 2, 3}


@pytest.mark.parametrize("mode", ["fork", "model", "step", "resume"])
def test_what_a_tape_answered_was_not_paid_at_any_event(mode):
    story = events(
        ("run.started", {"name": "n", "origin": {"mode": mode}}, "0"),
        ("model.invoked", {"model": "gpt-4o"}, "1"),
        ("model.responded", {"status": "ok", "usage": {"input": 1_000_000}}, "1"),
        ("model.invoked", {"model": "gpt-4o"}, "3"),
        ("http.sent", {"method": "POST", "url": "http://a/"}, "4"),
        ("http.received", {"outcome": "ok", "status": 200}, "4"),
        ("model.responded", {"status": "ok", "usage": {"input": 2_000_000}}, "3"),
        ("replay.reported", {"answered": 1, "calls": 2, "live_spans": {"$same": "x"}}, None),
        ("run.finished", {"status": "ok"}, "0"),
    )
    story[4] = msgspec.structs.replace(story[4], parent="3")
    live = {"$same": "x"}
    moments = Moments(lambda seq: story[seq], lambda *_: PRICED, lambda value: ["4"] if value == live else value)
    moments.follow(lambda seq: story[seq:], 2)
    assert [moments.at(seq).cost for seq in (0, 1, 2, 6, 8)] == [None, 0.0, 0.0, 5.0, 5.0]


def test_a_moment_keeps_what_it_said_when_more_is_known():
    story = events(
        ("run.started", {"name": "n", "origin": {"mode": "fork"}}, "0"),
        ("model.invoked", {"model": "unheard-of"}, "1"),
        ("model.responded", {"status": "ok", "usage": {"input": 1}}, "1"),
        ("replay.reported", {"answered": 1, "calls": 1}, None),
    )
    moments = Moments(lambda seq: story[seq])
    moments.follow(lambda seq: story[seq:3], 2)  # it still runs: nobody says yet who answered
    before = moments.at(2)
    moments.follow(lambda seq: story[seq:], 3)
    assert (before.cost, before.cost_unpriced) == (None, ["unheard-of"])
    assert (moments.at(2).cost, moments.at(2).cost_unpriced) == (0.0, [])
