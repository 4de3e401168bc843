"""Watch functions that are written in C without C code of our own: where `_hooks.c` was not compiled.

A function of a module is replaced there, and wherever else a loaded module has it by name. A method of a type is
replaced in the type. What holds a reference elsewhere (in a closure, in a default) is not reached.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import io
import sys
import threading
from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from types import BuiltinMethodType, FrameType, ModuleType
from typing import Any

from playhead.capture.callers import AGENT, INFRASTRUCTURE, OURS
from playhead.capture.hooks import What
from playhead.capture.keepers import KEEPERS, keep_raw
from playhead.capture.packs import Pack
from playhead.capture.patches import Unbound


class _State(threading.local):
    inside = False


class _Needed:
    """What is needed of the rest of Playhead; hooks.py hands it over."""

    sorts: dict[str, int]
    sort_of: Callable[[str], int]
    reader: Callable[[Any, str], tuple[str, str] | None]
    current: ContextVar[Any]
    ambient_lane: ContextVar[Any]
    muted: ContextVar[bool]
    problem: Callable[[Exception], None]
    time_ns: Callable[[], int]
    localtime: Callable[[float], Any]
    urandom: Callable[[int], bytes]


_state = _State()
_watching = 0
_process_lane: Any = None
_replaced: list[tuple[MutableMapping[str, Any], str, Any, Any, type | None]] = []
_instead: list[tuple[MutableMapping[str, Any], str, Any, Any, type | None]] = []  # the same, of what nobody watches
_answer: Callable[..., Any] | None = None


def prepare(*given: Any) -> None:
    """Take what is needed."""
    for name, value in zip(_Needed.__annotations__, given, strict=True):
        setattr(_Needed, name, staticmethod(value) if callable(value) else value)


def listen(count: int) -> None:
    """Say how many want to know; with 0 nothing is looked at."""
    global _watching
    _watching = count


def process(lane: Any) -> None:
    """Give the lane of what no context has a lane for; None for none."""
    global _process_lane
    _process_lane = lane


def answer_with(answer: Callable[..., Any] | None) -> None:
    """Ask this before the world."""
    global _answer
    _answer = answer


def original(function: Any) -> Any:
    """Return the function: it has not changed, only where it is found."""
    return function


def know_dates() -> None:
    """Do nothing: their types are known here."""


def here(of: str, frame: FrameType) -> tuple[str, str, Pack, str | None] | None:
    """Say where a read by the code of a frame would be kept: (of, by, pack, span), or None."""
    return _place(of, frame) if _watching and not _state.inside else None


def _place(of: str, frame: FrameType | None) -> tuple[str, str, Pack, str | None] | None:
    if frame is None:
        return None
    name: Any = frame.f_globals.get("__name__")
    sort = _Needed.sorts.get(name)
    if sort is None:
        # Code that was made at run time may have a namespace of its own, without a name.
        name, sort = (name, _Needed.sort_of(name)) if type(name) is str else ("?", AGENT)
    if sort in (INFRASTRUCTURE, OURS) or _Needed.muted.get():
        return None
    # As `_pack` does: this is asked for every read of a clock.
    scope = _Needed.current.get()
    if scope is not None:
        span, pack = scope.span, scope.lane.reads
    elif _process_lane is None:
        return None
    else:
        span, pack = None, (_Needed.ambient_lane.get() or _process_lane).reads
    if pack is None or not pack.tap.open:
        return None
    if sort == AGENT:
        return of, name, pack, span
    named = _Needed.reader(frame, of)
    return None if named is None else (*named, pack, span)


def _anywhere(of: str) -> tuple[str, str, Pack, str | None] | None:
    """Return the place of what there is only one of, whoever reads it."""
    found = _pack()
    return None if found is None else (of, "", *found)


def _pack() -> tuple[Pack, str | None] | None:
    """Return the pack of the lane that runs, and its span; None where nothing is recorded."""
    if _Needed.muted.get():
        return None
    scope = _Needed.current.get()
    if scope is not None:
        span, lane = scope.span, scope.lane
    elif _process_lane is None:
        return None
    else:
        span, lane = None, _Needed.ambient_lane.get() or _process_lane
    pack = lane.reads
    return None if pack is None or not pack.tap.open else (pack, span)


def _of_stdin(args: tuple[Any, ...]) -> bool:
    """Say whether a call reads what comes from outside: a method of a file, or a function that is given its number."""
    if isinstance(args[0], io.FileIO):
        return not args[0].closed and args[0].fileno() == 0
    return bool(args[0] == 0)


def watch(
    function: Any, of: str, what: int, only: list[Any] | None = None, notice: Callable[..., Any] | None = None
) -> None:
    """Replace a function of a module, or a method of a type; one that was replaced already is left as it is."""
    if any(made is function for _, _, _, made, _ in _replaced):
        return
    if what == What.REPLACE:
        _put_instead(function, notice)
        return
    kind = getattr(function, "__objclass__", None)
    if kind is not None:
        space: MutableMapping[str, Any] = gc.get_referents(kind.__dict__)[0]  # what cannot be set on a type of C
        name = function.__name__
        of_class = type(function).__name__ == "classmethod_descriptor"
        original = function.__get__(None, kind).__func__ if hasattr(function, "__func__") else function
        made = _wrapper(original, sys.intern(of), What(what), only, notice, bound=True, of_class=of_class)
        _put(space, name, function, classmethod(made) if of_class else made, kind)
        for one in only or ():
            _replace_bound(made, one, name)
        return
    made = _wrapper(function, sys.intern(of), What(what), only, notice, bound=False, of_class=False)
    _replace(Unbound(made), lambda value: value is function)


def _replace(made: Any, is_it: Callable[[Any], bool]) -> None:
    """Replace it wherever a loaded module has it by name."""
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and not module.__name__.startswith("playhead."):
            for name, value in list(vars(module).items()):
                if is_it(value):
                    _put(vars(module), name, value, made, None)
    # With which `pathlib` looks for files, from Python 3.13 on.
    kind = getattr(sys.modules.get("glob"), "_StringGlobber", None)
    if isinstance(kind, type):
        space = gc.get_referents(kind.__dict__)[0]
        for name, value in list(space.items()):
            if isinstance(value, staticmethod) and is_it(value.__func__):
                _put(space, name, value, staticmethod(made), kind)


def _replace_bound(made: Any, only: Any, name: str) -> None:
    _replace(made.__get__(only), lambda value: _is_bound(value, only, name))


def _is_bound(value: Any, only: Any, name: str) -> bool:
    return type(value) is BuiltinMethodType and value.__self__ is only and value.__name__ == name


def _put_instead(function: Any, notice: Any) -> None:
    before = len(_replaced)
    kind = getattr(function, "__objclass__", None)
    if kind is not None:
        _put(gc.get_referents(kind.__dict__)[0], function.__name__, function, notice, kind)
    else:
        made = functools.wraps(function)(lambda *args, **kwargs: notice(*args, **kwargs))
        _replace(Unbound(made), lambda value: value is function)
    _instead.extend(_replaced[before:])
    del _replaced[before:]


def _put(space: MutableMapping[str, Any], name: str, original: Any, made: Any, kind: type | None) -> None:
    _replaced.append((space, name, original, made, kind))
    _set(space, name, made, kind)


def _set(space: MutableMapping[str, Any], name: str, value: Any, kind: type | None) -> None:
    space[name] = value
    if kind is not None:
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def restore() -> None:
    """Put everything back, unless somebody else has put something there."""
    _take_back(_replaced)


def put_back() -> None:
    """Put back what was replaced."""
    _take_back(_instead)


def _take_back(replaced: list[tuple[MutableMapping[str, Any], str, Any, Any, type | None]]) -> None:
    while replaced:
        space, name, original, made, kind = replaced.pop()
        if space.get(name) is made:
            _set(space, name, original, kind)


def _wrapper(
    original: Any,
    of: str,
    what: What,
    only: list[Any] | None,
    notice: Callable[..., Any] | None,
    *,
    bound: bool,
    of_class: bool,
) -> Any:
    keep = KEEPERS.get(what)
    if keep is not None and not bound:
        return functools.update_wrapper(_kept(original, of, what, keep), original)

    def watched(*args: Any, **kwargs: Any) -> Any:
        call = original.__get__(None, args[0]) if of_class else original
        given = args[1:] if of_class else args
        if not _watching or _state.inside or (only is not None and not any(args[0] is one for one in only)):
            return call(*given, **kwargs)
        if what == What.STDIN and not _of_stdin(args):
            return call(*given, **kwargs)
        _state.inside = True
        try:
            place = _place(of, sys._getframe().f_back)
            if place is None and what == What.STDIN:
                place = _anywhere(of)
            if place is None:
                return call(*given, **kwargs)
            if keep is not None:
                result = _answered(what, place, args, kwargs, bound)
                if result is NotImplemented:
                    result = call(*given, **kwargs)
                _try(keep, place, result)
                return result
            if what in (What.CALL, What.STDIN):
                return _told(call, what, place, args, given, kwargs, notice, bound)
            if what == What.SEED:
                return call(*given, **kwargs) if kwargs else _seeded(call, place, given)
            return call(*given, **kwargs) if kwargs else _with_clock(call, place, given)
        finally:
            _state.inside = False

    functools.update_wrapper(watched, original)
    return watched


def _answered(what: What, place: Any, args: Any, kwargs: Any, bound: bool) -> Any:
    """Ask a replay what a function gave back when it was recorded; NotImplemented where it does not know."""
    if _answer is None:
        return NotImplemented
    owner, rest = (args[0], args[1:]) if bound else (None, args)
    of, by, pack, _ = place
    return _answer(of, by, pack, int(what), owner, rest, kwargs or None)


def _kept(original: Any, of: str, what: What, keep: Callable[..., None]) -> Any:
    """Make what stands for a function whose value is kept: a clock, mostly, which may be asked very often."""
    state, frame_of = _state, sys._getframe

    def watched(*args: Any, **kwargs: Any) -> Any:
        if not _watching or state.inside:
            return original(*args, **kwargs)
        state.inside = True
        try:
            place = _place(of, frame_of().f_back)
            result = NotImplemented if place is None else _answered(what, place, args, kwargs, False)
            if result is NotImplemented:
                result = original(*args, **kwargs)
            if place is not None:
                _try(keep, place, result)
            return result
        finally:
            state.inside = False

    return watched


def _try(keep: Callable[..., None], place: tuple[str, str, Pack, str | None], *rest: Any) -> None:
    try:
        keep(*place, *rest)
    except Exception as problem:
        _Needed.problem(problem)


def _told(call: Any, what: What, place: Any, args: Any, given: Any, kwargs: Any, notice: Any, bound: bool) -> Any:
    owner, rest = (args[0], args[1:]) if bound else (None, args)
    try:
        result = _answered(what, place, args, kwargs, bound)
        if result is NotImplemented:
            _state.inside = False  # it may call Python code, whose own reads are its own
            result = call(*given, **kwargs)
    except BaseException as error:
        _state.inside = True
        _try(notice, place, owner, rest, kwargs or None, None, error)
        raise
    _state.inside = True
    _try(notice, place, owner, rest, kwargs or None, result, None)
    return result


def _seeded(call: Any, place: Any, args: Any) -> Any:
    if len(args) > 1 and args[1] is not None:
        return call(*args)
    chance = _answered(What.SEED, place, args, None, True)
    if chance is NotImplemented:
        chance = _Needed.urandom(32)
    _try(keep_raw, place, chance)
    return call(args[0], int.from_bytes(chance, "little"))


def _with_clock(call: Any, place: Any, args: Any) -> Any:
    at = 1 if call.__name__ == "strftime" else 0
    by_tuple = call.__name__ in ("strftime", "asctime")
    if len(args) < at or (len(args) > at and (by_tuple or args[at] is not None)):
        return call(*args)
    now = _answered(What.CLOCK_WHEN_MISSING, place, args, None, False)
    seconds = (_Needed.time_ns() if now is NotImplemented else now) // 10**9
    _try(lambda of, by, pack, span: pack.add_number(of, by, seconds * 10**9, span), place)
    return call(*args[:at], _Needed.localtime(seconds) if by_tuple else seconds)
