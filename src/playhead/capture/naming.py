"""Tell from a command line what a program is: its name, and whether Python runs it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

_PYTHON = re.compile(r"(python|pypy)[0-9.]*[wt]?(\.exe)?", re.IGNORECASE)
_WITH_VALUE = "WX"  # options of python that take a value
_SAYS_ONLY = re.compile(r"-V+|--version|-[h?]|--help(-\w+)?")  # options of python that run nothing
_SHEBANG_BYTES_MAX = 512


def program_name(argv: Sequence[str]) -> str:
    """Name a run after its program: for Python, after the script or the module."""
    base = Path(argv[0]).name or argv[0]
    found = _python_program(argv[1:]) if _PYTHON.fullmatch(base) else None
    return (found or base).encode("utf-8", "replace").decode()


def is_python(argv: Sequence[str]) -> bool:
    """Say whether a program is surely run by Python: it is an interpreter, or a script that names one."""
    if _PYTHON.fullmatch(Path(argv[0]).name):
        return not any(_SAYS_ONLY.fullmatch(argument) for argument in argv[1:2])
    found = shutil.which(argv[0])
    if found is None:
        return False
    try:
        with open(found, "rb") as file:
            first = file.read(_SHEBANG_BYTES_MAX).partition(b"\n")[0]
    except OSError:
        return False
    words = first.removeprefix(b"#!").decode("utf-8", "replace").split()
    return first.startswith(b"#!") and any(_PYTHON.fullmatch(Path(word).name) for word in words)


def _python_program(arguments: Sequence[str]) -> str | None:
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-"):
            path = Path(argument)
            return path.parent.name or path.stem if path.name == "__main__.py" else path.stem
        if argument == "-":
            return None
        if argument.startswith("--"):
            continue
        for place, letter in enumerate(argument[1:], 2):
            if letter == "c":
                return None
            if letter == "m":
                return argument[place:] or next(rest, None)
            if letter in _WITH_VALUE:
                if not argument[place:]:
                    next(rest, None)
                break
    return None
