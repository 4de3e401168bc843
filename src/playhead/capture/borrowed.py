"""Lend Playhead to a program whose own environment does not have it: Playhead, what it is made of, and nothing else.

Loaded from its file by attach/sitecustomize.py, before anything of Playhead can be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

NAMES = ("playhead", "msgspec", "orjson", "rfc8785")


class Finder:
    """Find what is lent where nobody else finds it."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer the import system."""
        return PathFinder.find_spec(name, self._folders, target) if path is None and name in NAMES else None


def lend(tag: str, folders: Sequence[str]) -> None:
    """Make `playhead` importable; ImportError where it cannot be, since compiled code fits one Python only.

    `tag` says for which Python the folders were filled.
    """
    if PathFinder.find_spec("playhead") is not None:
        return
    here = sys.implementation.cache_tag
    if here != tag:
        raise ImportError(f"Playhead is not installed for this Python, and the launcher's is for {tag}, not {here}")
    sys.meta_path.append(Finder(folders))
