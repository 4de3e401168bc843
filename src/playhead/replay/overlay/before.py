"""Say what the world was like when a recorded run began, from what the run did to it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_MAKING = frozenset({"directory.created", "file.created", "link.created"})
_OF_FILES = frozenset({"file.deleted", "file.renamed", "file.written"})
_ON_DISK = ("directory.", "file.", "link.", "mode.", "owner.", "times.")


class Before(NamedTuple):
    """Paths of which it is known what was there."""

    absent: list[str]  # nothing
    folders: list[str]
    files: list[str]  # with a content that is not known
    modes: list[tuple[str, int]]  # and one that it had not, since that was set
    only: dict[str, set[str]]  # by folder: paths in it that there were at most, since it was empty once these were gone


def before(effects: Iterable[Mapping[str, Any]]) -> Before:
    """Take the effects of a run, in their order: the first that is done to a path tells what was there."""
    found = Before([], [], [], [], {})
    touched: set[str] = set()
    changed: set[str] = set()  # whose mode was set
    for effect in effects:
        what, target, detail = effect["what"], effect["target"], effect.get("detail") or {}
        if not what.startswith(_ON_DISK) or not target.startswith("/"):
            continue
        names = [target, detail["to"]] if what == "file.renamed" else [target]
        for name in names:
            _note(found.folders, os.path.dirname(name), touched)
        if what in _MAKING or detail.get("created"):
            _note(found.absent, target, touched)
        elif what == "directory.deleted":
            if target not in found.absent:
                found.only[target] = {path for path in touched if os.path.dirname(path) == target}
            _note(found.folders, target, touched)
        elif what == "mode.changed":
            if target not in changed and target not in found.absent:
                found.modes.append((target, int(detail["mode"], 8)))
            changed.add(target)
        elif what in _OF_FILES:
            _note(found.files, target, touched)
            if what == "file.renamed":
                _note(found.absent, detail["to"], touched)
    return found


def _note(paths: list[str], path: str, touched: set[str]) -> None:
    if path not in touched:
        touched.add(path)
        paths.append(path)
