from __future__ import annotations

from typing import Any

import msgspec

from playhead.event.envelope import Event
from playhead.views.state import state_at


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


def test_only_the_last_call_is_resolved():
    asked: list[int] = []

    def resolve(event: Event) -> Event:
        asked.append(event.seq)
        return msgspec.structs.replace(event, data={**event.data, "request": "whole"})

    state = state_at(STORY, 10, resolve)
    assert asked == [7, 3]
    assert state.last_request is not None
    assert state.last_request["request"] == "whole"


def test_events_after_the_one_asked_for_are_not_read():
    def endless():  # type: ignore[no-untyped-def]
        yield from STORY[:5]
        raise AssertionError("read on")

    assert state_at(endless(), 3).seq == 3
