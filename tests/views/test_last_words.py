"""What a program wrote last is said by the line that says most."""

from __future__ import annotations

import pytest

from playhead.views.last_words import LastWords

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    go()\n'


@pytest.mark.parametrize("at_once", [1, 7, 1000])
@pytest.mark.parametrize(
    ("written", "line", "raised"),
    [
        (f"{TRACEBACK}KeyError: 'priority'\n", "KeyError: 'priority'", "KeyError: 'priority'"),
        (f"{TRACEBACK}api.BadRequest: no\nof two lines\n", "api.BadRequest: no", "api.BadRequest: no"),
        (f"{TRACEBACK}A: a\n\nDuring handling:\n\n{TRACEBACK}B: b\nnote\n", "B: b", "B: b"),
        (f"{TRACEBACK}A: a\nCleaning up.\n", "A: a", "A: a"),
        (f"log\n{TRACEBACK}", "go()", None),
        (f"{TRACEBACK}KeyErr", "KeyErr", None),
        ("one\ntwo \n\n", "two", None),
        ("", "", None),
    ],
)
def test_the_last_words(written: str, line: str, raised: str | None, at_once: int) -> None:
    words = LastWords()
    for start in range(0, len(written), at_once):
        words.take(written[start : start + at_once])
    assert (words.line, words.raised) == (line, raised)
