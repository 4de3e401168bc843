"""Hand files that are open in the scratch folder over to the world, where a program goes on in it."""

from __future__ import annotations

import fcntl
import os
import re

from playhead.replay.overlay.layers import Layers, StillOpen

_ONCE = os.O_CREAT | os.O_EXCL | os.O_TRUNC
_LATER_US = 1_000_000  # after its last event a program that was cut off may still have written
_CUT_BACK = "was longer than at the last recorded event, and was cut back to that: it is written again"
_DOUBLED = "is longer than at the last recorded event: what is written from here on may be there twice"
_FLAGS = re.compile(r"^flags:\s*([0-7]+)$", re.MULTILINE)


def hand_over(layers: Layers, until_us: int | None) -> list[str]:
    """Let what is open for writing in the scratch folder be open in the world instead, at the same place.

    What is added to and is longer there is cut back to what the program has written so far, if nobody has touched it
    since a time in microseconds (`until_us`): the program will write the rest again. Returns what was found longer.
    """
    longer = []
    for number in _open_here(layers):
        try:
            place = layers.raw.readlink(f"/proc/self/fd/{number}")
            text = _text(layers, f"/proc/self/fdinfo/{number}")
        except OSError:
            continue  # closed meanwhile
        flags = int((_FLAGS.search(text) or ["", "0"])[1], 8)
        if not place.startswith(layers.files + "/") or not flags & (os.O_WRONLY | os.O_RDWR):
            continue
        path, size = layers.shown(place), layers.raw.fstat(number).st_size
        if _is_database(layers, place):
            raise StillOpen(path)  # its journal would stay here, and so nothing could be undone there
        position = os.lseek(number, 0, os.SEEK_CUR)
        try:
            there = layers.raw.open(path, flags & ~_ONCE | os.O_CLOEXEC)
        except FileNotFoundError:
            there = _brought(layers, number, path, flags)
        facts = layers.raw.fstat(there)
        if facts.st_size > size and (flags & os.O_APPEND or until_us is not None):
            own = until_us is not None and facts.st_mtime_ns // 1000 <= until_us + _LATER_US
            if own:
                os.ftruncate(there, size)
            longer.append(f"{path} {_CUT_BACK if own else _DOUBLED}")
        inheritable = fcntl.fcntl(number, fcntl.F_GETFD)
        os.dup2(there, number)
        fcntl.fcntl(number, fcntl.F_SETFD, inheritable)
        os.close(there)
        os.lseek(number, position, os.SEEK_SET)
    return longer


def _is_database(layers: Layers, place: str) -> bool:
    return _content(layers, place, 16) == b"SQLite format 3\0"


def _content(layers: Layers, path: str, size: int = -1) -> bytes | None:
    try:
        number = layers.raw.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(number, "rb") as file:
        return file.read(size)


def _open_here(layers: Layers) -> list[int]:
    """Return the numbers of what is open; none where the system does not tell."""
    try:
        return sorted(int(name) for name in layers.raw.listdir("/proc/self/fd"))
    except FileNotFoundError:
        return []


def _text(layers: Layers, path: str) -> str:
    number = layers.raw.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(number, 4096).decode()
    finally:
        os.close(number)


def _brought(layers: Layers, number: int, path: str, flags: int) -> int:
    """Make a file that the world does not have, with what the program has written to it."""
    there = int(layers.raw.open(path, flags & ~_ONCE | os.O_CREAT | os.O_CLOEXEC, 0o666))
    copy = layers.raw.open(f"/proc/self/fd/{number}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        while part := os.read(copy, 1 << 20):
            os.write(there, part)
    finally:
        os.close(copy)
    return there
