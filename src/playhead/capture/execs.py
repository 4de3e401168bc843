"""Name programs that are no calls: those that the agent becomes by `exec`, and what they print that goes past us.

It goes through a pipe or a terminal of the agent's own making (`os.pipe`, `pty.fork`, pexpect), which is read with
`os.read`: the record has that the program was started, and not what it said.
"""

from __future__ import annotations

import os
import stat
import threading
from typing import Any

from playhead.capture import obstacles
from playhead.store import forking
from playhead.store.disk import identity

_OUTPUTS = {1: "stdout", 2: "stderr"}


class _Forking(threading.local):
    """What a thread that forks finds on both sides: who it was, and where its output went."""

    process = 0
    outputs: dict[int, tuple[int, int] | None] = {}  # replaced, never changed


_forking = _Forking()


def becoming(args: tuple[Any, ...]) -> None:
    """Name a program that this process becomes, which no replay can answer; listens to the audit event of it."""
    forked = _forking.process not in (0, os.getpid())  # else what it prints goes where it went before
    names = [name for number, name in _OUTPUTS.items() if forked and _goes_elsewhere(number)]
    how = f"{' and '.join(names)} of {{}}, by its descriptor" if names else "{}, by os.exec"
    tell(args[0], how, search=False)


def tell(program: Any, how: str, *, search: bool) -> None:
    """Name a program that is started in a way that is not recorded as a call."""
    if (found := obstacles.program(name_of(program), None, None, search=search)) is not None:
        from playhead.capture.clients import unseen  # here: most programs need none of it

        unseen.tell("process", lambda: how.format(os.path.basename(found)))


def name_of(program: Any) -> str:
    """Return the name of a program, also where it is told by the number by which its file is open."""
    if not isinstance(program, int):
        return os.fsdecode(program)
    name = os.path.realpath(f"/proc/self/fd/{program}")
    return name if os.path.exists(name) else f"/proc/self/fd/{program}"  # it has none any more


def _goes_elsewhere(number: int) -> bool:
    """Say whether an output goes into a pipe, a socket or a terminal, and not to where that of the parent goes."""
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    talks = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(number)
    return talks and identity(number) != _forking.outputs[number]


def _before_fork() -> None:
    _forking.process = os.getpid()
    _forking.outputs = {number: identity(number) for number in _OUTPUTS}


forking.register(before=_before_fork)
