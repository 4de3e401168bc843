"""Stand in for the functions of the system that start, signal and wait for processes, while a program is replayed.

A process that is answered from the tape has a number that means nothing here, or somebody else's process: it is known
in this table, and no signal goes to it. What no tape can answer is not started. It is a guard against mistakes, and no
sandbox: what a library of C does by itself passes by.
"""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

from playhead.capture import answering, audit, callers, hooks
from playhead.capture.imports import AfterImport
from playhead.capture.processes.played import Played

_ENDS = {"stdin": 6, "stdout": 9, "stderr": 11}  # where `fork_exec` is given the ends of pipes for the process
_BETWEEN = ("playhead.capture.children", "playhead.capture.effects", "playhead.capture.processes")
_GUARDED = ("os.exec", "os.posix_spawn", "os.system")  # audit events of what starts a program at once

_table: dict[int, Played] = {}  # by number
_ourselves: set[tuple[int, int]] = set()  # our number, and one by which the recorded process knew itself
_originals: dict[str, Any] = {}


class _Now(threading.local):
    """What this thread is about to start."""

    played: Played | None = None  # what answers in its place
    real = False  # it is to be started all the same: by the recorder, by multiprocessing, by a mode that has it so


now = _Now()


@contextmanager
def starting(played: Played | None) -> Iterator[None]:
    """Let a recorded process be what is started inside; with None, start what is started."""
    before = now.played, now.real
    now.played, now.real = played, played is None
    try:
        yield
    finally:
        now.played, now.real = before


def install() -> None:
    """Put ourselves in place of the functions of the system; `hooks.put_back` and `uninstall` end it."""
    import _posixsubprocess
    import posix  # what `os` has may be patched already

    for name, made in _INSTEAD.items():
        owner: Any = {"fork_exec": _posixsubprocess, "pidfd_send_signal": signal}.get(name, posix)
        if hasattr(owner, name):
            _originals[name] = hooks.replace(getattr(owner, name), made)
    for event in _GUARDED:
        audit.listen(event, _guard)
    audit.listen("subprocess.Popen", _guard_popen)
    _arriving.install()


def uninstall() -> None:
    """Listen no more, and forget the processes that were answered."""
    for event in _GUARDED:
        audit.unlisten(event, _guard)
    audit.unlisten("subprocess.Popen", _guard_popen)
    _arriving.uninstall()
    _table.clear()
    _ourselves.clear()


def known_as(pid: int) -> None:
    """Take in by which number the recorded program knew itself: what it sends there is for this process."""
    _ourselves.add((os.getpid(), pid))  # a forked child has others


def unrecorded(frame: FrameType | None, argv: Any) -> None:
    """Refuse a process that is not recorded, as where there is no such program; the recorder's own is let through."""
    player = answering.player
    if player is None or _is_ours(frame) or player.lets_out():
        return
    first = argv if isinstance(argv, (str, bytes, os.PathLike)) else next(iter(argv), "")
    program = os.fsdecode(first) if isinstance(first, (str, bytes, os.PathLike)) else repr(first)
    player.blocked("process", f"{program}, started by {_whose(frame)}", program)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def _is_ours(frame: FrameType | None) -> bool:
    """Say whether it is the recorder that starts something."""
    while frame is not None:
        name = frame.f_globals.get("__name__")
        sort = callers.sort_of(name) if isinstance(name, str) else callers.AGENT
        if sort == callers.AGENT:
            return False
        if sort == callers.OURS and not str(name).startswith((*_BETWEEN, "playhead.capture.lanes")):
            return True
        frame = frame.f_back
    return False


