"""Read a file that a program opens, right before it does, without changing what the program then finds."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

from playhead import _limits
from playhead.store.disk import CLOEXEC, NONBLOCK

_FLAGS = os.O_RDONLY | CLOEXEC | NONBLOCK | getattr(os, "O_NOCTTY", 0)  # some files of the system wait for news
_GIVEN_ONCE = ("kmsg", "trace_pipe", "trace_pipe_raw")  # files of the system: what one reads is gone for all others
_locked: set[tuple[int, int]] = set()  # files that the program has locked, or may have, by device and number
_awaited: set[str] = set()  # paths of databases that were not there when they were opened
_open: dict[tuple[int, int], int] = {}  # those of them that are open here, unless the program has closed them since


class Unread(Exception):
    """Say why we cannot read a file that the program perhaps can."""


def read(path: str, facts: os.stat_result) -> bytes:
    """Read a file without taking a lock from the program: it loses all that it has on a file when we close that.

    So one that it has ever locked, or has as a database, is opened once and stays open. OSError where it cannot be
    opened, Unread where it can be and yet not be read.
    """
    if path.startswith(("/proc/", "/sys/")) and os.path.basename(path) in _GIVEN_ONCE:
        raise Unread("what is read from it is gone")
    identity = (facts.st_dev, facts.st_ino)
    if path in _awaited:
        _awaited.discard(path)
        _locked.add(identity)
    if identity in _locked:
        return _whole(_kept(path, identity), facts.st_size)
    number = os.open(path, _FLAGS)
    try:
        return _whole(number, facts.st_size)
    finally:
        os.close(number)


def _whole(number: int, size: int) -> bytes:
    """Return the content, up to one byte more than is kept; in pieces, since files of the system refuse large ones."""
    parts, at = [], 0
    try:
        while at <= _limits.FILE_BYTES_MAX and (part := os.pread(number, _limits.READ_CHUNK_BYTES, at)):
            parts.append(part)
            at += len(part)
            if at == size:
                break  # as long as it was; files of the system say that they are empty
    except OSError as problem:
        raise Unread(errno.errorcode.get(problem.errno or 0, "OSError")) from problem
    return b"".join(parts)


def _kept(path: str, identity: tuple[int, int]) -> int:
    number = _open.get(identity)
    if number is not None:
        try:
            facts = os.fstat(number)
            os.pread(number, 1, 0)
            if (facts.st_dev, facts.st_ino) == identity:
                return number
        except OSError:
            pass  # closed, or open for something else
        del _open[identity]  # the program closes what it does not know, as daemons do, and may have the number by now
    if len(_open) >= _limits.FILES_KEPT_OPEN_MAX:
        raise Unread("more than FILES_KEPT_OPEN_MAX that the program has locked")
    number = _open[identity] = os.open(path, _FLAGS)  # with a low number: to close one to get another would unlock it
    return number


def locks(number: int) -> None:
    """Note that the program locks a file, or may."""
    facts = os.fstat(number)
    _locked.add((facts.st_dev, facts.st_ino))


def is_database(path: str) -> None:
    """Note that the program opens a file as a database, which it will lock."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        _awaited.add(os.path.abspath(path))  # it is not there yet
    else:
        _locked.add((facts.st_dev, facts.st_ino))


def tell(tap: Any, path: str, why: str) -> None:
    """Name a file as a gap, once, with the line of the program that asked for it."""
    known = ("not captured", path, why)
    if tap.owner is not None and known not in tap.seen:
        from playhead.capture.clients.unseen import used_at  # loaded by now: a run is open

        tap.seen[known] = True
        used = used_at(sys._getframe().f_back)
        tap.owner.not_captured("file", f"{path}: {why} at {used}" if used else f"{path}: {why}")
