"""Say what is done to files, from what the interpreter tells right before it is done."""

from __future__ import annotations

import os
import re
import stat
from types import FrameType
from typing import Any

from playhead import _limits
from playhead._ids import is_run_id
from playhead.capture import calling, obstacles, untold

# What, target, detail; and whether it is sure that it happens, where it is not.
Effect = tuple[str, str, dict[str, Any]] | tuple[str, str, dict[str, Any], bool]

_SORTS = {stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFSOCK: "socket"}
# What is open, by its number.
_OPEN = re.compile(r"/dev/(?:std(?:in|out|err)|fd/\d+)|/proc/[^/]+/(?:task/\d+/)?fd/\d+")
_DELETED = " (deleted)"  # what Linux puts after the name of something open that has none any more


def absolute(path: Any, folder: int = -1) -> str | None:
    """Return a path as it is meant now, as given where nobody can tell; None for the number of an open file.

    Links stay in it, but for one before a `..`, and for the number by which a file is open.
    """
    if isinstance(path, int):
        return None
    text = os.fsdecode(path)
    if not os.path.isabs(text):
        if (start := _start(folder)) is None:
            return text
        text = os.path.join(start, text)
    if ".." in (parts := text.split("/")):
        cut = len(parts) - parts[::-1].index("..")
        head, real = os.path.normpath("/".join(parts[:cut])), os.path.realpath("/".join(parts[:cut]))
        text = os.path.join(head if os.path.realpath(head) == real else real, *parts[cut:])
    text = "/" + os.path.normpath(text).lstrip("/")
    if _OPEN.fullmatch(text) and os.path.exists(real := os.path.realpath(text)):
        return real
    return text


def _start(folder: int) -> str | None:
    """Return the folder that a name is relative to; None where it cannot be found out."""
    try:
        return os.getcwd() if folder < 0 else os.readlink(f"/proc/self/fd/{folder}")
    except OSError:
        pass  # the working directory is gone; or no Linux
    try:
        return os.readlink("/proc/self/cwd").removesuffix(_DELETED) if folder < 0 else None
    except OSError:
        return None


def written(args: tuple[Any, ...]) -> Effect | None:
    """Take a file that is opened for writing as written; the last argument is the frame of whoever opens it."""
    path, by, flags, frame = args
    mode = "a" if flags & os.O_APPEND else "w" if flags & os.O_TRUNC else "x" if flags & os.O_EXCL else "r+"
    has_opener = by is not None and calling.gives_argument(frame, "opener")
    if has_opener:
        return None  # what the opener opens is told when it does
    target = _opened(path, frame) if by is None else absolute(path)
    if target is None:
        return None
    if not os.path.isabs(target):
        return "file.written", target, {"mode": mode}
    there = obstacles.look(target)
    if not obstacles.can_write(target, there, flags):
        return None
    if has_opener is None:
        return "file.written", target, {"mode": mode}, False
    if there is None:
        return "file.written", target, {"mode": mode, "created": True}
    return "file.written", target, {"mode": mode, **({"size": there.st_size} if mode == "a" else {})}


def _opened(path: Any, frame: FrameType) -> str | None:
    """Return what `os.open` opens, which does not tell relative to which folder; as given where nobody can tell."""
    if (folder := untold.folder()) is not None or isinstance(path, int) or os.path.isabs(os.fsdecode(path)):
        return absolute(path, -1 if folder is None else folder)
    named = calling.names_argument(frame, "dir_fd") or calling.names_argument(frame, "opener")
    if not named and not calling.spreads_arguments(frame):
        return absolute(path)
    found = _folders()
    if not named and found == []:
        return absolute(path)
    return os.path.join(found[0], os.fsdecode(path)) if named and found and len(found) == 1 else os.fsdecode(path)


def _folders() -> list[str] | None:
    """Return the folders that are open by their number; None where it cannot be found out."""
    found = set()
    try:
        for number in os.listdir("/proc/self/fd"):
            if int(number) >= _limits.DESCRIPTOR_MIN or not _is_folder(int(number)):
                continue  # those that we have open have high numbers
            path = os.readlink(f"/proc/self/fd/{number}")
            if not is_run_id(os.path.basename(path)):  # where such numbers are not allowed
                found.add(path)
    except OSError:
        return None  # no Linux
    return list(found)


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
    """Take a database that is opened for writing as written: what is then done to it is not seen.

    The last argument is the frame of whoever opens it: whether `file:…` is a URI or a name is not told otherwise.
    """
    text = os.fsdecode(args[0])
    if not text.startswith("file:"):
        return _database(text)
    if (told := untold.uri()) is not None:
        return _database(*_of_uri(text)) if told else _database(text)
    as_uri = _database(*_of_uri(text))
    named = calling.names_argument(args[1], "uri") or calling.spreads_arguments(args[1])
    if named or (as_name := _database(text)) is None:
        return as_uri
    return as_name if as_uri is None else ("file.written", text, {"mode": "sqlite"})  # nobody can tell


def attached(args: tuple[Any, ...]) -> Effect | None:
    """Take a database that a connection attaches, or writes a copy to, as written: by its name, or by a URI."""
    (text,) = args
    if text == untold.UNNAMED:
        return "file.written", text, {"mode": "sqlite"}
    return _database(*_of_uri(text)) if text.startswith("file:") else _database(text)


def _database(path: str, reads: bool = False, keeps: bool = False) -> Effect | None:
    """Say that a database is written. `reads` says that it is not, `keeps` that it is not where it is there."""
    if path in ("", ":memory:") or reads or (target := absolute(path)) is None:
        return None
    there = obstacles.look(target)
    if (keeps and there is not None) or not obstacles.can_write(target, there, os.O_CREAT):
        return None
    return "file.written", target, {"mode": "sqlite", **({"created": True} if there is None else {})}


def _of_uri(text: str) -> tuple[str, bool, bool]:
    """Return which file SQLite opens for a URI, whether only for reading, and whether it leaves it as it is."""
    from urllib.parse import unquote

    path, _, query = text.removeprefix("file:").partition("#")[0].partition("?")
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]  # any host but this one is refused
    options = dict(one.partition("=")[::2] for one in query.split("&"))  # of several, the last counts
    given = {unquote(name).partition("\0")[0]: unquote(value).partition("\0")[0] for name, value in options.items()}
    reads = given.get("mode") in ("ro", "memory")
    return unquote(path).partition("\0")[0], reads, given.get("immutable") == "1"


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
    if target is None or not _can_change(target):
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


def attribute_changed(args: tuple[Any, ...]) -> Effect | None:
    """Say which file gets an extended attribute, or loses one."""
    target = _named(args[0], -1)
    if target is None or not (_can_change(target) or os.access(target, os.W_OK)):
        return None
    removed = {} if len(args) > 2 else {"removed": True}
    return "attribute.changed", target, {"name": os.fsdecode(args[1]), **removed}


def _can_change(path: str) -> bool:
    """Say whether something is ours to change, the link or what it leads to: which of them is not told."""
    return any(obstacles.can_change(obstacles.look(path, follow=follow)) for follow in (False, True))


def _named(path: Any, folder: int) -> str | None:
    """Return the path of something, also where it is told by the number by which it is open."""
    if not isinstance(path, int):
        return absolute(path, folder)
    try:
        name = os.readlink(f"/proc/self/fd/{path}")
    except OSError:
        return None  # no Linux, and so not to be found out
    return name if name.startswith("/") and os.path.exists(name) else None  # else it is a pipe, or deleted
