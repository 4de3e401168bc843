"""Hear what the interpreter says of its own doings: files opened, processes started, sockets connected.

An audit hook can never be taken away again. So there is one for the whole process, which is added when somebody wants
to listen for the first time, and which from then on looks up in a table whether anybody does.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from playhead.capture import callers, forks, guard
from playhead.errors import EffectDenied, Refused

Listener = Callable[[tuple[Any, ...]], object]

_PROBE = "playhead.probe"

_listeners: dict[str, tuple[Listener, ...]] = {}
_last: dict[str, tuple[Listener, ...]] = {}  # those that are called after all others
_quiet: list[Callable[[tuple[Any, ...]], bool]] = []  # what says of which events nobody is told
_inside = threading.local()
_lock = threading.Lock()
_added = False


def listen(event: str, function: Listener, *, last: bool = False) -> bool:
    """Call a function with the arguments of an event, right before what it tells of is done, in the thread that does.

    `sys._getframe(1).f_back` is then the frame of whoever does it; None where no code of Python does, as of what was
    given to `atexit`. What the function itself does is not listened to; what a finaliser or a signal handler does that
    interrupts it, is. One that raises Refused keeps it from being done; `last` lets all others hear of it before.
    Returns False where nothing will be heard, because another hook does not let ours in.
    """
    with _lock:
        if last:
            _last[event] = (*_last.get(event, ()), function)
            _listeners.setdefault(event, ())
        else:
            _listeners[event] = (*_listeners.get(event, ()), function)
        return _added or _add()


def unlisten(event: str, function: Listener) -> None:
    """End that."""
    with _lock:
        for table in (_last, _listeners):
            left = list(table.get(event, ()))
            if function in left:
                left.remove(function)
            if left or (table is _listeners and event in _last):
                table[event] = tuple(left)
            else:
                table.pop(event, None)


def hush(quiet: Callable[[tuple[Any, ...]], bool]) -> None:
    """Tell nobody of events with arguments of which a function says so."""
    _quiet.append(quiet)


def unhush(quiet: Callable[[tuple[Any, ...]], bool]) -> None:
    """End that."""
    _quiet.remove(quiet)


def _add() -> bool:
    """Add the hook, and find out whether it is there: one that forbids it makes Python leave it out in silence."""
    global _added
    heard: list[Any] = []
    try:
        sys.addaudithook(_hook)
        _listeners[_PROBE] = (heard.append,)
        sys.audit(_PROBE)
        if not heard:
            raise RuntimeError("another audit hook lets no more be added")
    except Exception as problem:
        guard.not_captured(problem, "audit events", forks.recordings())
    _listeners.pop(_PROBE, None)
    _added = bool(heard)
    return _added


def _hook(
    event: str,
    args: tuple[Any, ...],
    # Here, since while the interpreter ends a module loses its names before its functions are gone.
    listeners: dict[str, tuple[Listener, ...]] = _listeners,
    last: dict[str, tuple[Listener, ...]] = _last,
    quiet: list[Callable[[tuple[Any, ...]], bool]] = _quiet,
    inside: threading.local = _inside,
    ending: Callable[[], bool] = sys.is_finalizing,
) -> None:
    functions = listeners.get(event)
    if functions is None or ending():
        return
    interrupted = getattr(inside, "now", False)
    if interrupted and not _interrupts(sys._getframe(1)):
        return
    try:
        inside.now = True
        if any(hushed(args) for hushed in quiet):
            return
        for function in functions + last.get(event, ()):
            try:
                function(args)
            except (EffectDenied, Refused):
                raise  # a policy, or a replay: it is not to be done
            except Exception as problem:
                # A listener that knows whose run it was about has absorbed it, and raises what is meant for the
                # program. The others hear of it all the same: one of them may have to keep it from being done.
                guard.absorb_in_all(problem, f"what was told of {event}", forks.recordings())
    finally:
        inside.now = interrupted


def _interrupts(frame: FrameType | None) -> bool:
    """Say whether a frame is of code of the program's that came between: a finaliser, or the handler of a signal."""
    while frame is not None and frame.f_code is not _hook.__code__:
        above = frame.f_back
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str) or callers.sort_of(name) == callers.AGENT:
            return above is None or above.f_code is not _hook.__code__  # else it is a listener
        frame = above
    return False


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
