"""Remove a run directory so that nobody, at any moment, takes it for one that was removed behind Playhead's back.

The journal first says why the run will be missing. Then it leaves the store in one step, by a new name, and only then
its files go. A process that is killed in between leaves a whole run, or a folder that no longer counts as one and that
the next prune removes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from playhead.errors import LedgerError, RunNotFound, StoreError
from playhead.store import layout
from playhead.store.disk import Disk


def remove_run_dir(root: Path, run: str, disk: Disk, note: Callable[[], None]) -> None:
    """Remove the directory of a run; `note` tells the journal, and returns when that is on the disk."""
    folder, aside = layout.run_dir(root, run), layout.pruned_dir(root, run)
    if folder.is_symlink():
        raise StoreError(f"{run} is a link to another place", hint="Remove the link and what it leads to by hand.")
    noted = _succeeds(note)
    try:
        remove_folder(aside)  # of a removal that was killed, after which the run was brought back
        disk.replace(folder, aside)
        remove_folder(aside)
    except FileNotFoundError:
        raise RunNotFound(f"no run {run} in {root}") from None  # somebody else was faster
    except OSError as problem:
        raise StoreError(f"{problem.filename or folder} cannot be removed: {problem.strerror}") from problem
    if not noted:
        note()


def remove_leftovers(root: Path) -> None:
    """Remove what is left of runs whose removal was stopped half way."""
    for folder in layout.runs_dir(root).iterdir():
        if layout.is_pruned(folder):
            try:
                remove_folder(folder)
            except OSError as problem:
                raise StoreError(f"{problem.filename or folder} cannot be removed: {problem.strerror}") from problem


def remove_folder(path: Path) -> None:
    """Remove a folder with all it holds, also where somebody else does so at the same time."""
    while path.exists():
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            continue


def _succeeds(note: Callable[[], None]) -> bool:
    try:
        note()
    except LedgerError:  # the disk is full: removing the run makes room for the note
        return False
    return True
