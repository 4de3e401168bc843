"""Let a program have its own `random.py`, though the recorder has loaded Python's: whoever comes first would win."""

from __future__ import annotations

import os
import sys
from collections.abc import Set
from importlib.machinery import PathFinder

# What is loaded with us, and not imported again by code of ours that runs later: that would find the program's.
GIVING_WAY = frozenset(
    """
    ast bisect calendar copy datetime decimal dis fractions hmac ipaddress keyword linecache locale math numbers random
    secrets string textwrap token tokenize
    """.split()  # noqa: SIM905
)


def make_way(before: Set[str]) -> None:
    """Take modules that only we have loaded out of sight where the program's folder has another by that name.

    Called before the program begins. We keep what we have; the program finds its own, as it would without us.
    """
    folder = _programs_folder()
    if folder is None:
        return
    known = folder in sys.path_importer_cache
    for name in GIVING_WAY - before:
        if name in sys.modules and _has_another(folder, name):
            del sys.modules[name]
    if not known:
        sys.path_importer_cache.pop(folder, None)


def _programs_folder() -> str | None:
    """Return what will be the first place where the program's imports are looked for."""
    if sys.flags.safe_path:
        return None
    program = sys.argv[0] if sys.argv else ""
    if program.endswith((".zip", ".pyz")):
        return None  # that is the place itself
    if program not in ("", "-", "-c", "-m"):
        return program if os.path.isdir(program) else os.path.dirname(os.path.realpath(program))
    try:
        return os.getcwd()
    except OSError:
        return None  # it is gone


def _has_another(folder: str, name: str) -> bool:
    here = sys.modules[name].__spec__
    if here is None or here.origin in (None, "built-in", "frozen"):
        return False  # nothing comes before these
    found = PathFinder.find_spec(name, [folder])
    return found is not None and found.origin not in (None, here.origin)  # None: a folder that is no package
