from __future__ import annotations

from tests.views.audit.told import Told, found

from playhead.views.audit.findings import Finding

POST = {"method": "POST", "url": "https://shop.example.com/pay"}


def twice(kind: str, data: dict[str, object]) -> list[Finding]:
    run = Told()
    run.call(kind, data, key="k1:a", ends="error")
    run.call(kind, data, key="k1:a")
    return found("repeated", run)


def test_a_request_that_changes_something_is_told_with_every_attempt_and_how_it_ended() -> None:
    (one,) = twice("http.sent", POST)
    assert one.attempts == [{"run": "run_a", "seq": 1, "status": "error"}, {"run": "run_a", "seq": 3, "status": "ok"}]
    assert (one.seq, one.seqs, one.count, one.severity) == (1, [1, 3], 2, "medium")


def test_what_only_asks_may_be_repeated() -> None:
    assert not twice("http.sent", {**POST, "method": "get"})
    assert not twice("model.invoked", {"model": "gpt-5"})
    assert not twice("tool.called", {"name": "look", "effects": ["read"]})
    assert not twice("tool.called", {"name": "look"})


def test_a_tool_is_graver_the_more_it_declares() -> None:
    assert [one.severity for one in twice("tool.called", {"name": "send", "effects": ["write"]})] == ["medium"]
    assert [one.severity for one in twice("tool.called", {"name": "pay", "effects": ["irreversible"]})] == ["high"]
    assert [one.severity for one in twice("process.started", {"argv": ["make"]})] == ["low"]


def test_a_tool_that_declares_nothing_counts_by_what_it_was_seen_to_do() -> None:
    run = Told()
    for _ in range(2):
        with run.tool("quiet", key="k1:a"):
            run.effect("file.written", "/repo/a", mode="w")
    assert [one.target for one in found("repeated", run)] == ["tool quiet()"]


def test_what_was_under_way_when_a_run_was_cut_off_and_is_done_again_is_repeated_across_both() -> None:
    first, second = Told("run_a"), Told("run_b", origin={"run": "run_a", "mode": "resume", "at": 3})
    first.call("tool.called", {"name": "train", "effects": ["write"]}, key="k1:train")
    first.call("tool.called", {"name": "hotel", "effects": ["write"]}, key="k1:hotel", ends=None)
    second.call("tool.called", {"name": "train", "effects": ["write"]}, key="k1:train")  # answered from the tape
    with second.tool("hotel", "write", key="k1:hotel") as again:
        second.add("note.added", {"text": "past the tape", "data": {"left_tape": 3, "whole": True}})
    (one,) = found("repeated", first, second)
    assert one.target == "tool hotel()"
    told = [{"run": "run_a", "seq": 3, "status": "unfinished"}, {"run": "run_b", "seq": again, "status": "ok"}]
    assert one.attempts == told
    assert (one.run, one.seqs) == ("run_a", [3])


def test_an_exact_replay_repeats_nothing() -> None:
    first, replay = Told("run_a"), Told("run_b", origin={"run": "run_a", "mode": "exact", "at": 9})
    for run in (first, replay):
        run.call("http.sent", POST, key="k1:a")
    assert not found("repeated", first, replay)
    assert [one.severity for one in found("network", first, replay)] == ["medium", "info"]


def test_a_program_that_is_recorded_twice_was_not_attempted_twice() -> None:
    runs = [Told(name, agent=None) for name in ("run_a", "run_b")]
    for run in runs:
        run.call("process.started", {"argv": ["python", "agent.py"]}, key="k1:a")
    assert not found("repeated", *runs)
    assert [one.severity for one in found("process", *runs)] == ["info", "info"]
