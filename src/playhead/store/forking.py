"""Do what has to be done around a fork, all of it, whatever a signal handler of the program raises meanwhile.

Python throws away what is raised there. So a function is called again that a handler interrupted, and what it raised
is handed to the program after the fork, where it would be raised without us. Only C can do that (`_forking.c`): where
it was not compiled, Python says that it ignored the exception. It says so in any case where a handler interrupted what
others have registered, such as `logging` up to Python 3.12.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Step = Callable[[], None]

_before: list[Step] = []
_in_parent: list[Step] = []
_in_child: list[Step] = []
_OF_PYTHON = sys.stdlib_module_names - {"__main__"}
_TRIES = 64  # for as many signals it is begun again
_handing_over = False


def register(
    *, before: Step | None = None, after_in_parent: Step | None = None, after_in_child: Step | None = None
) -> None:
    """Have functions called around every fork, in the order of `os.register_at_fork`; each may be called again."""
    for steps, step in ((_before, before), (_in_parent, after_in_parent), (_in_child, after_in_child)):
        if step is not None:
            steps.append(step)


def hand_over() -> None:
    """Raise in the program what its handlers raised around a fork, after what has been registered so far."""
    global _handing_over
    if _compiled is not None and not _handing_over:
        _handing_over = True
        os.register_at_fork(after_in_parent=_compiled.hand_over, after_in_child=_compiled.hand_over)


def from_handler(problem: BaseException) -> bool:
    """Say whether a signal handler of the program raised this while we were at work: a timeout, mostly."""
    trace = problem.__traceback__
    while trace is not None:
        if _handles_a_signal(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _handles_a_signal(frame: FrameType) -> bool:
    """Say whether this is the code of a handler: it was given the very frame that it interrupted."""
    top = str(frame.f_globals.get("__name__")).partition(".")[0]
    if frame.f_back is None or top == "playhead" or top in _OF_PYTHON:
        return False
    given = list(frame.f_locals.values())
    given += [one for value in given if type(value) is tuple for one in value]
    return any(value is frame.f_back for value in given)


def _call_all(steps: list[Step]) -> None:
    raised: list[BaseException] = []
    for step in steps:
        for _ in range(_TRIES):
            try:
                step()
                break
            except BaseException as problem:
                if isinstance(problem, Exception) and not from_handler(problem):
                    raise
                raised.append(problem)
    if raised:
        raise raised[0]


def _compile() -> Any:
    if os.environ.get("PLAYHEAD_PURE") != "1":
        try:
            from playhead.store import _forking  # type: ignore[attr-defined]
        except ImportError:
            pass  # no compiler where this was installed
        else:
            _forking.prepare(_before, _in_parent, _in_child, from_handler)
            return _forking
    return None


_compiled: Any = None
if hasattr(os, "register_at_fork"):
    _compiled = _compile()
    if _compiled is not None:
        os.register_at_fork(
            before=_compiled.before, after_in_parent=_compiled.in_parent, after_in_child=_compiled.in_child
        )
    else:
        os.register_at_fork(
            before=lambda: _call_all(_before[::-1]),
            after_in_parent=lambda: _call_all(_in_parent),
            after_in_child=lambda: _call_all(_in_child),
        )
