from __future__ import annotations

import re
from pathlib import Path

from playhead.store.questions import QUESTIONS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "index-tables.md"


def test_the_named_questions_are_the_documented_ones():
    documented = dict(re.findall(r"^### (.+?)\n.*?```sql\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    assert {title.lower().replace(" ", "-"): sql.strip() for title, sql in documented.items()} == {
        name: question.sql.strip() for name, question in QUESTIONS.items()
    }


def test_each_question_names_the_parameters_it_needs():
    for question in QUESTIONS.values():
        assert set(re.findall(r":([a-z]+)", question.sql)) == set(question.parameters)
