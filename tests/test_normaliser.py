"""Hold what a user can declare as volatile: in Python, and in the settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.errors import ConfigError, UsageError
from playhead.event import normalise
from playhead.event.normalise import Normalisers
from playhead.settings import load


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    for name in list(normalise._registered):
        normalise.forget(name)


def test_a_rule_is_registered_by_its_name() -> None:
    playhead.normaliser("today", path="/q", pattern=r"\d{4}-\d\d-\d\d", kinds=["tool.called"])
    rules = Normalisers()
    assert rules.normalised("tool.called", "search", {"q": "on 2025-11-14"}) == {"q": "on <today>"}
    assert rules.match_key("model.invoked", "m", {}) is None


def test_a_function_is_registered_bare_or_for_some_questions_and_stays_itself() -> None:
    @playhead.normaliser
    def everywhere(kind: str, name: str | None, input: Any) -> Any:
        return "same"

    @playhead.normaliser(kinds=["http.sent"], names=["GET"])
    def somewhere(kind: str, name: str | None, input: Any) -> Any:
        return [input]

    assert everywhere("k", None, 1) == "same"
    assert Normalisers().normalised("tool.called", "t", {"x": 1}) == "same"
    assert Normalisers().normalised("http.sent", "GET", {"x": 1}) == ["same"]


@pytest.mark.parametrize(
    ("given", "options"),
    [((), {"pattern": "a"}), ((7,), {}), (("x",), {"pattern": "a", "kinds": ["model"]}), (("x",), {"pattern": "a", "kinds": "tool.called"})],
)  # fmt: skip
def test_what_cannot_be_a_normaliser_is_refused(given: Any, options: Any) -> None:
    with pytest.raises(UsageError):
        playhead.normaliser(*given, **options)


def test_rules_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.playhead.normalise]\ntoday = { pattern = '\\d{4}-\\d\\d', instead = 'T', kinds = ['tool.called'] }\n"
    )
    settings = load({}, tmp_path)
    assert Normalisers.of_settings(settings.normalise).normalised("tool.called", None, "2025-11") == "T"


@pytest.mark.parametrize(
    "text",
    [
        "normalise = 1", "[normalise]\nx = 'a'", "[normalise]\nx = {}", "[normalise]\nx = { instead = 'a' }",
        "[normalise]\nx = { pattern = 1 }", "[normalise]\nx = { pattern = 'a', kinds = 'b' }",
        "[normalise]\nx = { pattern = 'a', kinds = [1] }", "[normalise]\nx = { pattern = 'a', other = 'b' }",
    ],
)  # fmt: skip
def test_a_table_of_another_form_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "playhead.toml").write_text(text)
    with pytest.raises(ConfigError, match="normalise must be a table"):
        load({}, tmp_path)