def _whose(frame: FrameType | None) -> str:
    """Return the module that stands first on the way, past `subprocess` itself."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name not in ("subprocess", "os") and not name.startswith("playhead."):
            return name
        frame = frame.f_back
    return "?"


# Starting.


def _fork_exec(*arguments: Any) -> int:
    if (played := now.played) is not None:
        return _begin(played, {name: arguments[at] for name, at in _ENDS.items() if arguments[at] != -1})
    if now.real or _for_multiprocessing(sys._getframe(1)):
        number: int = _originals["fork_exec"](*arguments)
        return number
    return _refuse(arguments[0])


def _posix_spawn(name: str, path: Any, argv: Any, env: Any, /, **options: Any) -> int:
    if (played := now.played) is not None:
        actions = [action for action in options.get("file_actions") or () if action[0] == os.POSIX_SPAWN_DUP2]
        ends = {("stdin", "stdout", "stderr")[action[2]]: action[1] for action in actions if action[2] < 3}
        return _begin(played, ends)
    if now.real:
        number: int = _originals[name](path, argv, env, **options)
        return number
    return _refuse(argv)


def _begin(played: Played, ends: dict[str, int]) -> int:
    error = played.failure()
    if error is not None:
        raise error
    played.holds(ends)
    assert played.pid is not None, "what was started has a number"
    _table[played.pid] = played
    return played.pid


def _for_multiprocessing(frame: FrameType | None) -> bool:
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("multiprocessing.")


def _starts(name: str, *arguments: Any, **options: Any) -> Any:
    """Stand in for `exec` and `system`."""
    if now.real or answering.player is None:
        return _originals[name](*arguments, **options)
    return _refuse(arguments[1] if name.startswith("exec") and len(arguments) > 1 else arguments[:1])


def _refuse(argv: Any) -> int:
    words = [os.fsdecode(word) for word in argv if isinstance(word, (str, bytes, os.PathLike))]
    _player().refused("process", f"{' '.join(words)}, by {_whose(sys._getframe(1))}")


def _player() -> answering.Player:
    assert answering.player is not None, "this stands in only while something is replayed"
    return answering.player


def _guard(args: tuple[Any, ...]) -> None:
    """Refuse what got past: a function that was reached by another way. Listens to audit events."""
    if not now.real and answering.player is not None:
        answering.player.refused("process", " ".join(map(str, args[:1])))


def _guard_popen(args: tuple[Any, ...]) -> None:
    if now.played is None:
        _guard(args)


# Signals.


def _kill(name: str, pid: int, number: int, /) -> None:
    """Send nothing to a process that was answered, nor to one that is not ours."""
    if name == "kill" and (os.getpid(), pid) in _ourselves and pid not in _table:
        pid = os.getpid()
    if name == "kill" and _is_alive_here(pid):
        _originals[name](pid, number)
        return
    sys.audit(f"os.{name}", pid, number)  # what listens is told
    if (played := _table.get(pid)) is not None:
        if played.reaped:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    elif number:  # else it is a look whether there is one
        _player().blocked("signal", f"{int(number)} to {'group ' if name == 'killpg' else ''}{pid}")


def _changes(name: str, at: int, *arguments: Any) -> Any:
    """Change how the system treats a process, which is one of its arguments: only one that is ours."""
    who = arguments[at] if len(arguments) > at else None
    if not isinstance(who, int) or who == 0 or _is_alive_here(who):
        return _originals[name](*arguments)
    if (os.getpid(), who) in _ourselves and who not in _table:
        return _originals[name](*arguments[:at], os.getpid(), *arguments[at + 1 :])
    if name == "prlimit" and len(arguments) < 3:
        return _originals[name](*arguments)  # a look
    _player().blocked(name, f"process {who}")
    return _originals[name](0, arguments[1]) if name == "prlimit" else None


def _setpriority(which: int, who: int, priority: int) -> None:
    if which == os.PRIO_PROCESS:
        _changes("setpriority", 1, which, who, priority)
    else:
        _player().blocked("setpriority", "a group of processes, or all of a user")


def _resource_arrived(module: ModuleType) -> None:
    if type(getattr(module, "prlimit", None)) is type(len):  # else it is a module of the program's own, or no Linux
        _originals["prlimit"] = hooks.replace(module.prlimit, functools.partial(_changes, "prlimit", 0))


def _is_alive_here(pid: int) -> bool:
    """Say whether this is our process, or one that we have started for real."""
    if pid in _table or pid <= 0:
        return False
    if pid == os.getpid():  # that of the system: nobody answers us
        return True
    processes = getattr(sys.modules.get("multiprocessing.process"), "_children", ())
    if any(child._popen is not None and child._popen.pid == pid for child in list(processes)):
        return True  # which a fork server may have started
    try:
        _originals["waitid"](os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _getpgid(name: str, pid: int, /) -> int:
    found: int = pid if _alive(pid) is not None else _originals[name](pid)
    return found


def _pidfd_open(pid: int, flags: int = 0) -> int:
    if pid in _table:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))  # whoever wants one has another way
    number: int = _originals["pidfd_open"](pid, flags)
    return number


def _pidfd_send_signal(*arguments: Any) -> None:
    _player().blocked("signal", f"{arguments[1]} to a process by its descriptor")


# Waiting.


def _waitpid(pid: int, options: int, /) -> tuple[int, int]:
    found = _ended(pid, options)
    return _originals["waitpid"](pid, options) if found is None else found


def _wait() -> tuple[int, int]:
    found = _ended(-1, 0)
    return _originals["wait"]() if found is None else found


def _wait3(options: int) -> tuple[int, int, Any]:
    found = _ended(-1, options)
    return _originals["wait3"](options) if found is None else (*found, _no_usage())


def _wait4(pid: int, options: int) -> tuple[int, int, Any]:
    found = _ended(pid, options)
    return _originals["wait4"](pid, options) if found is None else (*found, _no_usage())


def _waitid(sort: int, number: int, options: int, /) -> Any:
    played = _alive(number if sort == os.P_PID else -1) if sort in (os.P_PID, os.P_ALL) else None
    if played is None:
        return _originals["waitid"](sort, number, options)
    if played.exit_at is None and options & os.WNOHANG:
        return None
    code = played.exited()
    played.reaped = not options & os.WNOWAIT
    how, status = (os.CLD_EXITED, code) if code >= 0 else (os.CLD_KILLED, -code)
    return os.waitid_result((played.pid or 0, os.getuid(), int(signal.SIGCHLD), status, how))


def _ended(pid: int, options: int) -> tuple[int, int] | None:
    """Wait for a process that was answered, by number or for any (-1); None where there is none such."""
    played = _alive(pid)
    if played is None or played.pid is None:
        return None
    if played.exit_at is None and options & os.WNOHANG:
        return 0, 0  # nobody asked how it ended, so it had not
    code = played.exited()
    played.reaped = True
    return played.pid, code << 8 if code >= 0 else -code


def _alive(pid: int) -> Played | None:
    """Return a process that was answered, and whose end nobody has asked for yet."""
    among = list(_table.values()) if pid == -1 else [_table[pid]] if pid in _table else []
    return next((played for played in among if not played.reaped), None)


def _no_usage() -> Any:
    import resource

    return resource.struct_rusage((0.0, 0.0, *[0] * 14))


_INSTEAD: dict[str, Callable[..., Any]] = {
    "fork_exec": _fork_exec,
    "pidfd_send_signal": _pidfd_send_signal,
    "posix_spawn": functools.partial(_posix_spawn, "posix_spawn"),
    "posix_spawnp": functools.partial(_posix_spawn, "posix_spawnp"),
    "system": functools.partial(_starts, "system"),
    "execv": functools.partial(_starts, "execv"),
    "execve": functools.partial(_starts, "execve"),
    "kill": functools.partial(_kill, "kill"),
    "killpg": functools.partial(_kill, "killpg"),
    "getpgid": functools.partial(_getpgid, "getpgid"),
    "getsid": functools.partial(_getpgid, "getsid"),
    "setpriority": _setpriority,
    "sched_setaffinity": functools.partial(_changes, "sched_setaffinity", 0),
    "sched_setscheduler": functools.partial(_changes, "sched_setscheduler", 0),
    "sched_setparam": functools.partial(_changes, "sched_setparam", 0),
    "pidfd_open": _pidfd_open,
    "waitpid": _waitpid,
    "wait": _wait,
    "wait3": _wait3,
    "wait4": _wait4,
    "waitid": _waitid,
}

_arriving = AfterImport({"resource": _resource_arrived})
