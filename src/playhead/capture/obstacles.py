"""See beforehand what would keep an act from being done: the name that is not there, the folder that is not empty.

The interpreter tells of an act before it does it. What can be seen to fail changes nothing outside, and must not read
as done. Every function answers the question "can it be done?" and changes nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

_EXCLUSIVE = os.O_CREAT | os.O_EXCL
_EFFECTIVE = os.access in os.supports_effective_ids  # not as whoever started it, but as it is now


def look(path: str, *, follow: bool = True) -> os.stat_result | None:
    """Return what is at a place; None where nothing is, or where we may not look."""
    try:
        return os.stat(path) if follow else os.lstat(path)
    except (OSError, ValueError):  # a name with a null character
        return None


def can_write(path: str, there: os.stat_result | None, flags: int) -> bool:
    """Say whether a file can be opened for writing; a terminal, /dev/null and the like are no files."""
    if there is None:  # a link may lead to what is not there yet
        return bool(flags & os.O_CREAT) and can_enter(os.path.realpath(path))
    if flags & _EXCLUSIVE == _EXCLUSIVE or stat.S_ISDIR(there.st_mode) or stat.S_ISCHR(there.st_mode):
        return False
    return os.access(path, os.W_OK, effective_ids=_EFFECTIVE)


def can_enter(path: str) -> bool:
    """Say whether a name can be added to the folder that it is in, or taken from it."""
    folder = os.path.dirname(path) or os.curdir
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK, effective_ids=_EFFECTIVE)


def can_create(path: str) -> bool:
    """Say whether something new can get this name."""
    return look(path, follow=False) is None and can_enter(path)


def can_link(source: str, path: str) -> bool:
    """Say whether a file can get a second name."""
    on_one_disk = _are_on_one_disk(source, path) or _are_on_one_disk(os.path.realpath(source), path)
    return look(source, follow=False) is not None and on_one_disk and can_create(path)


def can_delete(path: str) -> bool:
    """Say whether a file can be deleted."""
    there = look(path, follow=False)
    return there is not None and not stat.S_ISDIR(there.st_mode) and can_enter(path)


def can_delete_folder(path: str) -> bool:
    """Say whether a folder can be deleted: an empty one."""
    there = look(path, follow=False)
    return there is not None and stat.S_ISDIR(there.st_mode) and _is_empty(path) and can_enter(path)


def can_rename(source: str, path: str) -> bool:
    """Say whether something can be moved to another name; not from one disk to another."""
    there = look(source, follow=False)
    if there is None or not _are_on_one_disk(source, path):
        return False
    replaced = look(path, follow=False)
    if replaced is not None:
        if stat.S_ISDIR(there.st_mode) != stat.S_ISDIR(replaced.st_mode):
            return False
        if stat.S_ISDIR(replaced.st_mode) and not _is_empty(path):
            return False
    return can_enter(source) and can_enter(path)


def _are_on_one_disk(source: str, path: str) -> bool:
    """Say whether two names are on one disk, by their folders: of an overlay, files seem to be elsewhere."""
    one, other = look(os.path.dirname(source)), look(os.path.dirname(path))
    return one is not None and other is not None and one.st_dev == other.st_dev


def can_change(there: os.stat_result | None) -> bool:
    """Say whether mode and owner of a file are ours to change."""
    return there is not None and os.geteuid() in (0, there.st_uid)


def can_touch(path: str, *, now: bool) -> bool:
    """Say whether the times of a file can be changed: by its owner, to now by whoever may write it."""
    return any(can_change(look(path, follow=follow)) for follow in (False, True)) or (
        now and os.access(path, os.W_OK, effective_ids=_EFFECTIVE)
    )


def can_signal(process: int, *, group: bool = False) -> bool:
    """Say whether a process can be sent a signal."""
    try:
        (os.killpg if group else os.kill)(process, 0)
    except (OSError, OverflowError):
        return False
    return True


def program(name: str, folder: str | None, environment: Mapping[Any, Any] | None, *, search: bool = True) -> str | None:
    """Return the file that would be run for a name; None where there is none, or no folder to run it in.

    Whoever does not `search` runs a name without a folder where it is.
    """
    if folder is not None and not os.path.isdir(folder):
        return None
    if os.path.dirname(name) or not search:
        found = os.path.join(folder or "", name)
        return os.path.abspath(found) if _can_run(found) else None
    variables = os.environ if environment is None else environment  # which may have names in text or in bytes
    places = next((places for key, places in variables.items() if key in ("PATH", b"PATH")), os.defpath)
    for place in os.fsdecode(places).split(os.pathsep):
        if _can_run(found := os.path.join(folder or "", place, name)):  # the process is in its folder when it looks
            return os.path.abspath(found)
    return None


def _can_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_empty(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except PermissionError:
        return True  # as far as can be seen: to delete one, nobody has to look into it
    except OSError:
        return False
