"""Find out whether a process has come to rest: every thread of it waits for something that it cannot give itself."""

from __future__ import annotations

import os
import sys
import time
from _thread import get_native_id
from types import FrameType

_TASKS = "/proc/self/task"
_ASLEEP = b"State:\tS"
_PAUSE_S = 0.0001  # in which whoever can go on does: the interpreter is free meanwhile
_PAUSE_WITHOUT_KERNEL_S = 0.003
# Modules in which threads wait for others of the same process; and for commands, in a worker of pytest-xdist.
_IDLE = (
    "playhead.replay",
    "playhead.store",
    "playhead.capture.queues",
    "playhead.capture.waits",
    "threading",
    "queue",
    "selectors",
    "concurrent.futures",
    "execnet",
)
_RUN = "run"  # what calls the function of a thread in some of them, which may be one of C
_OTHER_PROCESSES = "multiprocessing."  # for which a selector waits, too


def somebody_acts() -> bool:
    """Say whether a thread waits for what nobody in this process can give it: a sleep's end, a connection's bytes."""
    return any(map(_acts, sys._current_frames().values()))


def _acts(frame: FrameType) -> bool:
    if frame.f_code.co_name == _RUN or not _module(frame).startswith(_IDLE):
        return True
    return frame.f_back is not None and _module(frame.f_back).startswith(_OTHER_PROCESSES)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


class Rest:
    """Look at the threads of this process, from one of its own that is to be left out."""

    def __init__(self) -> None:
        self._on_linux = os.path.isdir(_TASKS)
        self._files: dict[str, int] = {}  # by thread: where the kernel tells of it

    def is_here(self, but: set[int]) -> bool:
        """Say whether nothing moves; the threads `but`, by their number in the kernel, are not looked at."""
        if not self._on_linux:
            return self._by_frames()
        before = self._look(but)
        if before is None:
            return False
        time.sleep(_PAUSE_S)
        return self._look(but) == before

    def _look(self, but: set[int]) -> dict[str, bytes] | None:
        """Return how often each thread was put to sleep and woken; None where one is awake."""
        found: dict[str, bytes] = {}
        mine = get_native_id()
        names = os.listdir(_TASKS)
        for name in names:
            if int(name) == mine or int(name) in but:
                continue
            try:
                number = self._files.get(name)
                if number is None:
                    number = self._files[name] = os.open(f"{_TASKS}/{name}/status", os.O_RDONLY | os.O_CLOEXEC)
                status = os.pread(number, 4096, 0)
            except OSError:  # it has ended
                self._forget(name)
                return None
            if _ASLEEP not in status:
                return None
            found[name] = status[status.rfind(b"voluntary_ctxt_switches:", 0, status.rfind(b"nonvoluntary")) :]
        for name in self._files.keys() - set(names):
            self._forget(name)
        return found

    def _forget(self, name: str) -> None:
        number = self._files.pop(name, None)
        if number is not None:
            os.close(number)

    def _by_frames(self) -> bool:
        before = {thread: (id(frame), frame.f_lasti) for thread, frame in sys._current_frames().items()}
        time.sleep(_PAUSE_WITHOUT_KERNEL_S)
        after = {thread: (id(frame), frame.f_lasti) for thread, frame in sys._current_frames().items()}
        mine = {thread for thread in before if sys._current_frames().get(thread) is sys._getframe()}
        return {t: at for t, at in before.items() if t not in mine} == {
            t: at for t, at in after.items() if t not in mine
        }
