"""What two runs took is told, and never more than is known of it."""

from __future__ import annotations

from tests.views.diff.stories import (
    Part,
    both_ways,
    diffed,
    note,
    run,
    step,
    together,
    tool,
    unfinished,
)  # fmt: skip

from playhead.views.diff.measures import costs_told, tokens_told


def test_a_run_that_asked_no_model_or_was_refused_by_all_cost_nothing() -> None:
    failed, silent = (
        Part("model.invoked", {"model": "gpt-5", "request": {}}, {"status": status}) for status in ("error", "ok")
    )
    found = diffed(run(), run(failed, run="run_b"))
    assert found.metrics["cost"] == {"left": 0.0, "right": 0.0, "delta": 0.0}
    found = diffed(run(failed), run(silent, unfinished(failed), run="run_b"))
    assert found.metrics["cost"] == {"left": 0.0, "right": None, "delta": None}


def test_durations_are_told_only_where_they_are_asked_for_and_an_unknown_one_is_said() -> None:
    slow = [tool("a"), *(note(str(number)) for number in range(2))]
    left = run(*slow, tool("b"))
    right = run(step("x"), run="run_b")
    assert diffed(left, right).durations is None
    one = run(together(tool("a"), tool("b"), ends=[0, 1]))
    other = run(
        together(
            tool("a"),
            *(tool(f"c{number}") for number in range(30)),
            unfinished(tool("b")),
            ends=[*range(30, 0, -1), 31, 0],
        ),
        run="run_b",
    )
    found = diffed(one, other, durations=True).durations
    assert found is not None
    assert [(entry["name"], entry["unknown"]) for entry in found if entry["kind"] == "tool"] == [
        ("a", False),
        ("b", True),
    ]


def test_the_longer_time_is_on_its_side_whichever_run_is_named_first() -> None:
    slow, quick = (step("s", *(note(str(number)) for number in range(count))) for count in (40, 2))
    for name in ("run_b", "run_c", "run_d", "run_e"):  # of which some come before the other
        found = diffed(run(slow), run(quick, run=name), durations=True).durations
        assert [(one["left_us"], one["right_us"]) for one in found or () if one["kind"] == "step"] == [(41_000, 3_000)]
        both_ways(run(slow), run(quick, run=name))


def test_two_times_that_nobody_knows_are_not_said_to_be_the_same() -> None:
    crashed = [run(tool("a"), note("no time"), unfinished(tool("b")), run=name) for name in ("run_a", "run_b")]
    found = diffed(*crashed, durations=True)
    assert found.identical
    assert found.durations is not None
    assert [(one["name"], one["left_us"], one["right_us"], one["unknown"]) for one in found.durations] == [
        ("b", None, None, True)
    ]


def test_what_a_tape_answered_cost_nothing() -> None:
    paid = Part("model.invoked", {"model": "gpt-5", "request": {}}, {"status": "ok", "cost": 0.5})
    exact = run(paid, run="run_b", origin={"mode": "exact", "run": "run_a"})
    assert diffed(run(paid), exact).metrics["cost"] == {"left": 0.5, "right": 0.0, "delta": -0.5}
    reported = Part("replay.reported", {"live_spans": ["2"]})
    fork = run(paid, paid, reported, run="run_b", origin={"mode": "fork", "run": "run_a"})
    assert diffed(run(paid, paid), fork).metrics["cost"] == {"left": 1.0, "right": 0.5, "delta": -0.5}


def test_what_some_calls_cost_nobody_knows_is_no_sum() -> None:
    def asked(model: str) -> Part:
        return Part("model.invoked", {"model": model, "request": {}}, {"status": "ok", "usage": {"input": 1_000_000}})

    prices = lambda provider, model: [{"input": [[0, 2.5]], "output": [[0, 10.0]]}] if model == "known" else None  # noqa: E731
    found = diffed(run(asked("known")), run(asked("known"), asked("own"), run="run_b"), prices=prices)
    assert found.metrics["cost"] == {"left": 2.5, "right": 2.5, "delta": None, "partial": ["right"]}
    assert costs_told(found.metrics["cost"]) == ("$2.50", "$2.50 + unknown")
    assert costs_told(diffed(run(), run(asked("own"), run="run_b"), prices=prices).metrics["cost"]) == (
        "$0.00",
        "unknown",
    )


def test_tokens_that_nobody_said_are_not_none() -> None:
    def asked(**usage: int) -> Part:
        return Part("model.invoked", {"model": "gpt-5", "request": {}}, {"status": "ok", "usage": usage})

    silent, told = run(asked()), run(asked(input=41, output=6), run="run_b")
    some, free = run(asked(input=41, output=6), asked(), run="run_c"), run(run="run_d")
    for right, tokens, words in (
        (told, {"left": None, "right": 41, "delta": None}, ("unknown", "41")),
        (some, {"left": None, "right": 41, "delta": None, "partial": ["right"]}, ("unknown", "41 + unknown")),
        (free, {"left": None, "right": 0, "delta": None}, ("unknown", "0")),
    ):
        found = diffed(silent, right).metrics["tokens_input"]
        assert (found, tokens_told(found)) == (tokens, words)
    assert diffed(free, told).metrics["tokens_output"] == {"left": 0, "right": 6, "delta": 6}
