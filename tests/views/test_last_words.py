from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from playhead import _limits
from playhead.views import last_words

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


def test_at_the_top_of_a_program_there_is_no_function_to_name() -> None:
    frame = 'Traceback (most recent call last):\n  File "C:\\\\a\\\\agent.py", line 3, in <module>\n    1 / 0\n'
    assert last_words.read(f"{frame}ZeroDivisionError: division by zero\n") == (
        "ZeroDivisionError: division by zero", "agent.py:3",
    )  # fmt: skip


def test_without_a_traceback_it_is_the_last_line() -> None:
    assert last_words.read("starting\nerror: no such model\n\n") == ("error: no such model", None)
    assert last_words.read("") == ("", None)
    assert last_words.read("x\n" * _limits.LAST_WORDS_CHARACTERS_MAX + "the end") == ("the end", None)
