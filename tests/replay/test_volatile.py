from __future__ import annotations

import re

import pytest

from playhead.event.normalise import rule_of
from playhead.replay.volatile import RECOGNISERS, is_float_noise, of_texts, of_values
from playhead.views.words import words

UUIDS = "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "9b2e7a10-1c2d-4e5f-8a9b-aabbccddeeff"
PAIRS = [
    ("uuid", f"session {UUIDS[0]} of ada", f"session {UUIDS[1]} of ada"),
    ("timestamp", "It is 2025-11-14T10:00:00Z.", "It is 2025-11-14T10:00:07Z."),
    ("timestamp", "It is 2025-11-14 09:59:59.123456+00:00 now", "It is 2026-01-02 10:00:00.5+00:00 now"),
    ("timestamp", "Fri, 14 Nov 2025 10:00:00 GMT", "Sat, 15 Nov 2025 11:02:00 GMT"),
    ("timestamp", "Fri Nov 14 10:00:00 2025", "Sat Nov 15 11:02:00 2026"),
    ("date", "Today is 2025-11-14.", "Today is 2026-11-15."),
    ("date", "Today is Friday, November 14, 2025.", "Today is Saturday, November 15, 2025."),
    ("date", "on 3 May 2025", "on 21 June 2025"),
    ("date", "on 14.11.2025", "on 15.11.2025"),
    ("date", "happy Friday to you", "happy Monday to you"),
    ("time", "at 9:41 AM sharp", "at 10:02 PM sharp"),
    ("time", "at 23:59:58", "at 00:00:01"),
    ("epoch", "ts=1731578400", "ts=1763114411"),
    ("epoch", "ts=1731578400.25", "ts=1763114411.5"),
    ("epoch", "ts=1731578400123", "ts=1763114411999"),
    ("port", "see http://localhost:54321/x", "see http://localhost:40001/x"),
    ("port", "see http://127.0.0.1:54321/x", "see http://127.0.0.1:40001/x"),
    ("address", "<Agent object at 0x7f3a5c0d1e50>", "<Agent object at 0x7fb2130c9a10>"),
    ("temp-path", "wrote /tmp/tmpab12cd34/out.txt today", "wrote /tmp/tmpzz98yx76/out.txt today"),
    ("temp-path", "in /var/folders/x1/abc/T/pytest-1/a", "in /var/folders/x1/abc/T/pytest-2/a"),
    ("temp-path", r"in C:\Users\ada\AppData\Local\Temp\tmp1a\x", r"in C:\Users\ada\AppData\Local\Temp\tmp2b\x"),
    ("pid", "worker pid=4711 is up", "worker pid=815 is up"),
    ("duration", "finished in 1.25 s", "finished in 0.98 s"),
    ("year", "the year is 2025", "the year is 2026"),
    ("id", "answer to call_8Fd2kqZ1", "answer to call_x91Lm0pQ"),
    ("id", "Chunk ID: 4b3208", "Chunk ID: 9f11c0"),
]


@pytest.mark.parametrize(("name", "left", "right"), PAIRS)
def test_what_differs_from_run_to_run_is_recognised(name: str, left: str, right: str) -> None:
    found = of_texts(words(left, right))
    assert [one and one.what.name for one in found] == [name] * len(found)
    assert found


@pytest.mark.parametrize(("name", "left", "right"), PAIRS)
def test_a_rule_of_the_form_that_was_found_makes_both_texts_the_same(name: str, left: str, right: str) -> None:
    for one in of_texts(words(left, right)):
        assert one is not None
        rule = rule_of("x", pattern=one.form)
        left, right = rule.applied("k", None, left), rule.applied("k", None, right)
    assert left == right
    assert "<x>" in left


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("You are careful.", "You are careless."),
        ("version 1.2 of it", "version 1.3 of it"),
        ("variable_1 is set", "variable_2 is set"),
        ("use gpt-4o-mini", "use gpt-5"),
        ("issue 1842", "issue 1843"),
        ("It may be fine", "It must be fine"),
        ("written in 2025-11-14", "written by ada"),
    ],
)
def test_what_somebody_wrote_is_not_taken_for_volatile(left: str, right: str) -> None:
    assert None in of_texts(words(left, right))


@pytest.mark.parametrize("one", RECOGNISERS, ids=lambda one: one.name)
def test_every_pattern_may_stand_in_a_normaliser(one: object) -> None:
    pattern = one.pattern  # type: ignore[attr-defined]
    assert rule_of("x", pattern=pattern).pattern == re.compile(pattern)


def test_whole_values_are_recognised() -> None:
    assert (found := of_values(1731578400, 1763114411)) is not None
    assert found.what.name == "epoch"
    assert (found := of_values(*UUIDS)) is not None
    assert found.what.name == "uuid"
    assert of_values(1, 2) is None
    assert of_values("x" * 10_000, "y") is None
    assert of_values(None, [1]) is None


def test_digits_at_the_end_of_floats_are_noise() -> None:
    assert is_float_noise(0.1 + 0.2, 0.3)
    assert is_float_noise("score 0.30000000000000004", "score 0.3")
    assert is_float_noise([], []) is False
    assert not is_float_noise(0.3, 0.4)
    assert not is_float_noise("score 0.3 of a", "score 0.3 of b")
    assert not is_float_noise(1, 1.5)
