"""Keep the recorder's failures away from the agent: the one place where an exception is swallowed.

What cannot be recorded is counted, and the count goes into the timeline before the next event that can be written.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from playhead.capture import callers
from playhead.errors import PlayheadError, RecordingStopped
from playhead.store import forking

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

_ARGS: Any = BaseException.args  # of a class that may have something else by that name
_COUNTED = "_playhead_counted"  # an attribute of an exception
logger = logging.getLogger("playhead")
logger.addHandler(logging.NullHandler())


class RecordingWarning(UserWarning):
    """A run is not recorded, or not wholly; the agent goes on."""


def absorb(problem: Exception, recording: Recording, what: str, count: int = 1, *, inside: bool = False) -> None:
    """Count events as lost; raise as well under `strict`, and under pytest when the recorder itself is wrong.

    `inside` says that a library is our caller, which would take an exception for one of its own.
    """
    if is_the_programs(problem):
        raise problem
    if problem.__dict__.pop(_COUNTED, None) != recording.id:  # else it comes by for the second time, on its way up
        recording.lose(_reason(problem) if count else "sync_failed", count)
    if recording.strict or _is_our_mistake(problem):
        problem.__dict__[_COUNTED] = recording.id
        if inside and recording.strict:
            recording.stopped = recording.stopped or problem
            raise RecordingStopped(f"{what} was not recorded", problem) from problem
        raise problem
    logger.warning("%s: %s was not recorded: %s", recording.id, what, problem)


def absorb_in_all(problem: Exception, what: str, recordings: Iterable[Recording]) -> None:
    """Do the same in every run, where it is not known whose it would have been; raise where none is open and we err."""
    among = list(recordings)
    for recording in among:
        absorb(problem, recording, what, inside=True)
    if not among:
        logger.warning("%s was not recorded: %s", what, problem)
        if _is_our_mistake(problem):
            raise problem


def aside(work: Callable[[], None], recordings: Iterable[Recording]) -> None:
    """Do something in a thread of ours, where nobody is there to be told; what fails is counted."""
    try:
        work()
    except BaseException as problem:
        logger.warning("in the background: %s", problem)
        for recording in recordings:
            recording.lose(type(problem).__name__)


def is_the_programs(problem: Exception) -> bool:
    """Say whether this was raised in the midst of our work and not by it: a timeout, mostly.

    Either a signal handler raised it, or another thread made this one raise it: a class of the program's own, without
    a word to it, in a line of ours.
    """
    if forking.from_handler(problem):
        return True
    if _ARGS.__get__(problem) or callers.sort_of(type(problem).__module__) != callers.AGENT:
        return False
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or callers.sort_of(str(trace.tb_frame.f_globals.get("__name__"))) == callers.AGENT:
        return False
    import opcode  # here: next to nothing comes this far

    return trace.tb_frame.f_code.co_code[trace.tb_lasti] != opcode.opmap["RAISE_VARARGS"]  # else it was raised there


def _reason(problem: Exception) -> str:
    if isinstance(problem, PlayheadError):
        return problem.code
    if isinstance(problem, OSError) and problem.errno is not None:
        return errno.errorcode.get(problem.errno, "OSError")  # ENOSPC says more than OSError
    return type(problem).__name__


def stopped_by(error: BaseException | None) -> RecordingStopped | None:
    """Return the RecordingStopped that this is, or that a group holds."""
    if isinstance(error, BaseExceptionGroup):
        return next((found for one in error.exceptions if (found := stopped_by(one)) is not None), None)
    return error if isinstance(error, RecordingStopped) else None


def not_captured(problem: Exception, source: str, recordings: Iterable[Recording]) -> None:
    """Say in every run that what goes through a library is not recorded, since it is not as we know it.

    Never raised, not even under pytest: a new release of a library must not break the tests of those who use it.
    """
    if is_the_programs(problem):
        raise problem
    logger.warning("%s cannot be captured: %s", source, problem)
    for recording in recordings:
        recording.not_captured(source, f"{type(problem).__name__}: {problem}")


def too_late(recording: Recording, what: str) -> None:
    """Say once that a run has ended, to a thread or task that outlived it."""
    logger.warning("%s has ended: %s was not recorded", recording.id, what)
    if not recording.told_late:
        recording.told_late = True
        text = f"playhead: {recording.id} has ended; what happens in it now is not recorded (first: {what})."
        _warn(text)


def tell(text: str) -> None:
    """Say something that whoever starts the agent has to know."""
    logger.warning("%s", text)
    _warn(f"playhead: {text}")


def give_up(problem: Exception, what: str, strict: bool) -> None:
    """Say once, visibly, that a run is not recorded at all."""
    if strict or _is_our_mistake(problem):
        raise problem
    told = f"{problem.message}. {problem.hint}".rstrip() if isinstance(problem, PlayheadError) else f"{problem}."
    logger.warning("%s: %s", what, told)
    _warn(f"playhead: {what}: {told}")


def _warn(text: str) -> None:
    try:
        warnings.warn(text, RecordingWarning, stacklevel=_callers_level() + 1)
    except RecordingWarning:  # warnings are errors here; those of the agent may be, ours are not its matter
        print(text, file=sys.stderr)


def _callers_level() -> int:
    """Return how far up the first frame is that is not ours, so that a warning points at the agent's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("playhead."):
        level, frame = level + 1, frame.f_back
    return level


def _is_our_mistake(problem: Exception) -> bool:
    return not isinstance(problem, (OSError, PlayheadError)) and "PYTEST_CURRENT_TEST" in os.environ
