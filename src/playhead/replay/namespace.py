"""Give a program a network of its own, with nothing in it, where the system allows that."""

from __future__ import annotations

import ctypes
import os
from typing import Literal

Isolation = Literal["namespace", "hooks"]

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000  # of Linux

_libc: ctypes.CDLL | None = None


def isolation() -> Isolation:
    """Say what keeps a replay from the network here; found out by trying, in a process that does nothing else."""
    if not hasattr(os, "fork") or _unshare() is None:
        return "hooks"
    process = os.fork()
    if process == 0:
        code = 1
        try:
            enter()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    return "namespace" if status == 0 else "hooks"


def enter() -> None:
    """Leave the network; for a child between fork and exec (`preexec_fn`). OSError where that is not allowed.

    Whoever may do so just leaves it. Everybody else needs a namespace of users for it, where every id but the own one
    looks like that of nobody; the own user and group stay what they are.
    """
    unshare = _unshare()
    if unshare is None:
        raise OSError("this system has no namespaces")
    try:
        unshare(_NEW_NET)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        unshare(_NEW_USER | _NEW_NET)
        for name, content in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            number = os.open(f"/proc/self/{name}", os.O_WRONLY)
            try:
                os.write(number, content.encode())
            finally:
                os.close(number)


def _unshare() -> Unshare | None:
    """Return what leaves namespaces; loaded before a fork, since little may be done after it."""
    global _libc
    if os.uname().sysname != "Linux":
        return None
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
    return Unshare(_libc) if hasattr(_libc, "unshare") else None


class Unshare:
    """The call of the system; `os` has it from Python 3.12 on."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._call = library.unshare

    def __call__(self, flags: int) -> None:
        """Leave these namespaces."""
        if self._call(flags) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
