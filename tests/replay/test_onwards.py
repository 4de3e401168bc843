"""A program leaves its tape: its models are asked again, it is forked at an event, it goes on after it was killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay import going_on
from tests.replay.again import playhead
from tests.replay.going_on import answered, events, lines, provider, recorded, write
from tests.replay.terminal import Terminal, terminals

import playhead as public
from playhead.event.kinds import CALLS
from playhead.store.files import FileStore

__all__ = ["terminals"]  # a fixture

SAID = ["re round 0, so far 0 1", "re round 1, so far 1 2"]  # what is booked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("shared")
    write(folder)
    with provider() as asked:
        return folder, recorded(folder, asked.base_url)


# Models again.


def test_only_models_are_asked_again_and_their_changed_answers_are_found(folder: Path) -> None:
    with provider() as first:
        run = recorded(folder, first.base_url)
    with provider(lambda request: "the same") as second:
        options = (
            "--base-url",
            second.base_url,
            "--model",
            "other",
            "--param",
            "temperature=0",
            "--system",
            "Be brief",
        )
        found = answered(folder, "replay", run, "--mode", "model", "--unknown", "nearest", *options)
        asked = [request.json() for request in second.requests]
    assert lines(folder, "ledger.txt") == SAID  # as recorded: no tool has run
    assert found["live_calls"] == 3 == len(asked)
    assert {request["model"] for request in asked} == {"other"}
    assert all(request["temperature"] == 0 for request in asked)
    assert asked[0]["messages"][0] == {"role": "system", "content": "Be brief"}
    assert [one["type"] for one in found["answers"]["changed"]] == ["changed"] * 3
    first_change = found["answers"]["changed"][0]["changes"][0]
    assert (first_change["left"], first_change["right"]) == ("re round 0, so far 0", "the same")
    assert [one["rule"] for one in found["surface"]["unknown"]] == ["nearest", "nearest"]
    assert not found["outcome"]["same"]
    assert found["origin"]["overrides"]["model"] == "other"


def test_a_model_that_says_the_same_leads_to_the_same_outcome(folder: Path) -> None:
    with provider() as asked:
        run = recorded(folder, asked.base_url)
        done = playhead(folder, "replay", run, "--mode", "model")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "re the end, 3 3\n"
    assert "the outcome is the same" in done.stderr
    assert "3 answers of models the same, 0 changed" in done.stderr


def test_a_new_tool_call_follows_the_rule(folder: Path) -> None:
    with provider() as first:
        run = recorded(folder, first.base_url)
    with provider(lambda request: "else") as second:
        base = ("replay", run, "--mode", "model", "--base-url", second.base_url)
        refused = answered(folder, *base)
        assert [one["rule"] for one in refused["surface"]["unknown"]] == ["refuse"]
        assert refused["deviations"][0]["name"] == "book"
        nearest = answered(folder, *base, "--unknown", "nearest")
        assert nearest["exit_code"] == 0
        assert "stopped" not in [one["what"] for one in nearest["outcome"]["differences"]]
        assert lines(folder, "ledger.txt") == SAID
        live = answered(folder, *base, "--unknown", "live")
    assert [one["rule"] for one in live["surface"]["unknown"]] == ["live", "live"]
    assert lines(folder, "ledger.txt") == [*SAID, "else 1", "else 2"]  # by choice, and by no other way
    assert live["live_calls"] == 5
    assert lines(folder, "agent.log") == [line[:-2] for line in SAID]  # not a tool: the program writes to nowhere


def test_what_is_irreversible_is_never_run(folder: Path) -> None:
    with provider() as first:
        run = recorded(folder, first.base_url)
    with provider(lambda request: "please pay") as second:
        options = ("--base-url", second.base_url, "--unknown", "live")
        found = answered(folder, "replay", run, "--mode", "model", *options)
    assert found["deviations"][0]["type"] == "irreversible"
    assert "never run in a replay" in found["deviations"][0]["text"]
    assert not lines(folder, "paid.txt")


def test_asked_many_times_it_says_how_often_and_where_the_outcome_changed(folder: Path) -> None:
    with provider() as first:
        run = recorded(folder, first.base_url)
    numbers = iter(range(100))

    def now_and_then(request: object) -> str:
        end = going_on.told(request)  # type: ignore[arg-type]
        return "never" if end.startswith("re the end") and next(numbers) == 1 else end

    with provider(now_and_then) as second:
        place = FileStore(folder / ".playhead").folder(run)
        found = public.replay(place, mode="model", base_url=second.base_url, times=3)
        assert (found.times, found.same, found.changed) == (3, 2, 1)
        assert sorted(one["count"] for one in found.outcomes) == [1, 2]
        (where,) = found.answers
        assert (where["changed"], where["first"]) == (1, 1)
        assert len(set(found.runs)) == 3
        alone = public.replay(place, mode="model", base_url=second.base_url, isolated=True)
        assert (alone.same, alone.changed, alone.failed) == (3, 0, 0)


def test_no_more_is_asked_than_the_budget_allows(folder: Path) -> None:
    with provider() as asked:
        run = recorded(folder, asked.base_url)
        before = len(asked.requests)
        found = answered(folder, "replay", run, "--mode", "model", "--budget", "0.00001")
        assert len(asked.requests) == before + 1
    assert found["deviations"][0]["type"] == "refused"
    assert "the budget" in found["deviations"][0]["text"]


# Forks.


def test_a_fork_at_every_event(folder: Path) -> None:
    with provider() as asked:
        run = recorded(folder, asked.base_url, rounds=1)
        told = events(folder, run)
        assert len(told) >= 20
        questions = [event["seq"] for event in told if event["kind"] == "model.invoked"]
        answers = [event["seq"] for event in told if event["kind"] == "model.responded"]
        for event in told:
            at, before = event["seq"], len(asked.requests)
            found = answered(folder, "fork", run, "--at", str(at))
            assert found["outcome"]["same"], (at, found)
            # What was answered by then is on the tape; every other question is asked once more.
            live = sum(seq > at for seq in answers)
            assert found["live_calls"] == live == len(asked.requests) - before, at
            assert found["origin"] == {"run": run, "mode": "fork", "at": at, "live": "model"}
            assert found["integrity"]["verdict"] == "intact"
    assert len(questions) == len(answers) == 2
    assert lines(folder, "ledger.txt") == SAID[:1]


@pytest.mark.parametrize("live", ["model", "all"])
def test_another_answer_leads_elsewhere(folder: Path, live: str) -> None:
    with provider() as asked:
        run = recorded(folder, asked.base_url)
        returned = next(event["seq"] for event in events(folder, run) if event["kind"] == "tool.returned")
        options = ("--at", str(returned), "--set", "output.booked=100", "--live", live, "--unknown", "live")
        done = playhead(folder, "fork", run, *options)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "re the end, 102 102\n"
    assert lines(folder, "ledger.txt") == [*SAID, "re round 1, so far 100 2"]  # the first was told by the tape


def test_a_fork_can_be_forked_and_show_draws_the_family(folder: Path) -> None:
    with provider() as asked:
        run = recorded(folder, asked.base_url)
        fork = answered(folder, "fork", run, "--at", "9")["run"]
        again = answered(folder, "fork", fork, "--at", "6", "--set", "text=No", "--unknown", "nearest")["run"]
        assert answered(folder, "replay", again, "--mode", "exact")["fidelity"]["verdict"] == "faithful"
    shown = playhead(folder, "show", fork).stdout
    family = shown[shown.index("family") :].splitlines()[1:4]
    assert family == [
        f"  ✓ {run} program",
        f"  └─ ✓ {fork} program, forked at event 9  ← this run",
        f"     └─ ✓ {again} program, forked at event {6 + 1}",
    ]
    members = answered(folder, "show", run)["family"]
    assert [(one["id"], one["from"]) for one in members] == [(run, None), (fork, run), (again, fork)]


def test_where_the_tape_is_left_before_the_event_that_is_a_deviation(folder: Path) -> None:
    with provider() as asked:
        run = recorded(folder, asked.base_url)
        last = max(event["seq"] for event in events(folder, run) if event["kind"] in CALLS)
        program = (folder / "program.py").read_text().replace("round {number}, so", "Round {number}, so")
        (folder / "program.py").write_text(program)
        before = len(asked.requests)
        found = answered(folder, "fork", run, "--at", str(last))
        assert len(asked.requests) == before  # nothing was asked live before the event
    assert found["deviations"][0]["kind"] == "model.invoked"
    assert found["exit_code"] != 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--at", "999"), "has no event 999"),
        (("--at", "0", "--set", "a=1"), "has no answer that could be another one"),
        (("--at", "gpt-5", "--set", "nowhere.at.all=1"), "nothing is at nowhere.at.all"),
        (("--at", "gpt-5", "--set", "nothing"), "not an assignment"),
        (("--at", "gpt-5", "--edit", "missing.json"), "cannot read the answer missing.json"),
        (("--at", "7", "--live", "all", "--model", "x"), "the program asks its models by itself"),
        (("--at", "7", "--budget", "0"), "not a budget"),
    ],
)
def test_what_cannot_be_forked_is_said(shared: tuple[Path, str], options: tuple[str, ...], said: str) -> None:
    folder, run = shared
    done = playhead(folder, "fork", run, *options)
    assert done.returncode == 2
    assert said in done.stderr


# Going on after a crash.


def test_killed_at_every_event_it_goes_on_and_no_write_is_doubled(folder: Path) -> None:
    with provider() as asked:
        whole = events(folder, recorded(folder, asked.base_url, rounds=1))
        last = max(event["seq"] for event in whole if event["kind"] == "model.responded")
        first = next(event["seq"] for event in whole if event["kind"] == "effect.observed")
        in_flight = 0
        for at in range(first, last + 1):
            run = recorded(folder, asked.base_url, kill_at=at, rounds=1)
            done = playhead(folder, "resume", run)
            if done.returncode == 2:
                assert "may have been done" in done.stderr
                in_flight += 1
                booked = "--answer", f'{{"booked": {len(lines(folder, "ledger.txt"))}}}'
                options = ("--in-flight", "skip", *booked) if _was_booked(folder, run) else ("--in-flight", "retry")
                done = playhead(folder, "resume", run, *options)
            assert done.returncode == 0, (at, done.stderr)
            assert done.stdout == "re the end, 1 1\n", at
            assert lines(folder, "ledger.txt") == SAID[:1], at
            assert lines(folder, "agent.log") == [SAID[0][:-2]], at
        assert in_flight >= 2


def _was_booked(folder: Path, run: str) -> bool:
    """Look, as a person would, whether the tool that was under way has written its line."""
    name = [event["data"] for event in events(folder, run) if event["kind"] == "tool.called"][-1]["input"]["name"]
    return any(line.startswith(f"{name} ") for line in lines(folder, "ledger.txt"))


def test_a_write_that_was_under_way_fails_where_that_is_wanted(folder: Path) -> None:
    with provider() as asked:
        whole = events(folder, recorded(folder, asked.base_url))
        called = next(event["seq"] for event in whole if event["kind"] == "tool.called")
        run = recorded(folder, asked.base_url, kill_at=called)
        done = playhead(folder, "resume", run, "--in-flight", "fail")
    assert done.returncode == 1
    assert "InFlight" in done.stderr
    assert "it may or may not have been done" in done.stderr
    assert not lines(folder, "ledger.txt")


def test_on_a_terminal_it_is_asked(folder: Path, terminals: list[Terminal]) -> None:
    with provider() as asked:
        whole = events(folder, recorded(folder, asked.base_url))
        called = next(event["seq"] for event in whole if event["kind"] == "tool.called")
        run = recorded(folder, asked.base_url, kill_at=called)
        terminal = Terminal(folder, "resume", run)
        terminals.append(terminal)
        shown = terminal.until(r"retry, skip, fail\? $")
        assert "tool.called book, was under way" in shown
        assert "amount: 1" in shown
        terminal.write("what")
        terminal.until(r"retry, skip, fail\? $")
        terminal.write("re")
        terminal.until("re the end, 3 3")
        assert terminal.exit_code() == 0
    assert lines(folder, "ledger.txt") == SAID


def test_what_is_irreversible_is_not_tried_again(folder: Path) -> None:
    with provider(lambda request: "pay up") as asked:
        whole = events(folder, recorded(folder, asked.base_url))
        called = [event["seq"] for event in whole if event["kind"] == "tool.called"][-1]
        run = recorded(folder, asked.base_url, kill_at=called + 1)  # it has paid, or is about to
        refused = playhead(folder, "resume", run, "--in-flight", "retry")
        assert refused.returncode == 2
        assert "declared irreversible" in refused.stderr
        done = playhead(folder, "resume", run, "--in-flight", "skip", "--answer", '"by hand"')
    assert done.stdout.endswith("by hand\n")
    assert len(lines(folder, "paid.txt")) <= 1


def test_a_run_is_resumed_once_and_one_that_ended_not_at_all(folder: Path) -> None:
    with provider() as asked:
        ended = recorded(folder, asked.base_url)
        assert "came to its end" in playhead(folder, "resume", ended).stderr
        answers = [event["seq"] for event in events(folder, ended) if event["kind"] == "model.responded"]
        run = recorded(folder, asked.base_url, kill_at=answers[0])
        assert playhead(folder, "resume", run).returncode == 0
        twice = playhead(folder, "resume", run)
        assert twice.returncode == 2
        assert "was resumed before" in twice.stderr
        assert lines(folder, "ledger.txt") == SAID
        assert playhead(folder, "resume", run, "--again").returncode == 0


def test_a_program_that_failed_with_its_last_call_tries_that_again(folder: Path) -> None:
    answers = iter(["one", 500, "two", "three", "four"])
    with provider(lambda request: next(answers)) as asked:
        run = recorded(folder, asked.base_url, succeeds=False)  # the second answer was an error 500
        assert lines(folder, "ledger.txt") == ["one 1"]
        done = playhead(folder, "resume", run)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "three 3\n"
    assert lines(folder, "ledger.txt") == ["one 1", "two 2"]
