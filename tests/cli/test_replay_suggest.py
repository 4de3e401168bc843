from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Answer

import playhead

Cli = Callable[..., Answer]


def record(store: Path, day: str, text: str = "Plan.") -> str:
    with playhead.record("plan", store=store, capture=False) as run:
        for number, prompt in enumerate((f"It is {day}. Go.", text)):
            with playhead.model_call(
                model="gpt-5", request={"messages": [{"role": "user", "content": prompt}]}
            ) as call:
                call.respond({"text": str(number)})
    return run.id


def test_the_rules_are_on_stdout_and_what_they_do_on_stderr(store: Path, ask: Cli) -> None:
    left, right = record(store, "2025-11-14"), record(store, "2025-11-15")
    answer = ask("replay", "--suggest", left, right)
    assert answer.code == 0
    assert tomllib.loads(answer.out)["normalise"]["date"]["path"] == "/messages/*/content"
    assert (
        "2 questions in both runs: 1 equal as they are, 1 become equal with these rules, 0 still differ." in answer.err
    )


def test_pasted_into_the_settings_the_rules_make_the_runs_equal(store: Path, ask: Cli) -> None:
    left, right = record(store, "2025-11-14"), record(store, "2025-11-15")
    Path("playhead.toml").write_text(ask("replay", "--suggest", left, right).out)
    answer = ask("replay", "--suggest", left, right)
    assert (answer.code, answer.out) == (0, "")
    assert "2 questions in both runs: 2 equal as they are" in answer.err


def test_what_still_differs_is_named_with_its_cause_and_the_answer_is_no(store: Path, ask: Cli) -> None:
    left, right = record(store, "2025-11-14"), record(store, "2025-11-14", "Plan better.")
    answer = ask("replay", "--suggest", left, right)
    assert answer.code == 1
    assert "Nothing in them looks volatile" in answer.err
    assert "model gpt-5 (events 3 and 3): the text of the prompt changed (/messages/0/content)" in answer.err


def test_json_has_all_of_it(store: Path, ask: Cli) -> None:
    left, right = record(store, "2025-11-14"), record(store, "2025-11-15", "Plan better.")
    answer = ask("replay", "--suggest", left, right, "--json")
    assert answer.code == 1
    found = answer.json
    assert (found["left"], found["right"], found["questions"], found["become_equal"]) == (left, right, 2, 1)
    assert list(found["rules"]) == ["date"]
    assert found["differing"][0]["changes"][0]["words"] == "Plan{+ better+}."


def test_a_run_that_is_not_there_is_said(store: Path, ask: Cli) -> None:
    answer = ask("replay", "--suggest", "nothing", record(store, "x"))
    assert answer.code == 2
    assert "nothing" in answer.err
