"""Say what is done to files, from what the interpreter tells right before it is done."""

from __future__ import annotations

import os
import stat
from types import FrameType
from typing import Any

from playhead import _limits
from playhead._ids import is_run_id
from playhead.capture import calling, obstacles

Effect = tuple[str, str, dict[str, Any]]  # what, target, detail

_SORTS = {stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFSOCK: "socket"}


def absolute(path: Any, folder: int = -1) -> str | None:
    """Return a path as it is meant now; None for the number of an open file."""
    if isinstance(path, int):
        return None
    text = os.fsdecode(path)
    if folder >= 0 and not os.path.isabs(text):
        try:
            text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
        except OSError:
            return text  # no Linux, and so not to be found out
    try:
        return os.path.abspath(text)
    except OSError:  # the working directory is gone
        return text


def written(args: tuple[Any, ...]) -> Effect | None:
    """Take a file that is opened for writing as written; the last argument is the frame of whoever opens it."""
    path, by, flags, frame = args
    mode = "a" if flags & os.O_APPEND else "w" if flags & os.O_TRUNC else "x" if flags & os.O_EXCL else "r+"
    if by is not None and calling.names_argument(frame, "opener"):
        return None  # what the opener opens is told when it does
    if (target := absolute(path)) is None:
        return None
    if by is None and not os.path.isabs(os.fsdecode(path)) and _elsewhere(frame):  # `os.open` does not tell where
        if (folder := _only_folder()) is None:
            return "file.written", os.fsdecode(path), {"mode": mode}
        target = os.path.join(folder, os.fsdecode(path))
    there = obstacles.look(target)
    if not obstacles.can_write(target, there, flags):
        return None
    if there is None:
        return "file.written", target, {"mode": mode, "created": True}
    return "file.written", target, {"mode": mode, **({"size": there.st_size} if mode == "a" else {})}


def _elsewhere(frame: FrameType) -> bool:
    """Say whether a name is relative to another folder than that of the process, or may be."""
    return calling.names_argument(frame, "dir_fd") or calling.names_argument(frame, "opener")


def _only_folder() -> str | None:
    """Return the folder that is open by its number; None where it could be one of several."""
    found = set()
    try:
        for number in os.listdir("/proc/self/fd"):
            if int(number) >= _limits.DESCRIPTOR_MIN or not _is_folder(int(number)):
                continue  # those that we have open have high numbers
            path = os.readlink(f"/proc/self/fd/{number}")
            if not is_run_id(os.path.basename(path)):  # where such numbers are not allowed
                found.add(path)
    except OSError:
        return None  # no Linux, and so not to be found out
    return found.pop() if len(found) == 1 else None


def _is_folder(number: int) -> bool:
    try:
        return stat.S_ISDIR(os.fstat(number).st_mode)
    except OSError:  # the one that was listed with
        return False


def truncated(args: tuple[Any, ...]) -> Effect | None:
    """Take a file that is cut as written."""
    target = absolute(args[0])
    if target is None or not obstacles.can_write(target, obstacles.look(target), 0):
        return None
    return "file.written", target, {"mode": "r+", "length": args[1]}


def database(args: tuple[Any, ...]) -> Effect | None:
    """Take a database that is opened for writing as written: what is then done to it is not seen."""
    text = os.fsdecode(args[0])
    path, _, query = text.removeprefix("file:").partition("?") if text.startswith("file:") else (text, "", "")
    if path in ("", ":memory:") or {"mode=ro", "mode=memory", "immutable=1"} & set(query.split("&")):
        return None
    if (target := absolute(path)) is None:
        return None
    there = obstacles.look(target)
    if not obstacles.can_write(target, there, os.O_CREAT):
        return None
    return "file.written", target, {"mode": "sqlite", **({"created": True} if there is None else {})}


def renamed(args: tuple[Any, ...]) -> Effect | None:
    """Say what gets another name."""
    source, target = absolute(args[0], args[2]), absolute(args[1], args[3])
    if source is None or target is None or not obstacles.can_rename(source, target):
        return None
    return "file.renamed", source, {"to": target}


def linked(args: tuple[Any, ...]) -> Effect | None:
    """Say what gets one more name."""
    source, target = absolute(args[0], args[2]), absolute(args[1], args[3])
    if source is None or target is None or not obstacles.can_link(source, target):
        return None
    return "link.created", target, {"to": source}


def symlinked(args: tuple[Any, ...]) -> Effect | None:
    """Say where a link is made."""
    target = absolute(args[1], args[2])
    if target is None or not obstacles.can_create(target):
        return None
    return "link.created", target, {"to": os.fsdecode(args[0]), "symbolic": True}


def deleted(args: tuple[Any, ...]) -> Effect | None:
    """Say which file is deleted."""
    target = absolute(args[0], args[1])
    return None if target is None or not obstacles.can_delete(target) else ("file.deleted", target, {})


def folder_created(args: tuple[Any, ...]) -> Effect | None:
    """Say which folder is made."""
    target = absolute(args[0], args[2])
    if target is None or not obstacles.can_create(target):
        return None
    return "directory.created", target, {"mode": f"{args[1]:04o}"}


def folder_deleted(args: tuple[Any, ...]) -> Effect | None:
    """Say which folder is deleted."""
    target = absolute(args[0], args[1])
    return None if target is None or not obstacles.can_delete_folder(target) else ("directory.deleted", target, {})


def made(args: tuple[Any, ...]) -> Effect | None:
    """Say which pipe or device gets a name: `args` are its path, what it is, the number of the folder."""
    path, mode, folder = args
    target = absolute(path, folder)
    special = mode in (stat.S_IFCHR, stat.S_IFBLK)
    if target is None or not obstacles.can_create(target) or (special and os.geteuid() != 0):
        return None
    return "file.created", target, {"type": _SORTS.get(mode, "file")}


def mode_changed(args: tuple[Any, ...]) -> Effect | None:
    """Say whose permissions change."""
    target = _named(args[0], args[2])
    there = None if target is None else obstacles.look(target)
    if target is None or there is None or not obstacles.can_change(there) or there.st_mode & 0o7777 == args[1]:
        return None
    return "mode.changed", target, {"mode": f"{args[1]:04o}"}


def owner_changed(args: tuple[Any, ...]) -> Effect | None:
    """Say what gets another owner."""
    target = _named(args[0], args[3])
    if target is None or not obstacles.can_change(obstacles.look(target, follow=False)):
        return None
    owner = [-1 if number == 2**32 - 1 else number for number in args[1:3]]  # -1 leaves it as it is
    return "owner.changed", target, {"owner": owner}


def times_changed(args: tuple[Any, ...]) -> Effect | None:
    """Say what seems to have been read and changed at another time: now, or as given."""
    path, seconds, nanoseconds, folder = args
    target = _named(path, folder)
    if target is None or not obstacles.can_touch(target, now=seconds is None and nanoseconds is None):
        return None
    given = nanoseconds or [round(one * 10**9) for one in seconds or ()]
    return "times.changed", target, dict(zip(("accessed_ns", "modified_ns"), given, strict=False))


def _named(path: Any, folder: int) -> str | None:
    """Return the path of something, also where it is told by the number by which it is open."""
    if not isinstance(path, int):
        return absolute(path, folder)
    try:
        name = os.readlink(f"/proc/self/fd/{path}")
    except OSError:
        return None  # no Linux, and so not to be found out
    return name if name.startswith("/") and os.path.exists(name) else None  # else it is a pipe, or deleted
