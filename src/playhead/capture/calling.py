"""Look at the call that a frame is in: which arguments it names. Audit events do not tell of all of them."""

from __future__ import annotations

import functools
import inspect
from types import CodeType, FrameType
from typing import Any

_LOADS = ("LOAD_CONST", "LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR")


def names_argument(frame: FrameType, name: str) -> bool:
    """Say whether the call that a frame is in gives an argument by this name."""
    # The names that a call uses are among the constants: most code has none of this name, and is looked at no further.
    for constant in frame.f_code.co_consts:
        if type(constant) is tuple and name in constant:
            return _in_this_call(frame.f_code, frame.f_lasti, name)
    return False


@functools.lru_cache(maxsize=1024)
def _in_this_call(code: CodeType, at: int, name: str) -> bool:
    import dis  # here: few programs come this far

    names: object = ()
    for instruction in dis.get_instructions(code):
        if instruction.offset == at:
            return instruction.opname.startswith("CALL") and isinstance(names, tuple) and name in names
        # Right before the call, from Python 3.13 on as any constant; 3.11 has one more instruction in between.
        if instruction.opname in ("KW_NAMES", "LOAD_CONST") and instruction.arg is not None:
            names = code.co_consts[instruction.arg]
        elif instruction.opname != "PRECALL":
            names = ()
    return False


def spreads_arguments(frame: FrameType) -> bool:
    """Say whether the call that a frame is in takes arguments from a sequence or a mapping: `f(*args, **options)`."""
    return _opname(frame.f_code, frame.f_lasti).startswith("CALL_FUNCTION_EX")


def gives_argument(frame: FrameType, name: str) -> bool:
    """Say whether the call that a frame is in gives an argument by this name that is not None.

    Of one that is calculated in the call it is taken to be so; one that cannot be looked at is taken for None.
    """
    if not names_argument(frame, name):
        return False
    how = _how_given(frame.f_code, frame.f_lasti, name)
    if how is None:
        return False
    opname, what, of = how
    if not opname.startswith(_LOADS):
        return True
    if opname == "LOAD_CONST":
        return what is not None
    if opname == "LOAD_ATTR":
        holder = _value(frame, of)
        return inspect.getattr_static(holder, what, None) is not None
    return _value(frame, what) is not None


def _value(frame: FrameType, name: Any) -> Any:
    return frame.f_locals.get(name, frame.f_globals.get(name))


@functools.lru_cache(maxsize=1024)
def _opname(code: CodeType, at: int) -> str:
    import dis

    return next((one.opname for one in dis.get_instructions(code) if one.offset == at), "")


@functools.lru_cache(maxsize=1024)
def _how_given(code: CodeType, at: int, name: str) -> tuple[str, Any, Any] | None:
    """Return the instruction that loads an argument of a call, what it loads, and of what; None if that is too far."""
    import dis

    loads: list[tuple[str, Any]] = []
    for one in dis.get_instructions(code):
        if one.offset == at:
            break
        if one.opname.startswith("LOAD_FAST_") and isinstance(one.argval, tuple):  # two at once, from Python 3.13 on
            loads += [("LOAD_FAST", given) for given in one.argval]
        elif one.opname not in ("KW_NAMES", "PRECALL", "COPY_FREE_VARS"):
            loads.append((one.opname, one.argval))
    names = code.co_consts
    given = next((one for one in names if type(one) is tuple and name in one and _in_this_call(code, at, name)), ())
    if loads and loads[-1] == ("LOAD_CONST", given):
        loads.pop()  # the names themselves, from Python 3.13 on
    after = len(given) - 1 - given.index(name)
    later = loads[len(loads) - after :] if after else []
    if any(not opname.startswith(_LOADS) or opname == "LOAD_ATTR" for opname, _ in later) or len(loads) < after + 2:
        return None
    opname, what = loads[-1 - after]
    opname = next((one for one in _LOADS if opname.startswith(one)), opname)
    return opname, what, loads[-2 - after][1]
