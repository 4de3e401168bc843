"""The page shows every attribute of every convention, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from playhead.ingest.otlp import conventions
from playhead.ingest.otlp.conventions import CONVENTIONS, KINDS, KINDS_FIRST
from playhead.ingest.otlp.conventions.base import MEANINGS, PARAMETERS, Convention

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "otlp.md").read_text("utf-8")


def rows(text: str) -> list[list[str]]:
    found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return [row for row in found if row[0] not in ("meaning", "what a span is", "rule", "in a request")]


def expected(one: Convention) -> list[list[str]]:
    found = []
    for name, values in one.kinds.items():
        roles = dict.fromkeys(values.values())
        for role in roles:
            found.append(
                [role, f"`{name}`: " + ", ".join(f"`{value}`" for value, known in values.items() if known == role)]
            )
    found += [[f"`{meaning}`", ", ".join(f"`{name}`" for name in names)] for meaning, names in one.attributes.items()]
    found += [[f"`{meaning}`, numbered", f"`{begin}N`"] for begin, meaning in one.numbered.items()]
    if one.events:
        found.append(["messages, as events", ", ".join(f"`{name}`" for name in one.events)])
    return found


@pytest.mark.parametrize("one", CONVENTIONS, ids=lambda one: one.name)
def test_the_page_shows_the_table_of_each_convention(one: Convention) -> None:
    section = re.split(r"(?m)^### ", PAGE.split("## Conventions")[1])
    mine = next(text for text in section if text.startswith(f"{one.title}\n"))
    assert rows(mine) == expected(one)


def test_the_page_shows_conventions_in_the_order_in_which_they_count() -> None:
    assert re.findall(r"(?m)^### (.+)$", PAGE) == [one.title for one in CONVENTIONS]


def test_the_page_says_what_each_meaning_is() -> None:
    section = PAGE.split("## Meanings")[1].split("## Conventions")[0]
    assert rows(section) == [[f"`{name}`", says] for name, says in MEANINGS.items()]


def test_every_meaning_is_known_and_every_way_to_say_what_a_span_is_has_its_place() -> None:
    known = {*MEANINGS, *(f"parameter.{name}" for name in PARAMETERS)}
    for one in CONVENTIONS:
        assert {*one.attributes, *one.numbered.values()} <= known, one.name
    assert set(KINDS) == set(KINDS_FIRST)
    assert all(f"`{name}`" in PAGE for name in conventions.SESSIONS)
