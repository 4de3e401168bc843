"""Watch functions that are written in C, whoever holds a reference to them: by C code of ours, or else in Python."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from types import FrameType
from typing import TYPE_CHECKING, Any

from playhead.capture import callers, packs, scope

if TYPE_CHECKING:
    from playhead.capture.scope import Lane


class What(IntEnum):
    """What a function gives back, and so how it is kept; as in `_hooks.c`."""

    SECONDS = 0  # of a clock, as a float
    NANOSECONDS = 1
    CLOCK_WHEN_MISSING = 2  # it takes a time, and reads the clock where it is given none
    MOMENT = 3  # a date, or a date and time
    NUMBER = 4
    RAW = 5  # bytes
    UNIT = 6  # a float between 0 and 1
    BITS = 7  # a whole number of random bits
    SEED = 8  # it seeds a generator, by chance where it is given nothing
    UUID = 9
    FIRST_RAW = 10  # a tuple whose first item is bytes
    CALL = 11  # anything: `notice` is called with (of, by, pack, span, self, args, kwargs, result, error)
    STDIN = 12  # the same, where it is the standard input that is read
    REPLACE = 13  # nothing is kept: `notice` is called instead, whoever calls


def _compiled() -> Any:
    if os.environ.get("PLAYHEAD_PURE") != "1":
        try:
            from playhead.capture import _hooks  # type: ignore[attr-defined]
        except ImportError:
            pass  # no compiler where this was installed
        else:
            return _hooks
    return None


compiled: Any = _compiled()
Tap: Any = packs.Tap if compiled is None else compiled.Tap
_backend: Any = None
watched = False  # what clocks, random numbers and files tell is kept, and so is when waiting was over
# The sets in which `os` says which of its functions can do what.
_SUPPORTING = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)
_moved: list[tuple[set[Any], Any]] = []


def prepare(problem: Callable[[Exception], None]) -> None:
    """Get ready; `problem` is told what went wrong when a read could not be kept."""
    global _backend
    if _backend is None:
        if compiled is not None:
            _backend = compiled
        else:
            from playhead.capture import hooks_python

            _backend = hooks_python
        _backend.prepare(
            callers.known, callers.sort_of, callers.reader, scope.current, scope.ambient_lane, scope.muted, problem,
            time.time_ns, time.localtime, os.urandom,
        )  # fmt: skip


def watch(
    function: Any, of: str, what: What, only: list[Any] | None = None, notice: Callable[..., Any] | None = None
) -> None:
    """Keep what a function gives back from now on; one that is watched already is left as it is.

    `only` has the objects whose method it is watched as, and may become longer later.
    """
    # A function of C is hashed by its code, so what is watched is no longer found in a set that it was put in before.
    groups = [group for group in _SUPPORTING if function in group]
    for group in groups:
        group.discard(function)
    try:
        _backend.watch(function, of, int(what), only, notice)
    finally:
        for group in groups:
            group.add(getattr(os, function.__name__))
            _moved.append((group, function))


def know_dates() -> None:
    """Get to know the type of dates, which has been imported."""
    _backend.know_dates()


def restore() -> None:
    """Watch nothing any more."""
    _with_sets(_backend.restore)


def _with_sets(put_back: Callable[[], None]) -> None:
    for group, function in _moved:
        group.discard(getattr(os, function.__name__))
    put_back()
    for group, function in _moved:
        group.add(getattr(os, function.__name__, function))


def replace(function: Any, instead: Callable[..., Any]) -> Any:
    """Have something else called in place of a function of C, and return what does what it did.

    To be done before it is watched: what is replaced lies below what is seen.
    """
    watch(function, getattr(function, "__name__", "?"), What.REPLACE, None, instead)
    return _backend.original(function)


def put_back() -> None:
    """Replace nothing any more."""
    if _backend is not None:
        _with_sets(_backend.put_back)


def answer_with(answer: Callable[..., Any] | None) -> None:
    """Let a replay answer in place of what is watched: `answer(of, by, pack, what, self, args, kwargs)`.

    It returns what the function gave back when it was recorded, raises what it raised then, or returns NotImplemented.
    For a clock that is missing it returns its nanoseconds, for a seed its bytes.
    """
    if _backend is not None:
        _backend.answer_with(answer)


def skip(nanoseconds: int) -> None:
    """Let time have passed that a replay jumps over: a wait with a timeout looks at the clock again when it is over."""
    if compiled is not None:
        compiled.skip(nanoseconds)


def listen(count: int) -> None:
    """Say how many runs keep reads; with none, nothing is looked at."""
    if _backend is not None:
        _backend.listen(count)


def process(lane: Lane | None) -> None:
    """Give the lane for what no context has a lane for."""
    if _backend is not None:
        _backend.process(lane)


def here(of: str, frame: FrameType | None) -> tuple[str, str, Any, str | None] | None:
    """Say where a read by the code of a frame would be kept: source, module, pack, span; None where nowhere.

    There is no frame where no code of Python calls, but the interpreter itself: what it was given for its exit.
    """
    found: tuple[str, str, Any, str | None] | None = None
    if _backend is not None and frame is not None:
        found = _backend.here(of, frame)
    return found


def watch_exit() -> None:
    """Notice from now on with which code Python exits; where nothing was compiled, that cannot be seen from inside."""
    if compiled is not None:
        compiled.watch_exit(threading.main_thread().ident)
        threading._register_atexit(compiled.decide_exit)  # type: ignore[attr-defined]  # before those of `atexit`


def exit_asked() -> tuple[int, str | None] | None:
    """Return the code that SystemExit gave, and the text that it had instead; None where none ends this process."""
    found: tuple[int, str | None] | None = None if compiled is None else compiled.exit()
    return found
