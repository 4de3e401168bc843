"""Hand files that are open in the scratch folder over to the world, where a program goes on in it."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from playhead import _limits
from playhead.replay.overlay.layers import CannotLeave, Layers

_ONCE = os.O_CREAT | os.O_EXCL | os.O_TRUNC
_CUT_BACK = "was longer than what the program had written by then, and was cut back to that: it is written again"
_DOUBLED = "is longer than what the program had written by then: what is written from here on may be there twice"
_OTHER = "is not what the program wrote to it: it is gone on with at its end, and something may be missing"
_DATABASE = b"SQLite format 3\0"
_PIECE = 1 << 20
_COARSE_NS = 20_000_000  # that the times of files may be behind the clock


class _Open(NamedTuple):
    """Something that is open for writing."""

    number: int
    place: str  # in the scratch folder
    path: str
    flags: int
    size: int
    there: int  # the same in the world, open at this number


def hand_over(layers: Layers, until_us: int | None, is_own: Callable[[str, bool], bool]) -> list[str]:
    """Let what is open for writing in the scratch folder be open in the world instead, at the same place.

    What is longer there is cut back to what the program has written so far, since it will write the rest again: if it
    is the program's own (`is_own`, of a path and whether it is added to: nothing whose body did not run may have
    written to it), and nobody has touched it since the program ended, in microseconds (`until_us`). A trial has no such
    time. It leaves what is added to as it is, and cuts back what it writes from its beginning. All else stays,
    and is gone on with at its end. Returns what was found longer. CannotLeave where something cannot be handed over:
    then nothing is.
    """
    found: list[_Open] = []
    try:
        for number in _numbers(layers):
            one = _opened(layers, number)
            if one is not None:
                found.append(one)
        _go_into_world(layers)
        return [note for one in found if (note := _swap(layers, one, until_us, is_own))]
    finally:
        for one in found:
            os.close(one.there)


def _numbers(layers: Layers) -> list[int]:
    """Return the numbers of what is open."""
    return sorted(int(name) for name in layers.raw.listdir("/dev/fd"))


def _opened(layers: Layers, number: int) -> _Open | None:
    """Open in the world what is open here; None where it is nothing that is written to in the scratch folder."""
    try:
        place, facts = layers.place_of(number), layers.raw.fstat(number)
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
    except OSError:
        return None  # closed meanwhile
    if not place.startswith(layers.files + "/") or not flags & (os.O_WRONLY | os.O_RDWR):
        return None
    if not facts.st_nlink or not stat.S_ISREG(facts.st_mode):
        return None  # what has no name any more is nobody else's
    path = layers.shown(place)
    if place in layers.databases or _is_database(layers, place) or _is_database(layers, path):
        # Its journal would stay here, and so nothing could be undone there.
        raise CannotLeave(f"the database {path} is open in the program, which cannot go on with it in the world")
    try:
        there = _there(layers, place, path, flags & ~_ONCE | os.O_CLOEXEC)
    except OSError as problem:
        text = f"{path} is open in the program, which cannot go on with it in the world: {problem.strerror}"
        raise CannotLeave(text) from None
    return _Open(number, place, path, flags, facts.st_size, there)


def _there(layers: Layers, place: str, path: str, flags: int) -> int:
    """Open a file of the world; one that it does not have is made, with what the program has written to it."""
    try:
        return int(layers.raw.open(path, flags))
    except FileNotFoundError:
        _make_way(layers, os.path.dirname(path))
    there = int(layers.raw.open(path, flags | os.O_CREAT, 0o666))
    _bring(layers, place, there, 0)
    return there


def _bring(layers: Layers, place: str, there: int, start: int) -> None:
    """Write to a file of the world what the program has written, from a byte on."""
    copy = layers.raw.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.lseek(copy, start, os.SEEK_SET)
        os.lseek(there, start, os.SEEK_SET)
        while part := os.read(copy, _PIECE):
            os.write(there, part)
    finally:
        os.close(copy)


def _make_way(layers: Layers, folder: str) -> None:
    """Make a folder, and those on the way to it, where the world does not have them."""
    if layers.raw.look(folder) is None:
        _make_way(layers, os.path.dirname(folder))
        layers.raw.mkdir(folder)


def _go_into_world(layers: Layers) -> None:
    """Be in the folder of the world that the program takes itself to be in."""
    here = layers.raw.getcwd()
    if here == layers.files or here.startswith(layers.files + "/"):
        folder = layers.shown(here)
        try:
            _make_way(layers, folder)
            layers.raw.chdir(folder)
        except OSError as problem:
            text = f"the program is in {folder}, and cannot go on there in the world: {problem.strerror}"
            raise CannotLeave(text) from None


def _swap(layers: Layers, one: _Open, until_us: int | None, is_own: Callable[[str, bool], bool]) -> str | None:
    position, below = os.lseek(one.number, 0, os.SEEK_CUR), layers.raw.fstat(one.there)
    adds, note = bool(one.flags & os.O_APPEND), None
    same = _same_beginning(layers, one, min(one.size, below.st_size))
    own = is_own(one.path, adds) and (until_us is None or not _is_touched(below, until_us)) and (same or not adds)
    if below.st_size > one.size and own and not (adds and until_us is None):
        os.ftruncate(one.there, one.size)
        note = _CUT_BACK
    elif below.st_size > one.size:
        position = below.st_size if position == one.size else position
        if until_us is None or below.st_mtime_ns > until_us * 1000 - _COARSE_NS:
            note = _DOUBLED
    if own and not same:  # of a file that it writes from its beginning: tasks may have gone on before the others
        _bring(layers, one.place, one.there, 0)
    elif same and below.st_size < one.size:
        _bring(layers, one.place, one.there, below.st_size)
    elif not same and below.st_size < one.size:
        position, note = min(position, below.st_size), _OTHER
    inheritable = fcntl.fcntl(one.number, fcntl.F_GETFD)
    os.dup2(one.there, one.number)
    fcntl.fcntl(one.number, fcntl.F_SETFD, inheritable)
    os.lseek(one.number, position, os.SEEK_SET)
    return None if note is None else f"{one.path} {note}"


def _is_touched(facts: os.stat_result, until_us: int) -> bool:
    return facts.st_mtime_ns > (until_us + _limits.WRITTEN_AFTER_END_US) * 1000


def _same_beginning(layers: Layers, one: _Open, size: int) -> bool:
    """Say whether so much of a file is in the world as the program has written it."""
    here, there = (layers.raw.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in (one.place, one.path))
    try:
        pieces = ((min(_PIECE, size - start), start) for start in range(0, size, _PIECE))
        return all(os.pread(here, *piece) == os.pread(there, *piece) for piece in pieces)
    finally:
        os.close(here)
        os.close(there)


def _is_database(layers: Layers, path: str) -> bool:
    try:
        with open(layers.raw.open(path, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False
