from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from playhead import _limits
from playhead.views import last_words
from playhead.views.last_words import LastWords

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    go()\n'

PROGRAMS = {
    "in a library": ("import json\ndef read():\n    return json.loads('{')\nread()\n", "json.decoder.JSONDecodeError: ", 3),
    "raised from another": (
        "def read():\n    try:\n        {}['a']\n    except KeyError as e:\n        raise ValueError('no a') from e\nread()\n",
        "ValueError: no a", 5,
    ),
    "a message of several lines": ("def read():\n    raise ValueError('one\\ntwo\\n  three')\nread()\n", "ValueError: one", 2),
    "without a message": ("def read():\n    raise ValueError\nread()\n", "ValueError", 2),
    "the last of a group": (
        "def read():\n    try:\n        {}['a']\n    except KeyError as e:\n        raise ExceptionGroup('all', [e])\nread()\n",
        "KeyError: 'a'", 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_error_and_the_place_in_the_program_are_read_off_a_real_traceback(name: str, tmp_path: Path) -> None:
    source, error, line = PROGRAMS[name]
    program = tmp_path / "agent.py"
    program.write_text(source)
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    found, where = last_words.read(f"a line before\n{ended.stderr}")
    assert found.startswith(error)
    if name != "the last of a group":
        assert where == f"agent.py:{line} in read"


def test_the_innermost_error_behind_the_one_that_was_raised_is_read_off_a_real_traceback(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    chains = {
        "raise KeyError('a')": None,
        "try: {}['a']\nexcept KeyError as e: raise ValueError('no a') from e": "KeyError: 'a'",
        "try:\n    try: {}['a']\n    except KeyError: 1 / 0\nexcept ZeroDivisionError as e: raise ValueError from e": (
            "KeyError: 'a'"
        ),
        "try: {}['a']\nexcept KeyError: pass\nraise ValueError": None,
    }
    for source, behind in chains.items():
        program.write_text(f"import traceback\ntry: 1 / 0\nexcept Exception: traceback.print_exc()\n{source}\n")
        ended = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
        assert last_words.behind(ended.stderr) == behind
    assert last_words.behind("The above exception was the direct cause of the following exception:\n") is None


def test_the_place_is_told_of_paths_of_windows_too() -> None:
    frame = 'Traceback (most recent call last):\n  File "C:\\\\a\\\\agent.py", line 3, in <module>\n    1 / 0\n'
    assert last_words.read(f"{frame}ZeroDivisionError: division by zero\n") == (
        "ZeroDivisionError: division by zero", "agent.py:3 in <module>",
    )  # fmt: skip


def test_without_a_traceback_it_is_the_last_line() -> None:
    assert last_words.read("starting\nerror: no such model\n\n") == ("error: no such model", None)
    assert last_words.read("playhead: there is no x\n  `playhead ls` has y\n") == ("playhead: there is no x", None)
    assert last_words.read("") == ("", None)
    assert last_words.read("x\n" * _limits.LAST_WORDS_CHARACTERS_MAX + "the end") == ("the end", None)


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
