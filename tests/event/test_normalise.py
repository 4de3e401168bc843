from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import _limits
from playhead.errors import ConfigError
from playhead.event import normalise
from playhead.event.normalise import Normalisers, Rule, rule_of

KIND = "model.invoked"
VALUE = {"messages": [{"role": "user", "content": "It is 2025-11-14."}, {"role": "user", "content": "since 2024-01-01"}], "n": 7}  # fmt: skip
DATE = r"\d{4}-\d{2}-\d{2}"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    for name in list(normalise._registered):
        normalise.forget(name)


def applied(value: Any, **fields: Any) -> Any:
    return rule_of("x", **fields).applied(KIND, "m", value)


def test_a_pattern_is_replaced_wherever_it_stands_and_the_input_stays_as_it_is() -> None:
    before = copy.deepcopy(VALUE)
    found = applied(VALUE, pattern=DATE, instead="<date>")
    assert [one["content"] for one in found["messages"]] == ["It is <date>.", "since <date>"]
    assert before == VALUE


def test_a_path_says_where_and_a_star_stands_for_any_step() -> None:
    first = applied(VALUE, path="/messages/0/content", pattern=DATE)
    assert [one["content"] for one in first["messages"]] == ["It is <x>.", "since 2024-01-01"]
    each = applied(VALUE, path="/messages/*/content", pattern=DATE)
    assert [one["content"] for one in each["messages"]] == ["It is <x>.", "since <x>"]
    below = applied(VALUE, path="/messages", pattern=DATE)
    assert below == each


def test_a_path_alone_replaces_all_that_is_there() -> None:
    assert applied(VALUE, path="/messages/*", instead="?")["messages"] == ["?", "?"]
    assert applied({"a/b": {"~": 1}}, path="/a~1b/~0") == {"a/b": {"~": "<x>"}}
    assert applied({"a": 1}, path="/nothing/there") == {"a": 1}
    assert applied("text", path="/a") == "text"


def test_a_number_is_replaced_only_where_the_pattern_fits_all_of_it() -> None:
    assert applied({"a": 1731578400, "b": 17, "c": True}, pattern=r"1\d{9}") == {"a": "<x>", "b": 17, "c": True}


def test_the_placeholder_is_taken_as_it_stands() -> None:
    assert applied("a 2025-11-14", pattern=DATE, instead=r"\1\g<0>") == r"a \1\g<0>"


def test_a_rule_holds_for_its_kinds_and_names_only() -> None:
    rules = Normalisers([rule_of("x", pattern=DATE, kinds=[KIND], names=["gpt-5"])])
    assert rules.normalised(KIND, "gpt-5", "2025-11-14") == "<x>"
    assert rules.normalised(KIND, "gpt-4", "2025-11-14") == "2025-11-14"
    assert rules.normalised("tool.called", "gpt-5", "2025-11-14") == "2025-11-14"


def test_keys_of_what_a_rule_concerns_are_k2_and_others_keep_theirs() -> None:
    rules = Normalisers([rule_of("x", pattern=DATE, kinds=[KIND])])
    one, other = (rules.match_key(KIND, "m", f"on {day}") for day in ("2025-11-14", "2026-01-01"))
    assert one is not None
    assert one == other
    assert re.fullmatch(r"k2:[0-9a-f]{64}", one)
    assert rules.match_key(KIND, "m", "on no day") != one
    assert rules.match_key(KIND, "n", "on 2025-11-14") != one
    assert rules.match_key("tool.called", "m", "on 2025-11-14") is None
    assert Normalisers().match_key(KIND, "m", "x") is None


def test_rules_are_applied_in_their_order() -> None:
    table = {"year": {"pattern": "2025", "instead": "Y"}, "date": {"pattern": r"Y-\d\d", "instead": "D"}}
    assert Normalisers.of_settings(table).normalised(KIND, None, "2025-11") == "D"


def test_a_function_is_a_rule_and_gets_a_copy() -> None:
    def strip(kind: str, name: str | None, value: Any) -> Any:
        value.pop("n")
        return [kind, name, value]

    value = {"n": 1, "a": 2}
    assert Normalisers([Rule("s", function=strip)]).normalised(KIND, "m", value) == [KIND, "m", {"a": 2}]
    assert value == {"n": 1, "a": 2}


def test_a_function_that_raises_or_returns_no_json_is_an_error_that_names_it() -> None:
    def broken(kind: str, name: str | None, value: Any) -> Any:
        raise KeyError("session")

    with pytest.raises(ConfigError, match=r"the normaliser 'mine' failed on model.invoked m: KeyError: 'session'"):
        Rule("mine", function=broken).applied(KIND, "m", {})
    with pytest.raises(ConfigError, match="'mine' failed"):
        Rule("mine", function=lambda kind, name, value: object()).applied(KIND, "m", {})


def test_what_is_registered_counts_at_once_and_replaces_its_namesake() -> None:
    rules = Normalisers()
    before = rules.generation
    normalise.register(rule_of("x", pattern="a", instead="1"))
    normalise.register(rule_of("x", pattern="a", instead="2"))
    assert rules.generation != before
    assert rules.normalised(KIND, None, "a") == "2"
    normalise.forget("x")
    assert rules.normalised(KIND, None, "a") == "a"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "neither a path nor a pattern"),
        ({"path": "messages"}, "does not begin with a slash"),
        ({"pattern": "("}, "not a regular expression"),
        ({"pattern": "a*"}, "fits the empty text"),
    ],
)
def test_a_rule_that_cannot_be_one_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=f"'mine'.*{said}|'mine' {said}"):
        rule_of("mine", **fields)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b", "(?:a|aa)+b", r"(\w+\s?)*$x", "(a|b|ab)*c", "(?P<x>a*)*b", r"(?:(?:a|aa){1,9}){1,9}b", "(a|aa){1,99}b",
        r"a.*b.*c.*d.*e", r"(?:\d+\.){4}x", "x(a){2,}",
    ],
)  # fmt: skip
def test_a_pattern_that_could_take_forever_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="could take forever"):
        rule_of("mine", pattern=pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d+-\d+", r"[()*+]{2,}x", r"\(a+\)+", r"(?:-[0-9a-f]{4}){3}", r"(?P<day>\d+)?x", r"a{2}b", r"[^]+]+x", r"x{y}",
        r"(?:\d+\.){3}x", r"\d++x", r"(?<=on )\w+",
    ],
)  # fmt: skip
def test_patterns_as_people_write_them_are_taken(pattern: str) -> None:
    assert rule_of("mine", pattern=pattern).pattern is not None


def test_a_pattern_that_begins_everywhere_and_fits_nowhere_ends_on_a_long_text() -> None:
    rule = rule_of("mine", pattern=r"\d+x")
    assert rule.applied(KIND, None, "1" * 50_000) == "1" * 50_000


@given(st.lists(st.sampled_from(["2025-11-14", " ", "word", "x" * 700, "\n"]), max_size=30))
def test_matches_in_a_long_text_are_those_of_a_short_one(parts: list[str]) -> None:
    text = "".join(parts)
    half, _limits_now = 16, _limits.NORMALISER_MATCH_CHARACTERS_MAX
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_limits, "NORMALISER_MATCH_CHARACTERS_MAX", half)
        assert applied(text, pattern=DATE) == re.sub(DATE, "<x>", text)
