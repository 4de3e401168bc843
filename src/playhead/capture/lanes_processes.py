"""Give every process of multiprocessing a lane of its parent's run when it is started, and tell when it has ended.

A forked one has all it needs. One that begins as a new interpreter, or in the fork server, is told its run and lane
with what multiprocessing tells it anyway: a Python without us passes over it.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
from types import FrameType, ModuleType
from typing import Any

from playhead.capture import answering, children, forks, guard, handing, lanes, reads, spawning
from playhead.capture.patches import Patches
from playhead.capture.scope import ambient, current, place

KEY = "playhead"  # among what a child of multiprocessing is told
_START = "_playhead_start"  # where a started process keeps what was begun
_LEAVES_AT_EXIT = sys.version_info >= (3, 13)  # a forked child runs what `atexit` was given


def patch(module: ModuleType, patches: Patches) -> None:
    """Put ourselves where processes are started, where they begin and end, and where their end is noticed."""
    if module.__name__ == "multiprocessing.process":
        patches.replace(module.BaseProcess, "start", _start)
        patches.replace(module.BaseProcess, "_bootstrap", _bootstrap)
    elif module.__name__ == "multiprocessing.spawn":
        patches.replace(module, "get_preparation_data", _get_preparation_data)
    else:
        patches.replace(module.Popen, "poll", _poll)


def _start(original: Any) -> Any:
    made = lanes.era()

    @functools.wraps(original)
    def start(self: Any) -> None:
        process = ambient()
        if made == lanes.era() and process is not None and current.get() is None:
            process.scope()  # both sides write into one run, which has to be there before
        begun = lanes.begin(spawning.started) if made == lanes.era() else None
        if begun is None:
            original(self)
            return
        before, lanes.local.starting = lanes.local.starting, begun.carry()
        try:
            original(self)
        finally:
            lanes.local.starting = before
        started = self._popen
        if started is not None:
            started.__dict__[_START] = begun
            if answering.player is not None and begun.child is not None:
                answering.player.expect(begun.child.path, functools.partial(_is_over, started.pid))
            if started.method != "fork" and not children.passing_on():
                _name_gap(started.method)

    return start


def _is_over(pid: int) -> bool:
    """Say whether a process has ended, without taking its end from whoever waits for it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except OSError:
        return True  # somebody has waited for it


def _name_gap(method: str) -> None:
    """Say that a child is not recorded which begins as a new interpreter, where no launcher attaches those."""
    scope = place()
    if scope is not None:
        where = f"{method}, {spawning.agents_line(sys._getframe(1))}"
        scope.recording.not_captured("multiprocessing", where)


def _get_preparation_data(original: Any) -> Any:
    @functools.wraps(original)
    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        begun = lanes.local.starting
        if begun is not None and children.passing_on() and (told := handing.tell_place(begun)) is not None:
            data[KEY] = told
        return data

    return get_preparation_data


def _poll(original: Any) -> Any:
    @functools.wraps(original)
    def poll(self: Any, *args: Any, **options: Any) -> Any:
        ran = self.returncode is None
        code = original(self, *args, **options)
        if ran and code is not None and (begun := self.__dict__.pop(_START, None)) is not None:
            begun.tell("ok" if code == 0 else "cancelled" if code == -signal.SIGTERM else "error")
            if code < 0:
                _name_unwritten(begun, -code)
        return code

    return poll


def _name_unwritten(begun: lanes.Start, number: int) -> None:
    """Say that a process may have read what it could not write any more; a worker writes it with each piece of work."""
    recording = None if begun.parent is None or begun.parent.tap is None else begun.parent.tap.owner
    if recording is not None and reads.watched(recording) and begun.child is not None and ".0." not in begun.child.path:
        ended = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        recording.not_captured("reads", f"of the last second of a process, before {ended}")


def _bootstrap(original: Any) -> Any:
    @functools.wraps(original)
    def bootstrap(self: Any, *args: Any, **options: Any) -> Any:
        ends_at_once = not _LEAVES_AT_EXIT and _is_forked(sys._getframe(1))
        if not ends_at_once:
            atexit.register(leave)
        try:
            return original(self, *args, **options)
        finally:
            if ends_at_once:
                leave()

    return bootstrap


def _is_forked(frame: FrameType | None) -> bool:
    """Say whether this process was forked by multiprocessing, and so ends without any of the usual."""
    for _ in range(2):
        if frame is None:
            return False
        if frame.f_globals.get("__name__") in ("multiprocessing.popen_fork", "multiprocessing.forkserver"):
            return True
        frame = frame.f_back
    return False


def leave() -> None:
    """Let go of every run that this process writes, and that its parent will finish."""
    process = ambient()
    if process is not None and process.leaving is not None:
        process.leaving()
    for recording in forks.recordings():
        try:
            recording.leave()
        except Exception as problem:
            guard.give_up(problem, f"{recording.id} was recorded, but", strict=False)
